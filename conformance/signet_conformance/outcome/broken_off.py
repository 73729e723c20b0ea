"""The recordings of a run, and the scenarios that broke off: which, where, why and by whom, as data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

from msgspec import Struct, json
from msgspec.structs import replace

from signet_conformance.contract import catalogue
from signet_conformance.errors import first_of, printable
from signet_conformance.outcome.generated_summary import GeneratedSummary
from signet_conformance.trace import Trace, read
from signet_conformance.trace.marks import ScenarioEndMark, marks_of
from signet_conformance.trace.recordings import recordings_in

FILE = "broken-off.json"
MAX_REPLAYS = 3
"""How many commands a terminal shows, each for scenarios that broke off for a reason of its own."""
MAX_NAMES = 5
"""How many names a terminal shows of a list; reports have all."""


class BrokenOff(Struct, frozen=True):
    """A scenario that was not performed to its end.

    `where` is the step that it broke off at: number (from 0, as in the marks of the recording) and kind. `tail` is the
    end of the program's standard error, `fault` names who most likely has to act. `refused` is the last request of that
    step that was refused or not answered, as a line; empty without one.
    """

    scenario: str
    where: str
    reason: str
    tail: tuple[str, ...]
    fault: str
    replay: str
    refused: str = ""


class Shortfall(Struct, frozen=True):
    """The scenarios that a run lacks: `broken` ones broke off, `left` ones it gave up, for `why`.

    `of` counts the scenarios that were to be performed, generated sessions included. `interrupted_after` counts those
    that had been performed when the user stopped the run; None if nobody did.
    """

    broken: tuple[BrokenOff, ...]
    of: int
    left: tuple[str, ...] = ()
    why: str = ""
    interrupted_after: int | None = None

    def write(self, folder: Path) -> None:
        """Write it into the folder of the run, for xdist workers, without the programs' standard error."""
        # Standard error is not redacted, and CI uploads the folder.
        written = replace(self, broken=tuple(replace(scenario, tail=()) for scenario in self.broken))
        (folder / FILE).write_bytes(json.format(json.encode(written), indent=1))

    @classmethod
    def from_folder(cls, folder: Path) -> Self | None:
        """Read the shortfall that a run left; None when it performed all of its scenarios."""
        path = folder / FILE
        return json.decode(path.read_bytes(), type=cls) if path.is_file() else None

    def judged(self, traces: Sequence[Trace]) -> list[Trace]:
        """The traces of scenarios that were performed to their end, marked as parts of a run."""
        # What a part never shows may have been in the scenarios that it lacks.
        return [replace(trace, part=True) for trace in traces if not _is_cut_short(trace)]

    def lines(self) -> Iterator[str]:
        """List every scenario that is missing from the verdicts, and the next step."""
        yield from self._interruption(MAX_NAMES)
        if self.broken:
            yield f"{len(self.broken)} of {self.of} scenarios broke off (exit 4); the verdicts are those of the others:"
        alike: dict[str, list[BrokenOff]] = {}
        for broken in self.broken:
            alike.setdefault(broken.reason, []).append(broken)
        for number, (first, *others) in enumerate(alike.values()):
            yield f"  {first.scenario}, {first.where}: {first.reason}"
            if first.refused:
                yield f"    after {first.refused}"
            if number < MAX_REPLAYS:
                yield f"    replay: {first.replay}"
            if others:
                yield f"    likewise {first_of((f'{other.scenario}, {other.where}' for other in others), MAX_NAMES)}"
        if self.left and self.why:
            yield f"  given up: {self.why}; not performed: {first_of(self.left, MAX_NAMES)}"
        tails = [broken for broken in self.broken if broken.tail]
        if tails:
            yield f"  standard error of {tails[0].scenario} ends:"
            yield from (f"    {line}" for line in tails[0].tail)
        for fault in dict.fromkeys(broken.fault for broken in self.broken):
            yield f"  most likely at fault: {fault}"

    def notes(self) -> Iterator[str]:
        """List the missing scenarios for reports, one fact per note."""
        yield from self._interruption(len(self.left))
        if self.broken:
            yield f"{len(self.broken)} of {self.of} scenarios broke off; the verdicts are those of the others"
        for broken in self.broken:
            after = f", after {broken.refused}" if broken.refused else ""
            reason = f"{broken.reason}{after}; most likely at fault: {broken.fault}"
            yield f"{broken.scenario} broke off, {broken.where}: {reason}"
            yield f"{broken.scenario}: replay: {broken.replay}"
        if self.left and self.why:
            yield f"given up: {self.why}; not performed: {', '.join(self.left)}"

    def _interruption(self, most: int) -> Iterator[str]:
        if self.interrupted_after is not None:
            left = first_of(self.left, most)
            yield f"interrupted after {self.interrupted_after} of {self.of} scenarios; not performed: {left}"


def broke_off(trace: Trace) -> str | None:
    """Why the scenario of a driven trace was broken off, as one line; None when it was not."""
    error = next((end.error for end in marks_of(trace, ScenarioEndMark) if end.error is not None), None)
    return None if error is None else printable("; ".join(map(str.strip, str(error).splitlines())), 600)


def warnings_of(trace: Trace) -> Sequence[str]:
    """The warnings of a trace, and that its scenario broke off."""
    why = broke_off(trace)
    return trace.warnings if why is None else (*trace.warnings, f"the scenario was broken off: {why}")


def _is_cut_short(trace: Trace) -> bool:
    # If a run is given up, the recording of the other worker's scenario has no end.
    return broke_off(trace) is not None or not any(marks_of(trace, ScenarioEndMark))


class Recordings:
    """The recordings of a run, read once a process; of a driven run those that broke off are left out.

    `named` are files; without them all traces in `folder` count.
    """

    def __init__(self, folder: Path, named: Sequence[str | Path] = ()) -> None:
        self._folder = folder
        self._named = named
        self._traces: list[Trace] | None = None
        self.performed: Shortfall | None = None
        """The shortfall, in the process that drove the run; other processes read it from the folder."""

    @property
    def read_so_far(self) -> Sequence[Trace]:
        """The recordings that have been read so far."""
        return self._traces or ()

    def traces(self) -> Sequence[Trace]:
        """All recordings. Raises TraceError for one that cannot be read."""
        if self._traces is None:
            driven = sorted(recordings_in(self._folder), key=_place)
            traces = [read(path) for path in self._named or driven]
            shortfall = self.shortfall()
            self._traces = traces if shortfall is None else shortfall.judged(traces)
        return self._traces

    def shortfall(self) -> Shortfall | None:
        """The scenarios that a driven run did not perform; None for named files, or when all were performed."""
        return None if self._named else self.performed or Shortfall.from_folder(self._folder)

    def generated(self) -> GeneratedSummary | None:
        """The results of the generated sessions; None when there were none."""
        return None if self._named else GeneratedSummary.from_folder(self._folder)


def _place(path: Path) -> tuple[bool, Path]:
    """Sort key of a recording: scripted scenarios are easier to read, so they come first."""
    return path.stem in catalogue(), path
