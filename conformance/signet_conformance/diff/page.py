"""A comparison as one HTML page: contract-relevant differences first, each with both values and its readers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TextIO

from signet_conformance import __version__
from signet_conformance.diff.bodies import Bodies
from signet_conformance.diff.difference import Comparison, Difference, Kind
from signet_conformance.diff.folding import again, folded, place, texts, whose
from signet_conformance.diff.sessions import Matched
from signet_conformance.diff.text import closing_line
from signet_conformance.facts import Recording
from signet_conformance.reports.html.markup import Markup, element, joined
from signet_conformance.reports.html.page import facts, filter_form, requirement_page, write_page

MAX_SHOWN = 2000
"""Differences in one section, repeats counted once; the others are counted."""

_NOTHING = "nothing of this kind differs"


def write(comparison: Comparison, stream: TextIO) -> None:
    """Write the page."""
    relevant = [difference for difference in comparison.differences if difference.relevant]
    cosmetic = [difference for difference in comparison.differences if not difference.relevant]
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
    write_page(stream, "Signet conformance: two recordings compared", header, sections)


def _recording(recording: Recording) -> str:
    keys = {call.key for call in recording.calls if call.key is not None}
    name = recording.trace.path or "trace"
    return f"{name}, daemon {recording.daemon_version}, exchanges: {len(recording.calls)}, sessions: {len(keys)}"


def _differences(differences: Sequence[Difference], matched: dict[int, Matched], bodies: Bodies) -> Markup:
    if not differences:
        return element("p", _NOTHING)
    left_out_before = bodies.left_out
    ordered = sorted(differences, key=lambda difference: difference.session)
    groups = [
        (number, alike)
        for number, own in groupby(ordered, key=lambda difference: difference.session)
        for alike in folded(own)
    ]
    tally = Counter(alike[0].kind for _, alike in groups)
    parts = [filter_form((kind.value, kind.value, tally[kind]) for kind in Kind)]
    for number, shown in groupby(groups[:MAX_SHOWN], key=lambda group: group[0]):
        parts += _session(matched.get(number))
        parts += [_article(alike, bodies) for _, alike in shown]
    if len(groups) > MAX_SHOWN:
        parts.append(element("p", f"{len(groups) - MAX_SHOWN} more are not in this page: --json has them."))
    if left_out := bodies.left_out - left_out_before:
        parts.append(element("p", f"The bodies of {left_out} more are not in this page, to keep it small."))
    return joined(parts)


def _session(pair: Matched | None) -> Iterator[Markup]:
    if pair is None:
        yield element("h3", "The recordings as a whole")
        return
    if pair.any.key is None:
        yield element("h3", "Calls without a session key")
        return
    yield element("h3", "Session ", element("bdi", pair.any.key))
    only = "" if pair.first is not None and pair.second is not None else "A" if pair.second is None else "B"
    other = pair.second.key if pair.first is not None and pair.second is not None else None
    in_b = other if other is not None and other != pair.any.key else ""
    yield facts((("only in", only), ("in B", in_b), ("of", whose(pair.any))))


def _article(alike: Sequence[Difference], bodies: Bodies) -> Markup:
    first = alike[0]
    head = element("h4", element("span", first.kind.value, class_="kind"), ": ", first.member or "the whole exchange")
    rows: list[tuple[str, str | Markup]] = [("where", place(first)), ("note", first.note)]
    sent = first.first.sent or first.second.sent
    rows += [("sent", element("code", sent))] if sent else []
    if first.kind is Kind.CHANGED:
        ours, theirs = texts(first.first, first.second)
        rows += [("A", element("code", ours)), ("B", element("code", theirs))]
    if first.requirements:
        pages = (element("li", f"{name}: ", requirement_page(name)) for name in first.requirements)
        rows.append(("read by", element("ul", pages, class_="plain")))
    if len(alike) > 1:
        rows.append(("again", again(alike[1:])))
    return element("article", head, facts(rows), bodies.beside(first), data_kind=first.kind.value)
