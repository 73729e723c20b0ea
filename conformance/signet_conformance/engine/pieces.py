"""Judges a recording whose exchanges stay in its file, piece by piece, by the rules whose scope allows it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from heapq import merge
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

from msgspec.structs import replace

from signet_conformance.children.spread import spread
from signet_conformance.contract import Scope, daemon_requirements, requirements
from signet_conformance.engine.folding import Tally
from signet_conformance.facts import Call, NeedsWholeError, Recording
from signet_conformance.facts.light_calls import LightCalls, PackedFacts, pack_calls
from signet_conformance.rules import builtin_rules, daemon_rules, injected, rules
from signet_conformance.rules.excuses import excuse_breach
from signet_conformance.rules.fields import MOST_EXPLAINED
from signet_conformance.rules.outcome import Rule
from signet_conformance.rules.prompt import prompts_answered_before
from signet_conformance.trace import Trace
from signet_conformance.trace.file_exchanges import FileExchanges
from signet_conformance.trace.marks import StepMark, marks_of

SECOND_ROUND: Mapping[str, Rule] = {"SIG-PROMPT-007": injected.injected_text_stays_out}
"""The rules that run over the pieces in a second round, when the facts of the whole recording are known."""


def rules_by(scope: Scope) -> Mapping[str, Rule]:
    """The built-in rules whose entries have a scope, on the connector and on the daemon, by requirement id.

    Over a recording, a rule by exchange yields the same as over its pieces, one after the other. A rule by session
    does so if no session is in two pieces. A rule that needs the whole asks for it by `Recording.whole`, and is then
    run again over the whole.
    """
    built_in, entries = builtin_rules(), {**requirements(), **daemon_requirements()}
    known = {name: rule for name, rule in rules().items() if rule is built_in.get(name)} | dict(daemon_rules())
    return {name: rule for name, rule in known.items() if entries[name].scope == scope}


_MOST_TROUBLED = 1000
"""Every piece gets the list of the exchanges that failed; if more did, rules that need the list see the whole."""
_Tallies = Mapping[str, Tally | None]


def by_pieces(
    trace: Trace, version: str | None, names: Collection[str], workers: int
) -> tuple[Recording, Mapping[str, Tally]]:
    """The recording of a trace; if it is not held in memory, also the tallies over its pieces, by requirement.

    A requirement is left out if its rule might yield something else over the whole than over the pieces.
    """
    # With the marks of a driven run an answer elsewhere in the recording may excuse a breach.
    if not isinstance(trace.exchanges, FileExchanges) or any(marks_of(trace, StepMark)):
        return Recording(trace, version), {}
    return _Pieces(trace, trace.exchanges, version, names, workers).judge()


class _Pieces:
    """The pieces of one recording: of whole sessions if it is complete, has only exchanges, and no session is large."""

    def __init__(
        self, trace: Trace, file_exchanges: FileExchanges, version: str | None, names: Collection[str], workers: int
    ) -> None:
        self._trace = trace
        self._file_exchanges = file_exchanges
        self._version = version
        self._workers = workers
        alone = not trace.marks and trace.model is None and not trace.growing
        by_sessions = file_exchanges.by_sessions() if alone else None
        self._of_sessions = by_sessions is not None
        everything = range(len(file_exchanges))
        self._places = (
            by_sessions if by_sessions is not None else [everything[piece] for piece in file_exchanges.pieces()]
        )
        # If each piece ends before the next begins, their findings are in the order of the recording.
        self._in_turn = all(before[-1] < after[0] for before, after in pairwise(self._places))
        self._by_exchange = rules_by("exchange")
        rules: dict[str, Rule] = {**self._by_exchange, **(rules_by("session") if self._of_sessions else {})}
        self._rules = {name: rules[name] for name in names if name in rules}
        self._second_round = [name for name in names if self._of_sessions and name in SECOND_ROUND]
        self._troubled: Sequence[Call] | None = None
        if self._of_sessions and len(file_exchanges.troubled) <= _MOST_TROUBLED:
            self._troubled = self._piece([file_exchanges.place_of(number) for number in file_exchanges.troubled]).calls

    def judge(self) -> tuple[Recording, Mapping[str, Tally]]:
        """The recording with its calls, and the tallies over its pieces."""
        light = LightCalls(self._file_exchanges)
        tallies: dict[str, list[Tally] | None] = {name: [] for name in (*self._rules, *self._second_round)}
        notes: list[PieceNotes] = []
        first = spread(self._first_look, self._places, self._workers)
        for places, (new, facts, new_notes) in zip(self._places, first, strict=True):
            light.add(places, facts)
            notes += new_notes
            self._add(tallies, new)
        recording = Recording(self._trace, self._version, calls=light.calls)
        if self._second_round:
            _store_notes(recording, notes)
            for new in self._second_looks(recording, notes):
                self._add(tallies, new)
        merged = {name: None if each is None else self._merge(name, each) for name, each in tallies.items()}
        return recording, {name: tally for name, tally in merged.items() if tally is not None}

    def _piece(self, places: Sequence[int]) -> Recording:
        trace = replace(self._trace, exchanges=self._file_exchanges.at(places))
        return Recording(trace, self._version, piece=True, of_sessions=self._of_sessions, troubled=self._troubled)

    def _first_look(self, places: Sequence[int]) -> tuple[_Tallies, PackedFacts, list[PieceNotes]]:
        piece = self._piece(places)
        tallies = {name: _over_piece(name, rule, piece) for name, rule in self._rules.items()}
        return tallies, pack_calls(piece.calls), [_notes_of(piece)] if self._second_round else []

    def _second_looks(self, whole: Recording, notes: Sequence[PieceNotes]) -> Iterator[_Tallies]:
        """The tallies of the second round, piece by piece; most pieces need no second look."""
        passed = [_conforming_subjects(whole, each) for each in notes]
        again = [places for places, count in zip(self._places, passed, strict=True) if count is None]
        looked = spread(partial(self._second_look, whole), again, self._workers)
        for count in passed:
            yield next(looked) if count is None else {name: Tally(passed=count) for name in self._second_round}

    def _second_look(self, whole: Recording, places: Sequence[int]) -> _Tallies:
        piece = _with_facts_of(self._piece(places), whole)
        return {name: _over_piece(name, SECOND_ROUND[name], piece) for name in self._second_round}

    def _add(self, tallies: dict[str, list[Tally] | None], new: _Tallies) -> None:
        for name, more in new.items():
            before = tallies[name]
            if more is None or before is None:
                tallies[name] = None
            elif before and self._in_turn:
                before[0].add(more)
            else:
                before.append(more)

    def _merge(self, name: str, tallies: list[Tally]) -> Tally | None:
        """The tally of a rule over all pieces; None if the whole recording has to be judged."""
        entry = requirements().get(name)
        explained = entry is not None and entry.check is not None
        # The whole recording explains no more breaches than these.
        if explained and sum(len(tally.findings) for tally in tallies) > MOST_EXPLAINED:
            return None
        if len(tallies) == 1:
            return tallies[0]
        looks_at_each = name in self._by_exchange or name in self._second_round
        if not looks_at_each and any(tally.findings for tally in tallies):
            # The sessions overlap, so the order of the findings is known to the rule alone.
            return None
        return Tally.in_order(tallies)


class PieceNotes(NamedTuple):
    """What rules over the whole recording need of the bodies in a piece of it.

    `answered` are prompts that a transcript shows answered, by numbers; `injected` is what its answers inject and its
    requests may repeat.
    """

    answered: Sequence[tuple[int, int, bool]]
    injected: injected.PieceInjects


def _notes_of(piece: Recording) -> PieceNotes:
    """Note what the rules over the whole need of a piece of whole sessions."""
    answered = [(prompt.seq, transcript.seq, newer) for prompt, transcript, newer in prompts_answered_before(piece)]
    return PieceNotes(answered, injected.injects_of_piece(piece))


def _store_notes(recording: Recording, pieces: Iterable[PieceNotes]) -> None:
    """Let the rules over a recording use the notes of its pieces."""
    notes = list(pieces)
    by_seq = recording.by_seq
    order = {key: place for place, key in enumerate(recording.hooks_of)} if any(note.answered for note in notes) else {}
    answered = [(by_seq[prompt], by_seq[shown], newer) for note in notes for prompt, shown, newer in note.answered]
    answered.sort(key=lambda known: order[str(known[0].key)])
    recording.memo[prompts_answered_before] = tuple(answered)
    firsts = [note.injected.first_seq for note in notes if note.injected.first_seq is not None]
    needles = merge(*(note.injected.needles for note in notes), key=attrgetter("place"))
    recording.memo[injected.injects_of] = injected.injects_in_file(recording, min(firsts, default=None), needles)


def _conforming_subjects(whole: Recording, piece: PieceNotes) -> int | None:
    """How many subjects of a rule of the second round conform in a piece; None if the rule has to be run."""
    injects: injected.Injects | None = whole.memo[injected.injects_of]
    if injects is None:
        return 0
    if piece.injected.may_repeat(injects):
        return None
    return sum(seq > injects.first_seq for seq in piece.injected.subjects)


def _with_facts_of(piece: Recording, whole: Recording) -> Recording:
    """Give the rules over a piece the facts of the whole recording."""
    for fact in (prompts_answered_before, injected.injects_of):
        piece.memo[fact] = whole.memo[fact]
    return piece


def _over_piece(name: str, rule: Rule, piece: Recording) -> Tally | None:
    """The tally of a rule over a piece; None if the rule needs the whole."""
    tally = Tally()
    # No answer of the daemon excuses anything here: only step marks allow that, and recordings in pieces have none.
    excuse = partial(excuse_breach, name, recording=piece, broken={})
    try:
        tally.run(rule, piece, excuse)
    except NeedsWholeError:
        return None
    return tally
