"""The turns of the transcripts that ends and checkpoints carry, indexed once a recording."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from signet_conformance.facts import CHECKPOINT, END, Call, Recording
from signet_conformance.rules.turns import Turn, turns


@dataclass(frozen=True, slots=True)
class Place:
    """A transcript in which two turns are neighbours, and whether a user turn follows them there."""

    call: Call
    newer_user_turn: bool


Pairs = Mapping[tuple[Turn, Turn], Sequence[Place]]


def transcripts_of(recording: Recording) -> Sequence[tuple[Call, list[Turn]]]:
    """Every keyed end and checkpoint with the turns of its inline transcript, which may be none."""
    found = recording.memo.get("transcripts")
    if found is None:
        found = [
            (c, turns(c.body.get("transcript"))) for c in recording.keyed_hooks if c.operation in (END, CHECKPOINT)
        ]
        recording.memo["transcripts"] = found
    return found


def pairs_of(recording: Recording, key: str) -> Pairs:
    """The neighbouring turns of different roles, each occurring once in its transcript, of one key's transcripts."""
    index = recording.memo.get("pairs")
    if index is None:
        index = recording.memo["pairs"] = _index(transcripts_of(recording))
    return index.get(key, {})


def _index(transcripts: Sequence[tuple[Call, list[Turn]]]) -> dict[str, dict[tuple[Turn, Turn], list[Place]]]:
    index: dict[str, dict[tuple[Turn, Turn], list[Place]]] = {}
    for call, found in transcripts:
        once = Counter(found)
        last_user = max((place for place, (role, _) in enumerate(found) if role == "user"), default=-1)
        pairs = index.setdefault(str(call.key), {})
        for place, (one, other) in enumerate(pairwise(found)):
            if one[0] != other[0] and once[one] == 1 == once[other]:
                pairs.setdefault((one, other), []).append(Place(call, last_user > place + 1))
    return index
