"""What was judged: which file or how many, against which daemon, what is declared, and what is off about it."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import RenderableType
from rich.text import Text

from signet_conformance.engine import Judged
from signet_conformance.errors import counted, printable
from signet_conformance.outcome.broken_off import broke_off
from signet_conformance.reports.remarks import remarks
from signet_conformance.reports.terminal import STRONG, Paragraph, drawn, labelled_command, one_line

MAX_NAMES = 6
MAX_NOTES = 20


class Headings:
    """Gathers what a run judged, and the notes about its traces: each note once, with the first traces it is about."""

    def __init__(self) -> None:
        self._files: list[str] = []
        self._exchanges = 0
        self._daemons: dict[str, None] = {}
        self._harnesses: dict[str, None] = {}
        self._agents: dict[str, None] = {}
        self._notes: dict[str, list[str]] = {}
        self._broken_off: str | None = None

    def add(self, judged: Judged) -> None:
        """Take one trace."""
        trace = judged.trace
        declared = trace.header.declared
        file = printable(trace.path or "trace", 400)
        self._files.append(file)
        self._exchanges += len(trace.exchanges)
        self._daemons[printable(judged.daemon_version, 40)] = None
        if declared.harness is not None:
            self._harnesses[printable(declared.harness, 60)] = None
        self._agents.update(dict.fromkeys(printable(agent, 60) for agent in declared.agents))
        for note in (*trace.warnings, *remarks([trace])):
            self._notes.setdefault(f"note: {printable(note, 600)}", []).append(file)
        if (why := broke_off(trace)) is not None:
            told = f"the scenario was broken off, so its trace decides nothing: {printable(why, 600)}"
            self._notes.setdefault(told, []).append(file)
            self._broken_off = self._broken_off or trace.path

    def lines(self, width: int, colour: bool = False) -> list[str]:
        """The heading; empty where nothing was judged."""
        if not self._files:
            return []
        alone = len(self._files) == 1
        what = self._files[0] if alone else counted(len(self._files), "trace")
        facts = [
            f"daemon {_listed(self._daemons)}",
            counted(self._exchanges, "exchange"),
            *([f"harness {_listed(self._harnesses)}"] if self._harnesses else []),
            f"agents {_listed(self._agents)}" if self._agents else "no agent declared",
        ]
        block: list[RenderableType] = [one_line(Text.assemble((what, STRONG))), Paragraph(", ".join(facts), 2)]
        for note, files in list(self._notes.items())[:MAX_NOTES]:
            block.append(Paragraph(note if alone else f"{note} ({_listed(files, 3)})", 2, 4))
        if (more := len(self._notes) - MAX_NOTES) > 0:
            block.append(Paragraph(f"{counted(more, 'more note')}: --json lists them", 2))
        if self._broken_off is not None:
            block.append(labelled_command("so far", ["signet-conformance", "show", self._broken_off]))
        return drawn(block, width, colour)


def _listed(names: Iterable[str], most: int = MAX_NAMES) -> str:
    every = list(names)
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return f"{', '.join(every[:most])}{more}"
