"""What a run judges: the recordings that were named, or those that driving left in its folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from signet_conformance import trace
from signet_conformance.contract import catalogue
from signet_conformance.outcome.broken_off import Shortfall
from signet_conformance.outcome.generated_summary import Summary
from signet_conformance.trace.recordings import recordings_in


class Recordings:
    """The recordings of a run, read once a process; of a driven run those that broke off are left out.

    `named` are files; without them all traces in `folder` count.
    """

    def __init__(self, folder: Path, named: Sequence[str | Path] = ()) -> None:
        self._folder = folder
        self._named = named
        self._traces: list[trace.Trace] | None = None
        self.performed: Shortfall | None = None
        """What the process that drove the run could not perform; the others read it from the folder."""

    @property
    def read(self) -> Sequence[trace.Trace]:
        """Those that have been read so far."""
        return self._traces or ()

    def traces(self) -> Sequence[trace.Trace]:
        """All of them. Raises TraceError for one that cannot be read."""
        if self._traces is None:
            driven = sorted(recordings_in(self._folder), key=_place)
            read = [trace.read(path) for path in self._named or driven]
            shortfall = self.shortfall()
            self._traces = read if shortfall is None else shortfall.judged(read)
        return self._traces

    def shortfall(self) -> Shortfall | None:
        """What a driven run could not perform; None when nothing was asked of a connector, or all was done."""
        return None if self._named else self.performed or Shortfall.read(self._folder)

    def generated(self) -> Summary | None:
        """The results of the generated sessions; None when there were none."""
        return None if self._named else Summary.read(self._folder)


def _place(path: Path) -> tuple[bool, Path]:
    """The place of a recording in the order: scripted scenarios are easier to read, so they come first."""
    return path.stem in catalogue(), path
