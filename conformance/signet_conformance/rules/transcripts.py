"""The turns of the transcripts that ends and checkpoints carry, indexed once a recording."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import pairwise

from signet_conformance.facts import CHECKPOINT, END, Call, Recording
from signet_conformance.rules.turns import Turn, turns


@dataclass(frozen=True, slots=True)
class Place:
    """A transcript in which two turns are neighbours, and whether a user turn follows them there."""

    call: Call
    newer_user_turn: bool


@dataclass(frozen=True, slots=True)
class Transcript:
    """The call that carried a transcript, its turns in order, and those of them that occur once in it."""

    call: Call
    turns: Sequence[Turn]
    once: AbstractSet[Turn]


Pairs = Mapping[tuple[Turn, Turn], Sequence[Place]]


def transcripts_of(recording: Recording) -> Sequence[Transcript]:
    """The inline transcript of every keyed end and checkpoint; it may have no turns."""
    transcripts: list[Transcript] | None = recording.memo.get("transcripts")
    if transcripts is None:
        transcripts = recording.memo["transcripts"] = [
            _transcript(call) for call in recording.keyed_hooks if call.operation in (END, CHECKPOINT)
        ]
    return transcripts


def _transcript(call: Call) -> Transcript:
    spoken = turns(call.body.get("transcript"))
    once = set(spoken)
    if len(once) < len(spoken):
        once = {turn for turn, count in Counter(spoken).items() if count == 1}
    return Transcript(call, spoken, once)


def pairs_of(recording: Recording, key: str) -> Pairs:
    """The neighbouring turns of different roles, each occurring once in its transcript, of one key's transcripts."""
    index = recording.memo.get("pairs")
    if index is None:
        index = recording.memo["pairs"] = _index(transcripts_of(recording))
    return index.get(key, {})


def _index(transcripts: Sequence[Transcript]) -> dict[str, dict[tuple[Turn, Turn], list[Place]]]:
    index: dict[str, dict[tuple[Turn, Turn], list[Place]]] = {}
    for transcript in transcripts:
        last_user = max((place for place, (role, _) in enumerate(transcript.turns) if role == "user"), default=-1)
        pairs = index.setdefault(str(transcript.call.key), {})
        for place, (turn, following) in enumerate(pairwise(transcript.turns)):
            if turn[0] != following[0] and turn in transcript.once and following in transcript.once:
                pairs.setdefault((turn, following), []).append(Place(transcript.call, last_user > place + 1))
    return index
