"""The turns of the transcripts that ends and checkpoints carry, those asked for last are remembered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise
from typing import TypeVar

from msgspec import Struct

from signet_conformance.facts import CHECKPOINT, END, Call, Recording
from signet_conformance.rules.turns import Turn, turns


class Place(Struct, frozen=True):
    """A transcript in which two turns are neighbours, and whether a user turn follows them there."""

    call: Call
    newer_user_turn: bool


class Transcript(Struct, frozen=True):
    """The call that carried a transcript, its turns in order, and those of them that occur once in it."""

    call: Call
    turns: Sequence[Turn]
    once: AbstractSet[Turn]


Pairs = Mapping[tuple[Turn, Turn], Sequence[Place]]
Key = TypeVar("Key")
Value = TypeVar("Value")


_MOST_HELD = 4096
"""Transcripts, and keys with the pairs of theirs, that are remembered: a large recording has more."""


def transcripts_of(recording: Recording) -> Iterator[Transcript]:
    """The inline transcript of every keyed end and checkpoint; it may have no turns."""
    return (_transcript(recording, call) for call in recording.keyed_hooks if call.operation in (END, CHECKPOINT))


def _transcript(recording: Recording, call: Call) -> Transcript:
    held: dict[int, Transcript] = recording.memo.setdefault(transcripts_of, {})
    if call.seq not in held:
        spoken = turns(call.body.get("transcript"))
        once = set(spoken)
        if len(once) < len(spoken):
            once = {turn for turn, count in Counter(spoken).items() if count == 1}
        _remember(held, call.seq, Transcript(call, spoken, once))
    return held[call.seq]


def pairs_of(recording: Recording, key: str) -> Pairs:
    """The neighbouring turns of different roles, each occurring once in its transcript, of one key's transcripts."""
    held: dict[str, Pairs] = recording.memo.setdefault(pairs_of, {})
    if key not in held:
        calls = (call for call in recording.hooks_of.get(key, ()) if call.operation in (END, CHECKPOINT))
        _remember(held, key, _pairs(_transcript(recording, call) for call in calls))
    return held[key]


def _remember(held: dict[Key, Value], key: Key, value: Value) -> None:
    if len(held) >= _MOST_HELD:
        del held[next(iter(held))]
    held[key] = value


def _pairs(transcripts: Iterable[Transcript]) -> Pairs:
    pairs: dict[tuple[Turn, Turn], list[Place]] = {}
    for transcript in transcripts:
        last_user = max((place for place, (role, _) in enumerate(transcript.turns) if role == "user"), default=-1)
        for place, (turn, following) in enumerate(pairwise(transcript.turns)):
            if turn[0] != following[0] and turn in transcript.once and following in transcript.once:
                pairs.setdefault((turn, following), []).append(Place(transcript.call, last_user > place + 1))
    return pairs
