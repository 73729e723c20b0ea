"""A comparison as lines for a terminal: by session, contract-relevant differences first, repeats folded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from click import style

from signet_conformance.diff.difference import Comparison, Difference, Kind
from signet_conformance.diff.folding import again, folded, place, texts, whose
from signet_conformance.diff.sessions import Matched
from signet_conformance.errors import printable
from signet_conformance.facts import Recording
from signet_conformance.reports.layout import command_line, faint, labelled, strong, usable_width

COSMETIC_SHOWN = 10
"""Cosmetic differences of a session that are told without being asked for."""

_COLOURS = {Kind.ADDED: "green", Kind.MISSING: "red", Kind.REORDERED: "yellow", Kind.CHANGED: "cyan"}


def comparison_lines(comparison: Comparison, width: int, colour: bool, *, show_all: bool = False) -> Iterator[str]:
    """The whole comparison but its closing line."""
    width = usable_width(width)
    for label, recording in (("A", comparison.first), ("B", comparison.second)):
        yield from _recording_lines(label, recording, width, colour)
    by_session: dict[int, list[Difference]] = {}
    for difference in comparison.differences:
        by_session.setdefault(difference.session, []).append(difference)
    matched = {pair.number: pair for pair in comparison.sessions}
    for number, differences in sorted(by_session.items()):
        yield ""
        yield from _session_lines(matched.get(number), width, colour)
        relevant = folded(difference for difference in differences if difference.relevant)
        cosmetic = folded(difference for difference in differences if not difference.relevant)
        for alike in relevant:
            yield from _relevant_lines(alike, width, colour)
        shown = cosmetic if show_all else cosmetic[:COSMETIC_SHOWN]
        for alike in shown:
            yield from _cosmetic_lines(alike, width, colour)
        if len(shown) < len(cosmetic):
            yield ""
            yield f"  {faint(f'{len(cosmetic) - len(shown)} more cosmetic differences: --all shows them', colour)}"


def closing_line(comparison: Comparison, colour: bool) -> str:
    """How many differences of each kind there are."""
    relevant = comparison.relevant
    cosmetic = len(comparison.differences) - relevant
    if comparison.empty:
        return "nothing was compared: neither recording holds an exchange (exit 3)"
    if not comparison.differences:
        return _painted("no difference", "green", colour)
    counted = f"{_count(relevant, 'contract-relevant difference')}, {cosmetic} cosmetic"
    return _painted(counted, "red" if relevant else "green", colour)


def _recording_lines(label: str, recording: Recording, width: int, colour: bool) -> Iterator[str]:
    keys = {call.key for call in recording.calls if call.key is not None}
    facts = [printable(recording.trace.path or "trace", 400), f"daemon {printable(recording.daemon_version, 40)}"]
    facts += [_count(len(recording.calls), "exchange"), _count(len(keys), "session")]
    yield from labelled(label, ", ".join(facts), width, colour)
    for warning in recording.trace.warnings:
        yield from labelled("", printable(warning, 600), width, colour)


def _session_lines(pair: Matched | None, width: int, colour: bool) -> Iterator[str]:
    if pair is None:
        yield strong("the recordings as a whole", colour)
        return
    if pair.any.key is None:
        yield strong("calls without a session key", colour)
        return
    yield strong(f"session {printable(pair.any.key, 80)}", colour)
    if pair.first is None or pair.second is None:
        yield from labelled("only in", "A" if pair.second is None else "B", width, colour)
    elif pair.first.key != pair.second.key:
        yield from labelled("in B", printable(pair.second.key, 80), width, colour)
    if named := whose(pair.any):
        yield from labelled("of", named, width, colour)


def _relevant_lines(alike: Sequence[Difference], width: int, colour: bool) -> Iterator[str]:
    first = alike[0]
    yield from _head_lines(first, width, colour, relevant=True)
    yield from _value_lines(first, width, colour)
    yield from labelled("read by", ", ".join(first.requirements), width, colour)
    yield command_line("explain", ["signet-conformance", "explain", *first.requirements], colour)
    if len(alike) > 1:
        yield from labelled("again", again(alike[1:]), width, colour)


def _cosmetic_lines(alike: Sequence[Difference], width: int, colour: bool) -> Iterator[str]:
    yield from _head_lines(alike[0], width, colour, relevant=False)
    yield from _value_lines(alike[0], width, colour)
    if len(alike) > 1:
        yield from labelled("again", again(alike[1:]), width, colour)


def _head_lines(difference: Difference, width: int, colour: bool, *, relevant: bool) -> Iterator[str]:
    yield ""
    kind = _painted(f"{difference.kind.value:<9}", _COLOURS[difference.kind], colour)
    weight = strong("contract-relevant", colour) if relevant else faint("cosmetic", colour)
    yield f"  {kind} {weight}"
    yield from labelled("where", place(difference), width, colour)
    if difference.member:
        yield from labelled("what", printable(difference.member, 200), width, colour)
    if difference.note:
        yield from labelled("note", difference.note, width, colour)


def _value_lines(difference: Difference, width: int, colour: bool) -> Iterator[str]:
    if difference.kind is not Kind.CHANGED:
        return
    for name, value in zip(("A", "B"), texts(difference.first, difference.second), strict=True):
        yield from labelled(name, value, width, colour)


def _painted(text: str, colour_name: str, colour: bool) -> str:
    return style(text, fg=colour_name, bold=True) if colour else text


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
