"""Where the time of a run went, as a table for a terminal."""

from __future__ import annotations

from itertools import groupby

from rich.table import Table
from rich.text import Text

from signet_conformance.outcome.time_spent import GROUPS, Part, TimeSpent
from signet_conformance.reports.terminal import FAINT, STRONG, drawn_table


def time_spent_lines(spent: TimeSpent, width: int | None, colour: bool = False) -> list[str]:
    """The table, and below it the phases and the CPU time, a line each."""
    table = Table(box=None, pad_edge=False)
    table.add_column(Text("where the time went", STRONG))
    for heading in ("seconds", "share", "times"):
        table.add_column(Text(heading, FAINT), justify="right")
    total = sum(seconds for seconds, _ in spent.parts.values())
    for group, parts in groupby(spent.parts, lambda part: GROUPS[part][0]):
        _add_group(table, group, [(part, *spent.parts[part]) for part in parts], total)
    phases = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in spent.phases.items())
    programs = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in spent.cpu_s.items())
    return [
        *drawn_table(table, width, colour),
        f"time, {spent.wall_s:.1f} s: {phases}; above, what {spent.workers} workers were at while driving",
        f"CPU time, {sum(spent.cpu_s.values()):.1f} s: {programs}",
    ]


def _add_group(table: Table, group: str, parts: list[tuple[Part, float, int]], total: float) -> None:
    _add(table, Text(group, STRONG), sum(seconds for _, seconds, _ in parts), total, None)
    for part, seconds, times in parts:
        _add(table, Text(f"  {GROUPS[part][1]}"), seconds, total, times)


def _add(table: Table, name: Text, seconds: float, total: float, times: int | None) -> None:
    share = f"{seconds / total:.0%}" if total else ""
    table.add_row(name, Text(f"{seconds:.2f}"), Text(share), Text("" if times is None else str(times)))
