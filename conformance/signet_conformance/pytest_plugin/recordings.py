"""The recordings of a pytest run: read once a process, as the run declares them, those that broke off left out."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path

from signet_conformance import trace
from signet_conformance.contract import daemon_requirements, requirements
from signet_conformance.outcome.broken_off import Shortfall
from signet_conformance.outcome.generated_summary import Summary
from signet_conformance.running.request import Request


class Recordings:
    """What a run judges: the recordings that were named, or those that driving left in its folder."""

    def __init__(self, asked: Request) -> None:
        self._asked = asked
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
            found = sorted(self._asked.folder.glob("*.jsonl"), key=_place)
            paths: Iterable[Path | str] = self._asked.recordings or found
            read = [self._declared(trace.read(path)) for path in paths]
            shortfall = self.shortfall()
            self._traces = read if shortfall is None else shortfall.judged(read)
        return self._traces

    def _declared(self, recorded: trace.Trace) -> trace.Trace:
        """The trace, with what the target declares in front of what its header does."""
        if self._asked.target is None:
            return recorded
        said, header = self._asked.target.declared, recorded.header
        members = [member.name for member in dataclasses.fields(trace.Declared)]
        declared = trace.Declared(**{name: getattr(said, name) or getattr(header.declared, name) for name in members})
        return dataclasses.replace(recorded, header=dataclasses.replace(header, declared=declared))

    def shortfall(self) -> Shortfall | None:
        """What a driven run could not perform; None when nothing was asked of a connector, or all was done."""
        return None if self._asked.recordings else self.performed or Shortfall.read(self._asked.folder)

    def summary(self) -> Summary | None:
        """What came of the generated sessions; None when there were none."""
        return Summary.read(self._asked.folder)

    def hold_anything(self) -> bool:
        """Whether the connector made any request at all, in a generated session or elsewhere."""
        summary = self.summary()
        return any(one.exchanges for one in self.read) or (summary is not None and summary.tally.exchanges > 0)


def _place(path: Path) -> tuple[bool, Path]:
    """Where a recording stands: scripted scenarios show more at a glance than what generated sessions confirm."""
    return path.stem in requirements() or path.stem in daemon_requirements(), path
