"""A comparison as one HTML page: contract-relevant differences first, each with both values and its readers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from html import escape
from itertools import groupby
from typing import TextIO

from signet_conformance import __version__
from signet_conformance.diff.alignment import SessionPair
from signet_conformance.diff.difference import (
    Comparison,
    Difference,
    DifferenceKind,
    SideValue,
    fold_differences,
    more_like_it,
    place,
    session_facts,
    texts,
)
from signet_conformance.diff.exchanges import body_of
from signet_conformance.diff.text import closing_line
from signet_conformance.errors import printable
from signet_conformance.facts import Call, Recording
from signet_conformance.reports.html.exchange_data import MAX_BODY, body_data
from signet_conformance.reports.html.page import (
    MAX_TEXT,
    Markup,
    element,
    facts,
    filter_form,
    joined,
    requirement_page,
    write_page,
)
from signet_conformance.trace import Body

MAX_SHOWN = 2000
"""How many differences one section shows, repeats counted once; the others are counted."""

_NOTHING = "nothing of this kind differs"


def write(comparison: Comparison, stream: TextIO) -> None:
    """Write the page."""
    relevant = [difference for difference in comparison.differences if difference.relevant]
    remembered = [difference for difference in comparison.differences if difference.is_remembered]
    cosmetic = [
        difference for difference in comparison.differences if not (difference.relevant or difference.is_remembered)
    ]
    matched = {pair.number: pair for pair in comparison.sessions}
    bodies = Bodies(comparison)
    header = (
        element("p", closing_line(comparison, colour=False), class_="lead"),
        facts((("A", _recording(comparison.first)), ("B", _recording(comparison.second)), ("kit", __version__))),
    )
    sections = [
        ("relevant", "Contract-relevant differences", _differences(relevant, matched, bodies)),
        ("cosmetic", "Cosmetic differences", _differences(cosmetic, matched, bodies)),
    ]
    if remembered:
        # A section of its own, so that the filters of the cosmetic differences do not hide it.
        folded = element(
            "details", element("summary", f"{len(remembered)} in answers"), _differences(remembered, matched, bodies)
        )
        sections.append(("remembered", "What the daemon's own memories changed", folded))
    write_page(stream, "Signet conformance: two recordings compared", header, sections)


def _recording(recording: Recording) -> str:
    keys = {call.key for call in recording.calls if call.key is not None}
    name = recording.trace.path or "trace"
    return f"{name}, daemon {recording.daemon_version}, exchanges: {len(recording.calls)}, sessions: {len(keys)}"


def _differences(differences: Sequence[Difference], matched: dict[int, SessionPair], bodies: Bodies) -> Markup:
    if not differences:
        return element("p", _NOTHING)
    left_out_before = bodies.left_out
    ordered = sorted(differences, key=lambda difference: difference.session)
    groups = [
        (number, alike)
        for number, own in groupby(ordered, key=lambda difference: difference.session)
        for alike in fold_differences(own)
    ]
    tally = Counter(alike[0].kind for _, alike in groups)
    parts = [filter_form((kind.value, kind.value, tally[kind]) for kind in DifferenceKind)]
    for number, shown in groupby(groups[:MAX_SHOWN], key=lambda group: group[0]):
        parts += _session(matched.get(number))
        parts += [_article(alike, bodies) for _, alike in shown]
    if len(groups) > MAX_SHOWN:
        parts.append(element("p", f"{len(groups) - MAX_SHOWN} more are not in this page: --json has them."))
    if left_out := bodies.left_out - left_out_before:
        parts.append(element("p", f"The bodies of {left_out} more are not in this page, to keep it small."))
    return joined(parts)


def _session(pair: SessionPair | None) -> Iterator[Markup]:
    if pair is None:
        yield element("h3", "The recordings as a whole")
        return
    if pair.any.key is None:
        yield element("h3", "Calls without a session key")
        return
    yield element("h3", "Session ", element("bdi", pair.any.key))
    yield facts(session_facts(pair, MAX_TEXT))


def _article(alike: Sequence[Difference], bodies: Bodies) -> Markup:
    first = alike[0]
    head = element("h4", element("span", first.kind.value, class_="kind"), ": ", first.member or "the whole exchange")
    rows: list[tuple[str, str | Markup]] = [("where", place(first)), ("note", first.note)]
    sent = first.first.sent or first.second.sent
    rows += [("sent", element("code", sent))] if sent else []
    if first.kind is DifferenceKind.CHANGED:
        ours, theirs = texts(first.first, first.second)
        rows += [("A", element("code", ours)), ("B", element("code", theirs))]
    if first.requirements:
        pages = (element("li", f"{name}: ", requirement_page(name)) for name in first.requirements)
        rows.append(("read by", element("ul", pages, class_="plain")))
    if len(alike) > 1:
        rows.append(("again", more_like_it(alike[1:])))
    return element("article", head, facts(rows), bodies.beside(first), data_kind=first.kind.value)


MAX_LINES = 400
"""The most lines of a body in which differences are marked."""
_MOST_CHARACTERS = 8_000_000
"""Of all bodies of a page together."""


class Bodies:
    """The bodies that a page shows while it has room; those left out are counted."""

    def __init__(self, comparison: Comparison) -> None:
        self._calls = comparison.first.by_seq, comparison.second.by_seq
        self._room = _MOST_CHARACTERS
        self.left_out = 0

    def beside(self, difference: Difference) -> Markup:
        """Both bodies of a difference, folded; empty if neither side has one."""
        answer = any(side.pointer.startswith("/response") for side in (difference.first, difference.second))
        sides = (difference.first, difference.second)
        bodies = [_body(calls, side, answer) for calls, side in zip(self._calls, sides, strict=True)]
        if bodies == [None, None]:
            return Markup()
        data = [None if body is None else body_data(body) for body in bodies]
        self._room -= sum(len(each["body"]) for each in data if each is not None)
        if self._room < 0:
            self.left_out += 1
            return Markup()
        lines = [[] if each is None else str(each["body"]).split("\n") for each in data]
        drawn = []
        for name, side, each, own, marked in zip("AB", sides, data, lines, _marked(*lines), strict=True):
            if side.exchange is None:
                continue
            if each is None:
                drawn.append(element("div", element("p", f"{name}: no body", class_="quiet")))
                continue
            note = f", {each['note']}" if "note" in each else ""
            label = f"{name} #{side.exchange}, body of the {'answer' if answer else 'request'}"
            body = element("pre", _lines(own, marked), tabindex=0, role="region", aria_label=label)
            drawn.append(element("div", element("p", f"{label}{note}", class_="quiet"), body))
        return element(
            "details",
            element("summary", "Both bodies" if len(drawn) > 1 else "The body"),
            element("div", *drawn, class_="beside"),
        )


def _body(calls: Mapping[int, Call], side: SideValue, answer: bool) -> Body | None:
    call = None if side.exchange is None else calls.get(side.exchange)
    return None if call is None else body_of(call, "response" if answer else "request")


def _marked(first: Sequence[str], second: Sequence[str]) -> tuple[set[int], set[int]]:
    """The lines of each body that the other lacks; none if a body is missing or longer than MAX_LINES."""
    marked: tuple[set[int], set[int]] = set(), set()
    if not first or not second or max(len(first), len(second)) > MAX_LINES:
        return marked
    for what, begin, end, other_begin, other_end in SequenceMatcher(None, first, second, autojunk=False).get_opcodes():
        if what != "equal":
            marked[0].update(range(begin, end))
            marked[1].update(range(other_begin, other_end))
    return marked


def _lines(lines: Sequence[str], marked: set[int]) -> Iterator[Markup]:
    for number, line in enumerate(lines):
        shown = Markup(escape(printable(line, MAX_BODY)))
        yield joined([element("mark", shown) if number in marked else shown, Markup("\n")])
