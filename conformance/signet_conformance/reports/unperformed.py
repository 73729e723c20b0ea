"""The steps that a real program was not brought to, each with the reason: nothing of them is judged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from signet_conformance.errors import printable
from signet_conformance.trace import Trace
from signet_conformance.trace.marks import LoadedMark, ScenarioMark, SkippedMark, StepMark, marks_of


def unperformed(traces: Iterable[Trace]) -> Iterator[str]:
    """A line for each kind of step and reason, with the scenarios that it stands in."""
    places: dict[tuple[str, str, str], list[str]] = {}
    for trace in traces:
        real = next((mark for mark in marks_of(trace, LoadedMark) if mark.real), None)
        if real is None:
            continue
        steps = {mark.index: str(mark.step) for mark in marks_of(trace, StepMark)}
        scenario = next((str(mark.name) for mark in marks_of(trace, ScenarioMark)), "a recording")
        for skipped in marks_of(trace, SkippedMark):
            told = (str(real.host), steps.get(skipped.index, "a step"), str(skipped.reason))
            places.setdefault(told, []).append(scenario)
    for (host, step, reason), scenarios in places.items():
        where = ", ".join(dict.fromkeys(scenarios))
        what = f"{printable(host, 60)} did not perform {printable(step, 40)} in {printable(where, 300)}"
        yield f"{what}: {printable(reason, 300)}"
