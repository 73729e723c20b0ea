"""Notes beside the verdicts: installation, default port, handlers, steps left out, the harness that was played."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import chain
from pathlib import Path

from msgspec import Struct

from signet_conformance.contract import document
from signet_conformance.errors import counted, first_of, printable
from signet_conformance.facts.whole_run import refusals, unanswerable
from signet_conformance.trace import BOUNDS, Gap, Trace, marks
from signet_conformance.trace.marks import kit_marks, marks_of
from signet_conformance.trace.model import ERRORS, NOT_CAPTURED, NOT_WRITTEN, OVER_LIMIT

MAX_KINDS = 12
"""Lines about handlers; further kinds are counted."""
MAX_NAMED = 5
"""How many requests one line about gaps names."""
_WORDS: Mapping[str, str] = {
    marks.BLOCKED: "blocked the user's turn",
    marks.TIMED_OUT: "gave no answer",
    marks.THROWN: "threw",
    marks.FAILED: "failed",
    marks.SLOW: "made the user wait",
}
"""Outcome to its description, the worst first."""


class _Trouble(Struct, frozen=True):
    """A handler that did not end well: the kind under which it is counted, and where it happened."""

    kind: tuple[str, str, str]
    scenario: str
    step: str
    ms: float | None
    text: str
    under_fault: bool


def remarks(traces: Iterable[Trace]) -> Sequence[str]:
    """The notes on some traces, each once; first what the recorder could not carry or decode."""
    given = list(traces)
    installed = dict.fromkeys(
        mark.text for trace in given for mark in marks_of(trace, marks.RemarkMark) if mark.text is not None
    )
    refused = [*no_requests(given), *refusals(given, counted=False)]
    return [
        *_gaps(given),
        *_unknown_bounds(given),
        *_unknown_operations(given),
        *_unknown_errors(given),
        *refused,
        *_unanswerable(given),
        *registrations(given),
        *installed,
        *_default_port_notes(given),
        *unperformed(given),
        *_handlers(given),
    ]


def _unknown_bounds(traces: Iterable[Trace]) -> Iterator[str]:
    """Declared bounds of no known call, such as a misspelt one: nothing is held to them."""
    declared = dict.fromkeys(name for trace in traces for name in trace.header.declared.bounds_s)
    for name in [each for each in declared if each not in BOUNDS][:MAX_KINDS]:
        yield f"declared, and no bound of the kit: {printable(name, 60)}; it knows {', '.join(BOUNDS)}"


def _unknown_operations(traces: Iterable[Trace]) -> Iterator[str]:
    """Declared operations that the contract lacks, such as a misspelt one: no requirement takes notice of them."""
    operations = document("operations.json")["operations"]
    declared = dict.fromkeys(name for trace in traces for name in trace.header.declared.capabilities or ())
    for name in [each for each in declared if each not in operations][:MAX_KINDS]:
        near = get_close_matches(name, operations, 1)
        meant = f": did you mean {near[0]}?" if near else ""
        yield f"declared, and no operation of the contract: {printable(name, 60)}{meant}"


def _unknown_errors(traces: Iterable[Trace]) -> Iterator[str]:
    """The kinds of error that no recorder of the kit writes; a large recording is not read again for them."""
    in_memory = (trace.exchanges for trace in traces if isinstance(trace.exchanges, tuple))
    first = {each.error: each.seq for each in chain.from_iterable(map(reversed, in_memory)) if each.error is not None}
    for kind in [each for each in first if each not in ERRORS][:MAX_KINDS]:
        known = f"the kit knows {', '.join(ERRORS)}"
        yield f"exchange {first[kind]}: error.kind is {printable(kind, 40)}, which decides nothing: {known}"


def _unanswerable(traces: Iterable[Trace]) -> Iterator[str]:
    """That requests never arrived although nothing disturbed them: less is tested than the verdicts suggest."""
    in_memory = (trace for trace in traces if isinstance(trace.exchanges, tuple))
    lost = dict.fromkeys(chain.from_iterable(map(unanswerable, in_memory)))
    if lost:
        names = (printable(" ".join(request), 80) for request in lost)
        yield (
            f"no fault was on, and {first_of(names, MAX_NAMED)} was sent and got no answer: the machine may be too slow"
            " for the connector, which may then leave hooks out; run again while less else runs"
        )


def registrations(traces: Iterable[Trace]) -> Sequence[str]:
    """A line for each host: the most handlers and tools of the connector that it took in any recording."""
    registered: dict[tuple[str, str | None], dict[str | None, list[marks.RegisteredMark]]] = {}
    for mark in (mark for trace in traces for mark in marks_of(trace, marks.RegisteredMark)):
        if mark.host is not None:
            registered.setdefault((mark.host, mark.release), {}).setdefault(mark.mode, []).append(mark)
    return [
        f"{printable(' '.join(filter(None, host)), 80)} took {'; '.join(_counts(modes[mode], mode) for mode in modes)}"
        for host, modes in registered.items()
    ]


def _counts(marked: Sequence[marks.RegisteredMark], mode: str | None) -> str:
    handlers = [mark.handlers for mark in marked if mark.handlers is not None]
    tools = [mark.tools for mark in marked if mark.tools is not None]
    text = " and ".join(counted(max(known), word) for known, word in ((handlers, "handler"), (tools, "tool")) if known)
    refused = f", and refused {most} more" if (most := max(mark.refused or 0 for mark in marked)) else ""
    return f"{text or 'something'}{'' if mode is None else f' in the mode {printable(mode, 40)}'}{refused}"


def _gaps(traces: Iterable[Trace]) -> list[str]:
    """Traffic that the recorder could not carry or decode: a line for each reason, with the first requests."""
    requests: dict[str, list[str]] = {}
    for trace in traces:
        for gap in trace.gaps:
            requests.setdefault(_reason_of(gap), []).append(
                f"exchange {gap.exchange} {printable(gap.method, 20)} {printable(gap.path, 80)}"
            )
    return [f"{reason}: {first_of(named, MAX_NAMED)}" for reason, named in list(requests.items())[:MAX_KINDS]]


def _reason_of(gap: Gap) -> str:
    if gap.side is None:
        return f"the recorder could not carry a request ({printable(gap.why, 120)}), so it decides nothing"
    body = "the body of a request" if gap.side == "request" else "the body of an answer"
    if gap.why == NOT_CAPTURED:
        return (
            f"not judged: {body} is not in the capture; capture with bodies, or record with signet-conformance record"
        )
    if gap.why == OVER_LIMIT:
        return f"not judged: {body} is over the recorder's limit; record with a larger --body-limit"
    if gap.why == NOT_WRITTEN:
        return f"not judged: {body}, which the recorder was killed before it wrote; record again"
    coding = (
        "is not text and may be compressed" if gap.why == "unknown" else f"is compressed with {printable(gap.why, 40)}"
    )
    return f"not judged: {body} {coding}; record with the extra codings installed to read it"


def warning_lines(traces: Iterable[Trace]) -> list[str]:
    """Lines on parts that some recordings lack, such as a torn last line or a gap: in the shortest summary too."""
    given = list(traces)
    texts = dict.fromkeys([*_gaps(given), *(warning for trace in given for warning in trace.warnings)])
    return [f"note: {printable(text, 600)}" for text in texts]


def no_requests(traces: Iterable[Trace]) -> list[str]:
    """Input to the recorder that was not an HTTP request: it was answered 400 and is not an exchange."""
    texts = dict.fromkeys(mark.words for trace in traces for mark in marks_of(trace, marks.NoRequestMark) if mark.words)
    return [f"answered 400: {words}" for words in list(texts)[:MAX_KINDS]]


def _default_port_notes(traces: Iterable[Trace]) -> list[str]:
    """Which program holds the default port, if the kit could not: what connectors send there is not recorded."""
    reasons = dict.fromkeys(mark.words for trace in traces for mark in marks_of(trace, marks.UnheardPortMark))
    return [f"SIG-LOAD-003 is not decided: {words or 'the kit did not hold the default port'}" for words in reasons]


def _handlers(traces: Iterable[Trace]) -> list[str]:
    kinds: dict[tuple[str, str, str], list[_Trouble]] = {}
    for trouble in chain.from_iterable(map(_troubles, traces)):
        kinds.setdefault(trouble.kind, []).append(trouble)
    worst = sorted(kinds.values(), key=_rank)
    more = len(worst) - MAX_KINDS
    lines = [_line(alike) for alike in worst[:MAX_KINDS]]
    return lines if more <= 0 else [*lines, f"{counted(more, 'more kind')} of trouble with handlers"]


def _rank(alike: Sequence[_Trouble]) -> tuple[bool, int, int]:
    outcome = alike[0].kind[1]
    return all(trouble.under_fault for trouble in alike), list(_WORDS).index(outcome), -len(alike)


def _troubles(trace: Trace) -> Iterator[_Trouble]:
    scenario = "a recording" if trace.path is None else Path(trace.path).stem
    step, under_fault = "before the first step", False
    faults: set[str] = set()
    for mark in kit_marks(trace):
        if isinstance(mark, marks.ScenarioMark):
            scenario = printable(mark.name or scenario, 80)
        elif isinstance(mark, marks.FaultMark):
            if mark.is_on:
                faults.add(mark.identity)
            else:
                faults.discard(mark.identity)
            under_fault = under_fault or bool(faults)
        elif isinstance(mark, marks.StepMark):
            number, name = "" if mark.index is None else f" {mark.index}", printable(mark.step or "", 40)
            step = f"step{number} {name}".rstrip()
            under_fault = bool(faults)
        elif isinstance(mark, marks.HandlerMark) and (outcome := mark.outcome or "") in _WORDS:
            if outcome == marks.SLOW and under_fault:
                # SIG-FAIL-002 judges how long a connector waits for a daemon that the kit has slowed down.
                continue
            status = "" if mark.status is None else f"{mark.status}"
            kind = printable(mark.event or "a handler", 80), outcome, status
            yield _Trouble(kind, scenario, step, mark.ms, printable(mark.text or "", 400), under_fault)


def _line(alike: Sequence[_Trouble]) -> str:
    """Which handler did what, how often, whether the kit's own faults were active, and where it was seen first."""
    event, outcome, status = alike[0].kind
    free = [trouble for trouble in alike if not trouble.under_fault]
    first = (free or alike)[0]
    line = (
        f"{event}: {f'ended with status {status} and ' if status and outcome == marks.BLOCKED else ''}{_WORDS[outcome]}"
    )
    line += f" with status {status}" if status and outcome == marks.FAILED else ""
    if outcome in (marks.TIMED_OUT, marks.SLOW) and first.ms is not None:
        line += f"{' within' if outcome == marks.TIMED_OUT else ''} {first.ms / 1000:.1f} s"
    places = {(trouble.scenario, trouble.step) for trouble in alike}
    extent = f"{counted(len(places), 'step')} of {counted(len({trouble.scenario for trouble in alike}), 'scenario')}"
    only = ", only while a fault was on" if not free else ", also without a fault" if len(free) < len(alike) else ""
    text = f": {first.text}" if first.text else ""
    return f"{line}, in {extent}{only}; the first: {first.scenario}, {first.step}{text}"


def unperformed(traces: Iterable[Trace]) -> Iterator[str]:
    """The steps that a real harness did not perform: a line for each kind and reason, with the scenarios."""
    places: dict[tuple[str, str, str], list[str]] = {}
    for trace in traces:
        real = next((mark for mark in marks_of(trace, marks.LoadedMark) if mark.real), None)
        if real is None:
            continue
        steps = {mark.index: str(mark.step) for mark in marks_of(trace, marks.StepMark)}
        scenario = next((str(mark.name) for mark in marks_of(trace, marks.ScenarioMark)), "a recording")
        for skipped in marks_of(trace, marks.SkippedMark):
            kind = (str(real.host), steps.get(skipped.index, "a step"), str(skipped.reason))
            places.setdefault(kind, []).append(scenario)
    for (host, step, reason), scenarios in places.items():
        where = ", ".join(dict.fromkeys(scenarios))
        what = f"{printable(host, 60)} did not perform {printable(step, 40)} in {printable(where, 300)}"
        yield f"{what}: {printable(reason, 300)}"


class PlayedRelease(Struct, frozen=True):
    """One release of a harness that was played, and the later ones that the kit knew then.

    A `real` one is the program itself, which the kit launched.
    """

    host: str
    release: str
    newer: Sequence[str]
    real: bool = False

    @property
    def words(self) -> str:
        """The harness and its release as a phrase."""
        newer = f", and knows of {', '.join(printable(release, 60) for release in self.newer)}" if self.newer else ""
        did = "launched the real" if self.real else "played"
        return f"the kit {did} {printable(self.host, 60)} {printable(self.release, 60)}{newer}"


def played(traces: Iterable[Trace]) -> Sequence[PlayedRelease]:
    """The hosts that were played in some traces, each once."""
    loaded = (mark for trace in traces for mark in marks_of(trace, marks.LoadedMark))
    hosts = {
        (mark.host, mark.release, mark.real): mark
        for mark in loaded
        if mark.host is not None and mark.release is not None
    }
    return [PlayedRelease(str(host), str(release), mark.newer, real) for (host, release, real), mark in hosts.items()]
