"""A recording that is too large to be held, judged piece by piece."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from signet_conformance.children.spread import spread
from signet_conformance.contract import requirements
from signet_conformance.engine.tally import Tally
from signet_conformance.facts import Lightened, NeedsWholeError, Recording
from signet_conformance.rules.by_exchange import exchange_rules
from signet_conformance.rules.fields import MOST_EXPLAINED
from signet_conformance.rules.outcome import Rule
from signet_conformance.trace import Trace
from signet_conformance.trace.marks import StepMark, marks_of
from signet_conformance.trace.shelf import Shelf


def by_pieces(
    trace: Trace, version: str | None, names: Collection[str], workers: int
) -> tuple[Recording, Mapping[str, Tally]]:
    """The recording of a trace; and where its exchanges are not held, what its pieces came to by requirements.

    Those are the requirements whose rules look at one exchange after the other. What such a rule yields over the pieces
    is what it would yield over the whole; where it is not, the requirement is left out.
    """
    exchanges = trace.exchanges
    # An answer may excuse what the marks of a driven run show, and only the whole recording tells which.
    if not isinstance(exchanges, Shelf) or any(marks_of(trace, StepMark)):
        return Recording(trace, version), {}
    by_exchange = exchange_rules()
    tallies = {name: Tally() for name in names if name in by_exchange}
    lightened = Lightened(exchanges)

    def judge_piece(place: slice) -> tuple[dict[str, Tally | None], list[tuple[Any, ...]]]:
        piece = Recording(replace(trace, exchanges=exchanges[place]), version, piece=True)
        told = {name: _over_piece(by_exchange[name], piece) for name in tallies}
        lightened.take(piece.calls)
        return told, lightened.packed() if workers > 1 else []

    for told, packed in spread(judge_piece, list(exchanges.pieces()), workers):
        lightened.unpack(packed)
        for name in list(tallies):
            more = told.get(name)
            if more is not None:
                tallies[name].add(more)
            entry = requirements().get(name)
            explained = entry is not None and entry.check is not None
            # Of the whole recording no more breaches are explained.
            if more is None or (explained and len(tallies[name].findings) > MOST_EXPLAINED):
                del tallies[name]
    return Recording(trace, version, calls=lightened.calls), tallies


def _over_piece(rule: Rule, piece: Recording) -> Tally | None:
    """What a rule yields over a piece; None where it needs the whole."""
    tally = Tally()
    try:
        tally.run(rule, piece)
    except NeedsWholeError:
        return None
    return tally
