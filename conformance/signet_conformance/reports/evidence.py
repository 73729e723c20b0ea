"""The evidence of a breach for a reader: what, where, expected, received, nearby exchanges, and the code that sent it.

A driver's marks name the lines of the connector that sent requests, by method and path, in their order, and the
recorder numbers the requests that reached it. An exchange gets a line where both lists have the same length between two
marks, or where all its requests were sent from one place.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus

from msgspec import Struct, field

from signet_conformance.contract import Requirement, catalogue
from signet_conformance.engine import JudgedTrace
from signet_conformance.errors import printable
from signet_conformance.facts import AGENT_CALLS, GET, MEMORY_SEARCH, NOTIFY, Call, Recording, once_a_recording
from signet_conformance.files import shown_path
from signet_conformance.finding import BREACHES, Finding, Verdict
from signet_conformance.reports.values import mark_words, received_text
from signet_conformance.trace import Exchange, Mark
from signet_conformance.trace.marks import SentMark, SkippedMark, StepMark, read_mark
from signet_conformance.trace.model import NOT_CARRIED

Size = tuple[bool, int, int]
"""The size of a trace that shows a breach: whether it had a fault, its number of exchanges, its number of marks."""


SENT_BY = "sent by"


class Evidence(Struct):
    """One kind of breach of a requirement: the plainest example of it, and how widely it shows.

    Every text is one printable line of bounded length; an empty one says nothing. `seq` and `line` are the number and
    the line of the exchange that the example begins at, None where no exchange shows it. `sources` are the places in
    the connector's code that sent it, the innermost first, where its driver can tell. `around` are the exchanges near
    it, as (is it this exchange, line); `again` the numbers of its repeats.

    The example is that of the trace at `path`, empty where only the run as a whole shows the breach: nothing disturbed
    that trace, and it is the smallest; `size` is what traces are compared by. `times` counts the findings of all
    traces, `traces` holds the numbers of those with one, `known` of those where the failure is known, for `reason`.
    """

    what: str
    seq: int | None = None
    line: int | None = None
    where: str = ""
    others: tuple[str, ...] = ()
    pointer: str = ""
    expected: str = ""
    received: str = ""
    sources: tuple[Source, ...] = ()
    around: tuple[tuple[bool, str], ...] = ()
    repeats: int = 0
    again: tuple[int, ...] = ()
    requirement: str = ""
    verdict: Verdict = Verdict.FAIL
    level: str = ""
    path: str = ""
    size: Size = (False, 0, 0)
    times: int = 0
    traces: set[int] = field(default_factory=set)
    known: set[int] = field(default_factory=set)
    reason: str = ""

    @property
    def file(self) -> str:
        """The path as it may be shown."""
        return printable(self.path, 400)

    @property
    def place(self) -> str:
        """The file, relative to the current folder if it is below it, with the line; empty if no trace shows it."""
        file = shown_path(self.file) if self.path else ""
        return f"{file}:{self.line}" if file and self.line is not None else file

    @property
    def rank(self) -> tuple[int, int, int, Size]:
        """The sort key: the worst breach first, then the most widespread, then the one with the plainest example."""
        return BREACHES.index(self.verdict), -len(self.traces), -self.times, self.size

    @property
    def is_known(self) -> bool:
        """Whether it is known in every trace that shows it."""
        return bool(self.reason) and self.known == self.traces

    @property
    def facts(self) -> Sequence[tuple[str, str]]:
        """The facts that are not empty, each with its label: what is wrong, and where, before everything else."""
        sent_by = ", called at ".join(source.words for source in self.sources)
        facts = [("what", self.what), ("where", self.where), ("in", self.place)]
        facts += [*(("with", other) for other in self.others), ("at", self.pointer)]
        facts += [("expected", self.expected), ("received", self.received), (SENT_BY, sent_by)]
        return [(label, text) for label, text in facts if text]

    @property
    def repeated(self) -> str:
        """How often it occurs again, and in which exchanges."""
        shown = ", ".join(f"#{seq}" for seq in self.again[:8]) + (", …" if len(self.again) > 8 else "")
        return f"{self.repeats} more like it" + (f": {shown}" if shown else "")


def model_line(judged: JudgedTrace, seq: int) -> str:
    """One line about an exchange with the model, in place of the daemon: `model #`, its number and its path."""
    exchanges = () if judged.trace.model is None else judged.trace.model.exchanges
    exchange = next((each for each in exchanges if each.seq == seq), None)
    return f"model #{seq}" + ("" if exchange is None else f" {printable(exchange.request.path, 200)}")


def known_requirement(name: str) -> Requirement | None:
    """A requirement of any side; None for a user's own rule."""
    return catalogue().get(name)


def kinds(findings: Sequence[Finding]) -> list[list[Finding]]:
    """The findings grouped by defect."""
    by_defect: dict[str, list[Finding]] = {}
    for finding in findings:
        by_defect.setdefault(finding.group, []).append(finding)
    return list(by_defect.values())


def evidence_of(judged: JudgedTrace, kind: Sequence[Finding]) -> Evidence:
    """The evidence for one kind of breach in a judged trace."""
    finding, *repeats = kind
    recording = judged.recording
    # A finding may begin at a mark, so its number may have no call.
    calls = [recording.by_seq.get(seq) for seq in finding.exchanges[:3]]
    first = calls[0].exchange if calls and calls[0] is not None else None
    return Evidence(
        what=printable(finding.message, 400),
        seq=finding.exchanges[0] if finding.exchanges else None,
        line=None if first is None else first.line,
        where=""
        if first is None
        else f"#{first.seq} {printable(first.request.method, 16)} {printable(first.request.path, 200)},"
        f" on the {finding.side.value}'s side",
        others=(
            *(call_line(other) for other in calls[1:] if other is not None),
            *(model_line(judged, seq) for seq in finding.model[:3]),
        ),
        pointer=printable(finding.pointer, 300),
        expected=printable(finding.expected, 300),
        received=received_text(finding, first),
        sources=() if first is None else source_of(recording, first.seq),
        around=tuple(excerpt(recording, finding.exchanges[0])) if finding.exchanges else (),
        repeats=len(repeats),
        again=tuple(repeat.exchanges[0] for repeat in repeats if repeat.exchanges),
    )


_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
MAX_MARKS = 4
"""Marks beside a breach; of more, those nearest to it."""
_WITH_AGENT = AGENT_CALLS | {GET, MEMORY_SEARCH, NOTIFY}


def call_line(call: Call) -> str:
    """One call as one printable line: `#12 POST /api/hooks/session-end key=… agent=… -> 200`.

    The daemon's reason follows the status of a refusal.
    """
    parts = [f"#{call.seq}", printable(call.method, 16), printable(call.path, 100)]
    if call.key is not None:
        parts.append(f"key={short_key(call.key)}")
    if names_agent(call):
        parts.append(f"agent={printable(call.agent, 40)}")
    parts.append(f"-> {_answer(call.exchange)}")
    if call.fault is not None:
        parts.append(f"[fault: {printable(call.fault, 20)}]")
    elif call.status is not None and call.status >= HTTPStatus.BAD_REQUEST and call.answer and "error" in call.answer:
        parts.append(printable(json.dumps(call.answer["error"], ensure_ascii=False), 100))
    return " ".join(parts)


def short_key(key: str) -> str:
    """A session key for a line: UUIDs are shortened to both ends, which distinguish those of one recording."""
    return printable(_UUID.sub(lambda uuid: f"{uuid[0][:8]}…{uuid[0][-4:]}", key), 40)


def names_agent(call: Call) -> bool:
    """Whether a call's agent is known: its operation has one, and its body was not cut."""
    return call.operation in _WITH_AGENT and not call.cut


def _answer(exchange: Exchange) -> str:
    error = None if exchange.error is None else printable(exchange.error, 40)
    if exchange.error == NOT_CARRIED and exchange.response is None:
        return "no answer (the recorder could not carry it)"
    if exchange.is_unhandled:
        return "no answer (the client left before its request was complete)"
    if exchange.response is None:
        return f"no answer ({error})" if error else "no answer"
    return f"{exchange.response.status} ({error})" if error else str(exchange.response.status)


def excerpt(recording: Recording, seq: int, around: int = 2) -> Iterator[tuple[bool, str]]:
    """The exchanges and marks near number `seq`, as (is it this number, line); `around` exchanges on each side.

    At most MAX_MARKS marks are shown, the nearest. Left out are skipped steps and marks that are notes of the kit.
    """
    index = bisect_left(recording.calls, seq, key=lambda call: call.seq)
    shown = recording.calls[max(0, index - around) : index + around + 1]
    numbers = [call.seq for call in shown] + [seq]
    lines = [(call.seq, call_line(call)) for call in shown]
    marks = [mark for mark in _shown_marks(recording.trace.marks) if min(numbers) <= mark.seq <= max(numbers)]
    nearest = sorted(marks, key=lambda mark: abs(mark.seq - seq))[:MAX_MARKS]
    lines += [(mark.seq, f"#{mark.seq} {mark_words(mark, 80)}") for mark in nearest]
    for number, line in sorted(lines):
        yield number == seq, line


def _shown_marks(marks: Sequence[Mark]) -> Iterator[Mark]:
    typed = [(mark, read_mark(mark)) for mark in marks]
    skipped = {each.index for _, each in typed if isinstance(each, SkippedMark)}
    for mark, each in typed:
        was_skipped = isinstance(each, StepMark) and each.index in skipped
        if not was_skipped and not isinstance(each, SkippedMark | SentMark):
            yield mark


_PLACE = re.compile(r"(?P<file>.+?):(?P<line>[1-9]\d{0,8})(?::\d+)?")


class Source(Struct, frozen=True):
    """A line of the connector's code; `file` is relative to the current folder where it is below it."""

    file: str
    line: int

    @property
    def words(self) -> str:
        """The place as FILE:LINE, which editors and terminals open."""
        return f"{printable(self.file, 300)}:{self.line}"


def source_of(recording: Recording, seq: int) -> tuple[Source, ...]:
    """The places that led to an exchange, the innermost first; empty where they are unknown."""
    return _sources(recording).get(seq, ())


@once_a_recording
def _sources(recording: Recording) -> Mapping[int, tuple[Source, ...]]:
    return dict(_requests_sent(recording))


def _requests_sent(recording: Recording) -> Iterator[tuple[int, tuple[Source, ...]]]:
    calls = iter(sorted(recording.calls, key=lambda call: call.seq))
    call = next(calls, None)
    for mark in recording.marks(SentMark):
        named: dict[tuple[str, ...], list[tuple[Source, ...]]] = {}
        for method, path, *places in mark.requests:
            named.setdefault((method, path), []).append(tuple(_sources_in(places)))
        reached: dict[tuple[str, ...], list[Call]] = {}
        while call is not None and call.seq < mark.seq:
            reached.setdefault((call.method, call.path), []).append(call)
            call = next(calls, None)
        for request, alike in reached.items():
            sent = named.get(request, [])
            if len(sent) == len(alike) or (len(sent) > len(alike) and len(set(sent)) == 1):
                yield from ((each.seq, places) for each, places in zip(alike, sent, strict=False))


def _sources_in(places: list[str]) -> Iterator[Source]:
    for place in places:
        if (read := _PLACE.fullmatch(place)) is not None:
            yield Source(shown_path(read["file"]), int(read["line"]))
