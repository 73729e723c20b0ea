"""A comparison as lines for a terminal: by session, contract-relevant differences first, repeats folded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from signet_conformance.diff.alignment import SessionPair
from signet_conformance.diff.difference import (
    Comparison,
    Difference,
    DifferenceKind,
    fold_differences,
    more_like_it,
    place,
    session_facts,
    texts,
)
from signet_conformance.errors import counted, printable
from signet_conformance.facts import Recording
from signet_conformance.reports.terminal import FAINT, MAX_WIDTH, STRONG, draw, labelled, labelled_command, one_line

COSMETIC_SHOWN = 10
"""Cosmetic differences of a session that are shown without --all."""

_STYLES = {
    DifferenceKind.ADDED: "bold green",
    DifferenceKind.MISSING: "bold red",
    DifferenceKind.REORDERED: "bold yellow",
    DifferenceKind.CHANGED: "bold cyan",
}


def comparison_lines(comparison: Comparison, width: int, colour: bool, *, show_all: bool = False) -> Iterator[str]:
    """The whole comparison except its closing line."""
    for block in _blocks(comparison, show_all=show_all):
        yield from draw([*block], width, colour)


def _blocks(comparison: Comparison, *, show_all: bool) -> Iterator[Iterator[RenderableType]]:
    for label, recording in (("A", comparison.first), ("B", comparison.second)):
        yield _recording(label, recording)
    by_session: dict[int, list[Difference]] = {}
    for difference in comparison.differences:
        by_session.setdefault(difference.session, []).append(difference)
    matched = {pair.number: pair for pair in comparison.sessions}
    for number, differences in sorted(by_session.items()):
        yield _session(matched.get(number))
        relevant = fold_differences(difference for difference in differences if difference.relevant)
        remembered = [] if show_all else [difference for difference in differences if difference.is_remembered]
        cosmetic = fold_differences(
            difference
            for difference in differences
            if not difference.relevant and (show_all or not difference.is_remembered)
        )
        shown = cosmetic if show_all else cosmetic[:COSMETIC_SHOWN]
        yield from map(_differences, [*relevant, *shown])
        if len(shown) < len(cosmetic):
            yield _faint_line(f"{len(cosmetic) - len(shown)} more cosmetic differences: --all shows them")
        if remembered:
            answers = len({difference.first.exchange for difference in remembered})
            yield _faint_line(f"the daemon's own memories changed {counted(answers, 'answer')}: --all shows how")


def _faint_line(text: str) -> Iterator[RenderableType]:
    yield Text()
    yield Text.assemble("  ", (text, FAINT))


def closing_line(comparison: Comparison, colour: bool) -> str:
    """How many differences of each kind there are."""
    relevant = comparison.relevant
    cosmetic = len(comparison.differences) - relevant
    if comparison.empty:
        return "nothing was compared: neither recording holds an exchange (exit 3)"
    style = "bold red" if relevant else "bold green"
    found = f"{counted(relevant, 'contract-relevant difference')}, {cosmetic} cosmetic"
    (line,) = draw([one_line(Text(found if comparison.differences else "no difference", style))], MAX_WIDTH, colour)
    return line


def _recording(label: str, recording: Recording) -> Iterator[RenderableType]:
    keys = {call.key for call in recording.calls if call.key is not None}
    facts = [printable(recording.trace.path or "trace", 400), f"daemon {printable(recording.daemon_version, 40)}"]
    facts += [counted(len(recording.calls), "exchange"), counted(len(keys), "session")]
    yield labelled(label, ", ".join(facts))
    yield from (labelled("", printable(warning, 600)) for warning in recording.trace.warnings)


def _session(pair: SessionPair | None) -> Iterator[RenderableType]:
    yield Text()
    if pair is None:
        yield Text("the recordings as a whole", STRONG)
        return
    if pair.any.key is None:
        yield Text("calls without a session key", STRONG)
        return
    yield one_line(Text(f"session {printable(pair.any.key, 80)}", STRONG))
    yield from (labelled(label, text) for label, text in session_facts(pair, 80) if text)


def _differences(alike: Sequence[Difference]) -> Iterator[RenderableType]:
    """The first of several similar differences, and where the others are."""
    difference = alike[0]
    kind = difference.kind
    weight = Text("contract-relevant", STRONG) if difference.relevant else Text("cosmetic", FAINT)
    yield Text()
    yield Text.assemble("  ", (kind.value, _STYLES[kind]), " " * (10 - len(kind.value)), weight)
    yield labelled("where", place(difference))
    if difference.member:
        yield labelled("what", printable(difference.member, 200))
    if sent := difference.first.sent or difference.second.sent:
        yield labelled("sent", sent)
    if difference.note:
        yield labelled("note", difference.note)
    if kind is DifferenceKind.CHANGED:
        for name, value in zip(("A", "B"), texts(difference.first, difference.second), strict=True):
            yield labelled(name, value)
    if difference.relevant:
        yield labelled("read by", ", ".join(difference.requirements))
        yield labelled_command("explain", ["signet-conformance", "explain", *difference.requirements])
    if len(alike) > 1:
        yield labelled("again", more_like_it(alike[1:]))
