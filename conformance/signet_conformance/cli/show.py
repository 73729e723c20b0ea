"""`signet-conformance show`: a recording as a timeline, while it is made or afterwards.

Examples:
  signet-conformance show run.jsonl
  signet-conformance show run.jsonl --operation 'session-*' --agent atlas-agent
  signet-conformance show run.jsonl --requirement SIG-AGENT-002 --bodies
  signet-conformance show run.jsonl --exchange 12
  signet-conformance show run.jsonl --follow

NAME may be a glob; - matches calls without session or operation.

Exit status: 0, whatever was found; 2 wrong usage or an unreadable file.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import click
from msgspec.structs import replace

from signet_conformance.cli.commands import epilog_of
from signet_conformance.cli.recordings import read_recording
from signet_conformance.cli.shared_options import select_requirements
from signet_conformance.engine import judge
from signet_conformance.errors import TraceError, UsageError, first_of, os_errors, printable
from signet_conformance.facts import Recording
from signet_conformance.reports.command_lines import shell_command
from signet_conformance.reports.terminal import Paragraph, draw, terminal_width, wants_colour
from signet_conformance.reports.timeline import Filter, TimelineText, findings_of
from signet_conformance.trace import Trace

_POLL_S = 0.2
_PAUSE_FACTOR = 4
"""The pause before a growing recording is read again, in multiples of the time of the last reading."""

_MOST_NAMES = 8
"""How many known names a message lists when a filter matches nothing."""


@click.command(
    "show",
    help="Show the recording TRACE as a timeline: who called what, when, how long, with findings beside the exchange.",
    epilog=epilog_of(__doc__),
)
@click.argument("trace", metavar="TRACE")
@click.option("--session", metavar="NAME", help="Only calls with this session key.")
@click.option("--agent", metavar="NAME", help="Only calls that run as this agent.")
@click.option("--operation", metavar="NAME", help="Only calls of this operation or path.")
@click.option(
    "--requirement",
    "-k",
    "only",
    multiple=True,
    metavar="ID",
    help="Only exchanges with a finding about this requirement; repeatable.",
)
@click.option(
    "--exchange",
    "exchanges",
    multiple=True,
    type=int,
    metavar="N",
    help="Only exchange N, with its bodies; repeatable.",
)
@click.option("--bodies", is_flag=True, help="Show headers and bodies.")
@click.option("--follow", "-f", is_flag=True, help="Continue while the recording grows; Ctrl-C ends it.")
@click.option(
    "--until-idle", type=float, metavar="SECONDS", help="End --follow when nothing was recorded for that long."
)
def command(
    *,
    trace: str,
    session: str | None,
    agent: str | None,
    operation: str | None,
    only: tuple[str, ...],
    exchanges: tuple[int, ...],
    bodies: bool,
    follow: bool,
    until_idle: float | None,
) -> int:
    """Show the recording; with --follow, show each finding as soon as it is made."""
    if until_idle is not None and not (follow and until_idle > 0):
        raise UsageError(
            "needs --follow, and a number above zero", where="--until-idle", remedy="--follow --until-idle 5"
        )
    requirements = select_requirements(only, "-k/--requirement")
    chosen = Filter(session, agent, operation, frozenset(exchanges))
    timeline = TimelineText(terminal_width(), wants_colour(sys.stdout), bodies=bodies or bool(exchanges))
    if follow:
        return _follow(trace, timeline, chosen, until_idle, requirements)
    return _show(read_recording(trace), timeline, chosen, requirements)


def _show(trace: Trace, timeline: TimelineText, chosen: Filter, only: frozenset[str] | None) -> int:
    judged = judge(trace, only)
    recording = judged.recording
    numbers = [call.seq for call in recording.calls]
    if unknown := sorted(chosen.exchanges.difference(numbers)):
        near = sorted(sorted(numbers, key=lambda number: abs(number - unknown[0]))[:4])
        raise UsageError(
            f"#{unknown[0]} is no exchange",
            where="--exchange",
            remedy=f"one of {', '.join(map(str, near))}" if near else "a recording that holds an exchange",
        )
    findings = findings_of(judged, only)
    marks = chosen.everything
    if only is not None:
        chosen = replace(chosen, selected=frozenset(findings))
        marks = False
    _print(timeline.heading(recording))
    _print(timeline.lines(recording, chosen.admits, findings, marks=marks))
    if not any(map(chosen.admits, recording.calls)):
        _print(draw(_explain_empty(recording, chosen, only), terminal_width()))
    elsewhere = [finding for number, group in findings.items() if number not in numbers for finding in group]
    if elsewhere and (marks or only is not None):
        print("beside no exchange:")
        _print(timeline.finding_lines(elsewhere))
    return 0


def _explain_empty(recording: Recording, chosen: Filter, only: frozenset[str] | None) -> Iterator[Paragraph]:
    """Why no exchange is shown, and which names the filters could use."""
    if not recording.calls:
        yield Paragraph("the recording holds no exchange")
        return
    yield Paragraph("no exchange is shown: none matches all filters")
    filters = (
        ("--session", chosen.session, [call.key for call in recording.calls]),
        ("--agent", chosen.agent, [call.agent for call in recording.calls]),
        ("--operation", chosen.operation, [call.operation or call.path for call in recording.calls]),
    )
    for option, wanted, names in filters:
        if wanted is not None:
            known = first_of((printable(name or "-", 60) for name in dict.fromkeys(names)), _MOST_NAMES)
            yield Paragraph(f"{option} is one of {known}", 2, 4)
    if only is not None:
        yield Paragraph("--requirement: none of these exchanges has a finding about it", 2, 4)


def _follow(
    path: str, timeline: TimelineText, chosen: Filter, until_idle: float | None, only: frozenset[str] | None
) -> int:
    shown: set[int] = set()
    printed: set[tuple[str, tuple[int, ...]]] = set()
    try:
        for number, trace in enumerate(_growing(path, until_idle)):
            judged = judge(replace(trace, growing=True), only)
            recording = judged.recording
            if number == 0:
                _print(timeline.heading(recording))
            findings = findings_of(judged, only)
            _print(timeline.lines(recording, chosen.admits, findings, marks=chosen.everything, shown=shown))
            for seq, group in findings.items():
                # New findings about an exchange that was shown before.
                was_shown = seq in shown
                new = [(name, each) for name, each in group if was_shown and (name, each.exchanges) not in printed]
                _print(timeline.finding_lines(new, of=seq))
                printed.update((name, each.exchanges) for name, each in group)
            # Exchanges are numbered when they begin and written when they end, so a lower number may come later.
            shown.update(call.seq for call in recording.calls)
            shown.update(mark.seq for mark in trace.marks)
            sys.stdout.flush()
    except KeyboardInterrupt:
        pass
    print(f"findings: {shell_command(['signet-conformance', 'show', path])}")
    return 0


def _growing(path: str, until_idle: float | None) -> Iterator[Trace]:
    """Yield the recording each time it has grown; end if it has not grown for `until_idle` seconds."""
    known_size = -1
    last_growth = time.monotonic()
    while until_idle is None or time.monotonic() - last_growth < until_idle:
        began = time.monotonic()
        size = _size(path)
        if size not in (known_size, 0):
            known_size, last_growth = size, began
            yield read_recording(path)
        # No event announces on every system that another program has written to the file.
        time.sleep(max(_POLL_S, _PAUSE_FACTOR * (time.monotonic() - began)))


def _size(path: str) -> int:
    with os_errors("cannot be read", where=path, remedy="start the recording first", error=TraceError):
        return Path(path).stat().st_size


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        print(line)
