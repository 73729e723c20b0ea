"""The turns of the transcripts that ends and checkpoints carry; the latest ones are cached."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from functools import lru_cache
from itertools import pairwise
from typing import Any, TypeVar

from msgspec import Struct

from signet_conformance.facts import CHECKPOINT, END, Call, Recording, plain
from signet_conformance.files.json_values import parse_value

_SPEAKER = re.compile(
    r"(User|Human|Assistant|Tool(?:[ _]?(?:Call|Output|Result))?|System|Developer|Custom):", re.IGNORECASE
)
"""The opening of a turn in a transcript of lines; only the first three are turns of the conversation."""

_CUT = re.compile(r"(?:\u2026|\.\.\.|[\[(<][^\[\](){}<>]*[\])>])\Z")
"""What connectors put after a text that they cut: dots, or a remark in brackets."""
_REMARKS, _LONGEST_REMARK = 2, 60
_IN_BRACKETS = re.compile(r"[\[(<].*[\])>]|[.\u2026]+")
_LEFT_OUT = re.compile(r"trunca|shorten|omit|trimm|left out|cut off|earlier|\u2026|\.\.\.", re.IGNORECASE)

SHORTEST_TEXT = 12
"""A shorter text within another one does not show which turn it is from."""
Turn = tuple[str, str]
"""Role (`user` or `assistant`) and trimmed text."""


@lru_cache(maxsize=16)
def words_of(text: str | None) -> str:
    """A text in one line, because connectors that write a line for each turn join several. Cached as `plain` is."""
    return " ".join(plain(text).split())


def turns(transcript: object) -> list[Turn]:
    """The turns of a transcript: JSON lines with role and content, or lines opening with a speaker.

    A transcript of any other shape has none.
    """
    if not isinstance(transcript, str):
        return []
    lines = transcript.split("\n")
    spoken = _json_turns(lines)
    return _speaker_turns(lines) if spoken is None else spoken


def _json_turns(lines: Iterable[str]) -> list[Turn] | None:
    """The turns of JSON lines; None if a line does not have that shape."""
    spoken: list[Turn] = []
    for line in lines:
        if not line.strip():
            continue
        entry = _entry_in(line)
        if entry is None:
            return None
        text = _content_text(entry["content"])
        if entry["role"] in ("user", "assistant") and text is not None:
            spoken.append((entry["role"], text.strip()))
    return spoken


def _entry_in(line: str) -> Mapping[str, Any] | None:
    """The entry of a JSON line that has a role and a content, or the message in it; None for any other line."""
    # A failed parse of a line takes much longer than to see that it is no object.
    entry = parse_value(line) if line.lstrip().startswith("{") else None
    if isinstance(entry, dict) and not {"role", "content"} <= entry.keys():
        entry = entry.get("message")
    return entry if isinstance(entry, dict) and {"role", "content"} <= entry.keys() else None


def said_in_lines(text: str) -> Iterator[str]:
    """The texts of a transcript of JSON lines, of all speakers; lines of another shape are ignored."""
    if not text.lstrip().startswith("{"):
        return
    for line in text.split("\n"):
        entry = _entry_in(line)
        said = None if entry is None else _content_text(entry["content"])
        if said is not None:
            yield said


def _content_text(content: object) -> str | None:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(
            part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)
        )
    return None


def _speaker_turns(lines: Iterable[str]) -> list[Turn]:
    spoken: list[tuple[str, list[str]]] = []
    for line in lines:
        if match := _SPEAKER.match(line):
            spoken.append((match[1].lower(), [line[match.end() :]]))
        elif spoken:
            spoken[-1][1].append(line)
    roles = {"user": "user", "human": "user", "assistant": "assistant"}
    return [(roles[speaker], "\n".join(text).strip()) for speaker, text in spoken if speaker in roles]


def names_a_speaker(text: str) -> bool:
    """Whether a text contains the opening of a turn in a transcript of lines."""
    return _SPEAKER.search(text) is not None


def quoted_turns(text: str | None) -> list[Turn]:
    """The lines of a text that a transcript of lines takes for turns, after the first of them."""
    return _speaker_turns(plain(text).split("\n")[1:])


def announces_a_cut(transcript: object) -> bool:
    """Whether a transcript says that something was left out, outside its turns or in a line in brackets."""
    spoken = False
    for line in transcript.split("\n") if isinstance(transcript, str) else ():
        entry = _entry_in(line)
        if entry is not None:
            remark = None if entry["role"] in ("user", "assistant") else _content_text(entry["content"])
        else:
            spoken = spoken or _SPEAKER.match(line) is not None
            remark = line if not spoken or _IN_BRACKETS.fullmatch(line.strip()) else None
        if remark is not None and _LEFT_OUT.search(remark) is not None:
            return True
    return False


def begins_a_name(text: str) -> bool:
    """Whether a text is the beginning of a speaker's name, where a transcript of lines may be cut."""
    rest = text.strip().casefold()
    return any(name.startswith(rest) for name in ("user:", "human:", "assistant:"))


def without_cut_marks(text: str) -> str:
    """A text without the marks that follow it where it was cut."""
    for _ in range(_REMARKS):
        if (remark := _CUT.search(text[-_LONGEST_REMARK:])) is not None:
            text = text[: -len(remark[0])].rstrip()
    return text


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


_MOST_CACHED = 4096
"""How many transcripts, and keys with their pairs, are remembered: a large recording has more."""


def transcripts_of(recording: Recording) -> Iterator[Transcript]:
    """The inline transcript of every keyed end and checkpoint; it may have no turns."""
    return (_transcript(recording, call) for call in recording.keyed_hooks if call.operation in (END, CHECKPOINT))


def _transcript(recording: Recording, call: Call) -> Transcript:
    cache: dict[int, Transcript] = recording.memo.setdefault(transcripts_of, {})
    if call.seq not in cache:
        spoken = turns(call.body.get("transcript"))
        once = {turn for turn, count in Counter(spoken).items() if count == 1}
        _remember(cache, call.seq, Transcript(call, spoken, once))
    return cache[call.seq]


def pairs_of(recording: Recording, key: str) -> Pairs:
    """The neighbouring turns of different roles, each occurring once in its transcript, of one key's transcripts."""
    cache: dict[str, Pairs] = recording.memo.setdefault(pairs_of, {})
    if key not in cache:
        calls = (call for call in recording.hooks_of.get(key, ()) if call.operation in (END, CHECKPOINT))
        _remember(cache, key, _pairs(_transcript(recording, call) for call in calls))
    return cache[key]


def _remember(cache: dict[Key, Value], key: Key, value: Value) -> None:
    if len(cache) >= _MOST_CACHED:
        del cache[next(iter(cache))]
    cache[key] = value


def _pairs(transcripts: Iterable[Transcript]) -> Pairs:
    pairs: dict[tuple[Turn, Turn], list[Place]] = {}
    for transcript in transcripts:
        last_user = max((place for place, (role, _) in enumerate(transcript.turns) if role == "user"), default=-1)
        for place, (turn, following) in enumerate(pairwise(transcript.turns)):
            if turn[0] != following[0] and turn in transcript.once and following in transcript.once:
                pairs.setdefault((turn, following), []).append(Place(transcript.call, last_user > place + 1))
    return pairs
