"""A recording as a timeline: each call with its time and duration, its findings, and if wanted its bodies."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence, Set as AbstractSet
from fnmatch import fnmatchcase

from msgspec import Struct, field
from rich.console import Group, RenderableType
from rich.highlighter import JSONHighlighter
from rich.text import Text

from signet_conformance.engine import JudgedTrace
from signet_conformance.errors import counted, printable
from signet_conformance.facts import Call, Recording
from signet_conformance.finding import BREACHES, FOLDING_ORDER, Finding
from signet_conformance.outcome.broken_off import warnings_of
from signet_conformance.reports import terminal
from signet_conformance.reports.evidence import call_line
from signet_conformance.reports.values import mark_words
from signet_conformance.trace import Body, Mark, Message
from signet_conformance.trace.model import NOT_CAPTURED, NOT_WRITTEN

MAX_BODY_LINES = 400
MAX_LINE = 2000
_TIMES_WIDTH = 22
_BESIDE_LEAST = 70
"""In a narrower terminal an exchange comes below its times, since too little room is left beside them."""
_BODY_INDENT = 6

Beside = Mapping[int, Sequence[tuple[str, Finding]]]
"""Exchange number to the findings that begin there, each with its requirement."""


class Filter(Struct, frozen=True):
    """Which exchanges are shown. A member that is None admits all; names may be globs."""

    session: str | None = None
    agent: str | None = None
    operation: str | None = None
    exchanges: frozenset[int] = field(default_factory=frozenset)
    selected: frozenset[int] | None = None

    def admits(self, call: Call) -> bool:
        """Whether a call is shown. `-` matches calls without a session or operation."""
        return (
            _matches(self.session, call.key)
            and _matches(self.agent, call.agent)
            and (_matches(self.operation, call.operation) or _matches(self.operation, call.path))
            and (not self.exchanges or call.seq in self.exchanges)
            and (self.selected is None or call.seq in self.selected)
        )

    @property
    def everything(self) -> bool:
        """Whether all exchanges are shown; then marks are shown, too."""
        names = (self.session, self.agent, self.operation, self.selected)
        return all(name is None for name in names) and not self.exchanges


def _matches(pattern: str | None, name: str | None) -> bool:
    return pattern is None or fnmatchcase(name or "-", pattern)


def findings_of(judged: JudgedTrace, only: frozenset[str] | None = None) -> Beside:
    """The findings by the exchange at which they begin, the worst first; those without an exchange are at 0.

    Without `only`, the connector's breaches; with it, all findings on those requirements.
    """
    beside: dict[int, list[tuple[str, Finding]]] = {}
    judgements = judged.judgements if only is None else {**judged.judgements, **judged.harness}
    for name, judgement in judgements.items():
        if only is not None and name not in only:
            continue
        for finding in judgement.findings:
            if finding.verdict in BREACHES or only is not None:
                beside.setdefault(finding.exchanges[0] if finding.exchanges else 0, []).append((name, finding))
    for findings in beside.values():
        findings.sort(key=lambda named: FOLDING_ORDER.index(named[1].verdict))
    return beside


class TimelineText:
    """Draws a recording as lines, exchange by exchange; with `bodies` also their headers and bodies."""

    def __init__(self, width: int, colour: bool, *, bodies: bool = False) -> None:
        self._width = terminal.usable_width(width)
        self._colour = colour
        self._bodies = bodies
        self._explained: set[str] = set()

    def heading(self, recording: Recording) -> list[str]:
        """The name of the recording, its daemon version, its number of exchanges, and warnings."""
        trace = recording.trace
        facts = [printable(trace.path or "trace", 400), f"daemon {printable(recording.daemon_version, 40)}"]
        facts.append(counted(len(recording.calls), "exchange"))
        return self._draw(
            [terminal.Paragraph(", ".join(facts)), *(terminal.Paragraph(printable(w, 600)) for w in warnings_of(trace))]
        )

    def lines(
        self,
        recording: Recording,
        admits: Callable[[Call], bool],
        beside: Beside,
        *,
        marks: bool,
        shown: AbstractSet[int] = frozenset(),
    ) -> Iterator[str]:
        """The admitted exchanges, and with `marks` the marks between them; without those already `shown`."""
        calls: list[Call | Mark] = [call for call in recording.calls if call.seq not in shown and admits(call)]
        if marks:
            calls += [mark for mark in recording.trace.marks if mark.seq not in shown]
            calls.sort(key=lambda entry: entry.seq)
        for entry in calls:
            if isinstance(entry, Mark):
                yield from self._draw([self._mark(entry)])
            else:
                yield from self._draw([*self._call(entry), *self._findings(beside.get(entry.seq, ()))])

    def finding_lines(self, findings: Sequence[tuple[str, Finding]], of: int | None = None) -> list[str]:
        """A paragraph for each finding; after the first of a requirement the command that explains it.

        `of` is the exchange at which they begin, if it is not the one above them.
        """
        return self._draw([*self._findings(findings, "" if of is None else f" #{of}")])

    def _draw(self, things: Sequence[RenderableType]) -> list[str]:
        return terminal.draw(things, self._width, self._colour)

    def _findings(self, findings: Sequence[tuple[str, Finding]], at: str = "") -> Iterator[RenderableType]:
        for name, finding in findings:
            head = terminal.verdict_text(finding.verdict)
            yield terminal.Paragraph(Text.assemble(head, f" {name}{at} {printable(finding.message, 300)}"), 4, 6)
            if finding.pointer:
                yield terminal.Paragraph(f"at {printable(finding.pointer, 200)}", 6)
            if name not in self._explained:
                self._explained.add(name)
                command = terminal.labelled_command("explain", ["signet-conformance", "explain", name])
                yield Text.assemble("  ", command, no_wrap=True, overflow="ignore")

    def _mark(self, mark: Mark) -> RenderableType:
        times = Text(f"{_seconds(mark.t):>10}", terminal.FAINT)
        return self._text_beside_times(times, Text(f"#{mark.seq} {mark_words(mark)}", terminal.FAINT))

    def _call(self, call: Call) -> Iterator[RenderableType]:
        times = Text(f"{_seconds(call.t0):>10} {_duration(call.t1 - call.t0):>9}")
        yield self._text_beside_times(times, Text(call_line(call), "" if _went_well(call) else terminal.STRONG))
        if self._bodies:
            yield from self._message("request", call.exchange.request, call.exchange.request.query)
            if call.exchange.response is not None:
                yield from self._message("answer", call.exchange.response)

    def _text_beside_times(self, times: Text, text: Text) -> RenderableType:
        if self._width < _BESIDE_LEAST:
            times.plain = times.plain.strip()
            return Group(times, terminal.Paragraph(text, 2, 4))
        return terminal.Paragraph(text, _TIMES_WIDTH, _TIMES_WIDTH + 2, beside=times)

    def _message(self, label: str, message: Message, query: Sequence[Sequence[str]] = ()) -> Iterator[RenderableType]:
        """Headers and body, without wrapping, so that they can be copied."""
        yield Text.assemble("    ", (label, terminal.FAINT))
        lines: list[Text | str] = [f"?{printable(name, 100)}={printable(value, MAX_LINE)}" for name, value in query]
        lines += [
            Text(f"{printable(name, 100)}: {printable(value, MAX_LINE)}", terminal.FAINT)
            for name, value in message.headers
        ]
        if message.body is not None:
            lines += self._body(message.body)
        yield terminal.VerbatimLines(lines, _BODY_INDENT)

    def _body(self, body: Body) -> Sequence[Text | str]:
        lines = _body_lines(body)
        shown: Sequence[Text | str] = [printable(line, MAX_LINE) for line in lines[:MAX_BODY_LINES]]
        if self._colour and body.kind == "json":
            coloured = Text("\n".join(map(str, shown)))
            JSONHighlighter().highlight(coloured)
            shown = list(coloured.split("\n", allow_blank=True))
        more = len(lines) - MAX_BODY_LINES
        return [*shown, Text(f"… {counted(more, 'more line')}", terminal.FAINT)] if more > 0 else shown


def _body_lines(body: Body) -> list[str]:
    if body.kind == "json":
        return json.dumps(body.value, indent=2, ensure_ascii=False).split("\n")
    if body.kind == "cut":
        if body.undecoded in (NOT_CAPTURED, NOT_WRITTEN):
            return [f"({body.undecoded})"]
        return [f"(cut: {body.size} bytes, SHA-256 {body.sha256})", *str(body.value).split("\n")]
    return str(body.value).split("\n")


def _went_well(call: Call) -> bool:
    return call.status is not None and call.status < 400 and call.exchange.error is None and call.fault is None


def _seconds(time: float) -> str:
    return f"+{time:.3f}s"


def _duration(time: float) -> str:
    return f"{time * 1000:.0f} ms" if time < 9.9995 else f"{time:.1f} s"
