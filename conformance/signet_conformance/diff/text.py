"""A comparison as lines for a terminal: by session, contract-relevant differences first, repeats folded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from click import style

from signet_conformance.diff.difference import ABSENT, Comparison, Difference, Kind, Side
from signet_conformance.diff.sessions import Matched, Session
from signet_conformance.errors import printable
from signet_conformance.facts import Recording
from signet_conformance.reports.layout import command_line, faint, labelled, strong, usable_width
from signet_conformance.reports.values import as_text

COSMETIC_SHOWN = 10
"""Cosmetic differences of a session that are told without being asked for."""

_COLOURS = {Kind.ADDED: "green", Kind.MISSING: "red", Kind.REORDERED: "yellow", Kind.CHANGED: "cyan"}
_VALUE_LENGTH = 160


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
        relevant = _folded(difference for difference in differences if difference.relevant)
        cosmetic = _folded(difference for difference in differences if not difference.relevant)
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
    if whose := _whose(pair.any):
        yield from labelled("of", whose, width, colour)


def _whose(session: Session) -> str:
    named = (("harness", session.harness), ("agent", session.agent), ("project", session.project))
    return ", ".join(f"{name} {printable(value, 80)}" for name, value in named if value)


def _folded(differences: Iterable[Difference]) -> list[list[Difference]]:
    """The differences in order, those of one kind at one place in the same kind of call put together."""
    found: dict[tuple[object, ...], list[Difference]] = {}
    for difference in differences:
        place = (difference.kind, difference.call, difference.member, difference.requirements, difference.note)
        found.setdefault(place, []).append(difference)
    return list(found.values())


def _relevant_lines(alike: Sequence[Difference], width: int, colour: bool) -> Iterator[str]:
    first = alike[0]
    yield from _head_lines(first, width, colour, relevant=True)
    yield from _value_lines(first, width, colour)
    yield from labelled("read by", ", ".join(first.requirements), width, colour)
    yield command_line("explain", ["signet-conformance", "explain", first.requirements[0]], colour)
    if len(alike) > 1:
        yield from labelled("again", _again(alike[1:]), width, colour)


def _cosmetic_lines(alike: Sequence[Difference], width: int, colour: bool) -> Iterator[str]:
    yield from _head_lines(alike[0], width, colour, relevant=False)
    yield from _value_lines(alike[0], width, colour)
    if len(alike) > 1:
        yield from labelled("again", _again(alike[1:]), width, colour)


def _head_lines(difference: Difference, width: int, colour: bool, *, relevant: bool) -> Iterator[str]:
    yield ""
    kind = _painted(f"{difference.kind.value:<9}", _COLOURS[difference.kind], colour)
    weight = strong("contract-relevant", colour) if relevant else faint("cosmetic", colour)
    yield f"  {kind} {weight}"
    yield from labelled("where", " ".join([printable(difference.call, 200), *_numbers(difference)]), width, colour)
    if difference.member:
        yield from labelled("what", printable(difference.member, 200), width, colour)
    if difference.note:
        yield from labelled("note", difference.note, width, colour)


def _numbers(difference: Difference) -> list[str]:
    sides = (("A", difference.first), ("B", difference.second))
    return [f"{name} #{side.exchange}" for name, side in sides if side.exchange is not None]


def _value_lines(difference: Difference, width: int, colour: bool) -> Iterator[str]:
    if difference.kind is not Kind.CHANGED:
        return
    for name, value in zip(("A", "B"), _texts(difference.first, difference.second), strict=True):
        yield from labelled(name, value, width, colour)


def _texts(first: Side, second: Side) -> tuple[str, str]:
    """Both values; of two long texts, the part where they part."""
    if isinstance(first.value, str) and isinstance(second.value, str):
        ours, theirs = _around_difference(first.value, second.value)
        return as_text(ours, _VALUE_LENGTH), as_text(theirs, _VALUE_LENGTH)
    return _value(first.value), _value(second.value)


def _value(value: Any) -> str:
    return "nothing: it is absent" if value is ABSENT else as_text(value, _VALUE_LENGTH)


def _around_difference(first: str, second: str) -> tuple[str, str]:
    shorter = min(len(first), len(second))
    if shorter < _VALUE_LENGTH // 2:
        return first, second
    same, step = 0, 1 << shorter.bit_length()
    while step := step >> 1:
        # Comparing whole halves is fast even for texts of many megabytes.
        if same + step <= shorter and first[same : same + step] == second[same : same + step]:
            same += step
    cut = max(0, same - 30)
    dots = "…" if cut else ""
    return dots + first[cut : cut + _VALUE_LENGTH], dots + second[cut : cut + _VALUE_LENGTH]


def _again(others: Sequence[Difference]) -> str:
    numbers = [" ".join(_numbers(other)) for other in others[:6]]
    more = ", …" if len(others) > len(numbers) else ""
    return f"{len(others)} more like it: {', '.join(numbers)}{more}"


def _painted(text: str, colour_name: str, colour: bool) -> str:
    return style(text, fg=colour_name, bold=True) if colour else text


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
