"""Reads texts of memories and queries: normal form, chunks, marks and type; significant words, and names."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from signet_conformance.daemon import js

MAX_CONTENT: Final = 800
CHUNK_TARGET: Final = 600

_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+|(?=^[-*] |\n## )", re.MULTILINE)
_PLAIN_END: Final = re.compile(r"(?<=[.!?])\s+")
_TAGS: Final = re.compile(r"\[([^\]]+)\]:\s*(.+)", re.DOTALL)
CRITICAL: Final = "critical:"
_DECISION: Final = re.compile(
    r"\b(?:decided\s+(?:to|on|against)\s|switched\s+(?:from|to)\b|migrated?\s+(?:from|to|away)\b|went\s+with\b"
    r"|(?:sticking\s+with|committed\s+to|settled\s+on|adopted|(?:architecture|design)\s+decision)\b"
    r"|picked\s+.+\s+over\b|will\s+(?:use|go\s+with|stick\s+with)\b|prefer(?:s|red)?\s+.+\s+(?:over|instead|rather)\b"
    r"|chosen?\s+(?:to\s+)?(?:use\s+)?(?:over|instead))",
    re.IGNORECASE,
)
#: The first of these words that occurs in a text decides its type.
_TYPE_WORDS: Final = (
    ("preference", ("prefer", "likes", "want")),
    ("decision", ("decided", "agreed", "will use")),
    ("learning", ("learned", "discovered", "til ")),
    ("issue", ("bug", "issue", "broken")),
    ("rule", ("never", "always", "must")),
)


@dataclass(frozen=True)
class Content:
    """A text as it is stored, its normal form for comparison, and the SHA-256 by which duplicates are found."""

    stored: str
    normal: str
    digest: str


def normalise(text: str) -> Content:
    """`text` with plain line ends and no outer blanks; the normal form ignores case, runs of blanks and final marks."""
    stored = re.sub(r"\r\n?", "\n", text).strip(js.BLANKS)
    lowered = re.sub(rf"[{js.BLANKS}]+", " ", stored.lower())
    normal = re.sub(r"[.,!?;:]+$", "", lowered).strip(js.BLANKS) or stored.lower()
    return Content(stored, normal, hashlib.sha256(normal.encode("utf-8", "replace")).hexdigest())


def infer_type(text: str) -> str:
    """The type that the words of `text` suggest; ``fact`` when none does."""
    lowered = text.lower()
    return next((name for name, words in _TYPE_WORDS if any(word in lowered for word in words)), "fact")


def decides(text: str) -> bool:
    """Whether `text` states a decision: its attributes then count as constraints."""
    return bool(_DECISION.search(text))


@dataclass(frozen=True)
class Marks:
    """The marks at the beginning of a text, and the rest of the text."""

    rest: str
    tags: str | None
    pinned: bool
    importance: float


def read_marks(text: str) -> Marks:
    """The marks of `text`: ``critical:`` pins it with importance 1, ``[a,b]:`` tags it."""
    rest = text.strip(js.BLANKS)
    critical = rest.lower().startswith(CRITICAL)
    if critical:
        rest = rest[len(CRITICAL) :].strip(js.BLANKS)
    tagged = _TAGS.fullmatch(rest)
    tags = None
    if tagged:
        tags = ",".join(tag for part in tagged[1].split(",") if (tag := part.strip(js.BLANKS).lower()))
        rest = tagged[2].strip(js.BLANKS)
    return Marks(rest, tags, critical, 1 if critical else 0.8)


NO_TAGS: Final = object()


def read_tags(value: Any) -> Any:
    """Tags as they are stored: ``a,b`` or None; `NO_TAGS` when `value` is neither text, list of texts nor null."""
    if value is None:
        return None
    if isinstance(value, str):
        parts = value.split(",")
    elif isinstance(value, list) and all(isinstance(item, str) for item in value):
        parts = value
    else:
        return NO_TAGS
    return ",".join(tag for part in parts if (tag := part.strip(js.BLANKS))) or None


def chunks_of(text: str, size: int = CHUNK_TARGET, *, plain: bool = False) -> list[str]:
    """`text` cut at sentence ends into pieces of about `size` characters, each with the beginning of the next one.

    A sentence of more than twice that size is cut anywhere. `plain` pieces, as 0.58 makes them, are not cut at list
    items and headings, and hold nothing of the next piece.
    """
    pieces: list[str] = []
    closed = True
    for sentence in filter(None, (_PLAIN_END if plain else _SENTENCE_END).split(text)):
        if len(sentence) > size * 2:
            pieces += [sentence[start : start + size] for start in range(0, len(sentence), size)]
            closed = True
        elif closed or len(pieces[-1]) + 1 + len(sentence) > size:
            pieces.append(sentence)
            closed = False
        else:
            pieces[-1] += f" {sentence}"
    pieces = [bare for piece in pieces if (bare := piece.strip(js.BLANKS))]
    if plain:
        return pieces
    following = [*(piece[: size // 4] for piece in pieces[1:]), ""]
    return [f"{piece} {start}".strip(js.BLANKS) for piece, start in zip(pieces, following, strict=True)]


#: The real daemon's lists of words, by their purpose.
WORDS: Final = {
    name: frozenset(words) for name, words in json.loads(Path(__file__).with_name("words.json").read_bytes()).items()
}
_COMMON: Final = WORDS["common"]
"""A full-text query leaves these out."""
_SMALL_TALK: Final = WORDS["small_talk"]
"""These say nothing about the subject of a prompt."""
_NO_NAMES: Final = _COMMON | WORDS["no_names"]
"""These are no names, though they may be capitalised."""

#: The most different words in one query of the index, which is slow with more.
_MOST_WORDS: Final = 1024
_MOST_NAMES: Final = 256

_INDEX_SYNTAX: Final = {**dict.fromkeys(map(ord, '":()^*?')), ord("'"): " "}
_LONGEST_ACKNOWLEDGEMENT: Final = 200
_ENVELOPE: Final = re.compile(
    r"(?:conversation info \(untrusted metadata\)|sender \(untrusted[^)]*\)|chat history since last reply)\s*:\s*",
    re.IGNORECASE,
)
_ENVELOPE_WORDS: Final = ("untrusted", "chat history since last reply")
"""Each envelope has one of them."""
_WORD: Final = re.compile(r"[A-Za-z0-9_]+")
_PLAIN_WORD: Final = re.compile(r"[a-z0-9]+")
_HYPHENATED: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9]*-[a-zA-Z0-9]+(?:-[a-zA-Z0-9]+)*")
_NAME: Final = re.compile(r"[A-Z][a-z]|[A-Z]{2,6}$")


def index_words(text: str) -> Counter[str]:
    """The words of `text` that the full-text index contains, in order, and how often each occurs."""
    counts: Counter[str] = Counter()
    for word, times in Counter(text.translate(_INDEX_SYNTAX).lower().split()).items():
        if len(word) >= 2 and word not in _COMMON:
            counts[word] = times
    return counts


def index_query(text: str) -> str:
    """The full-text expression for `text`: up to three words must all occur, of more any; empty without such words.

    Each word occurs in it once: a real daemon repeats them, and a word sent 166,000 times stalls it for minutes.
    """
    words = index_words(text)
    quoted = [f'"{word}"' for word in list(words)[:_MOST_WORDS]]
    return (" " if words.total() <= 3 else " OR ").join(quoted)


def graph_words(text: str) -> list[str]:
    """The words of `text` that may name an entity: three or more plain letters or digits; not more than 256."""
    words = dict.fromkeys(re.sub(r"[^a-z0-9\s]", " ", text.lower()).split())
    return [word for word in words if len(word) >= 3 and word not in _COMMON][:_MOST_NAMES]


def without_envelope(text: str) -> str:
    """`text` without the blocks that a host puts around a message and calls untrusted."""
    folded = text.casefold()
    if not any(mark in folded for mark in _ENVELOPE_WORDS):
        return text.strip()
    while match := _ENVELOPE.search(text):
        end = match.end()
        with suppress(ValueError):
            end = json.JSONDecoder().raw_decode(text, end)[1]
        text = "\n\n".join(part for part in (text[: match.start()].rstrip(), text[end:].lstrip()) if part)
    return text.strip()


@lru_cache(maxsize=16)
def subject_words(text: str) -> tuple[str, ...]:
    """The words that may name the subject of a prompt: hyphenated ones, then others of three or more characters.

    Cached, since an answer asks several times about one prompt, which may be long.
    """
    text = without_envelope(text)
    text = re.sub(r"<@!?\d+>", "", text)
    hyphenated = [word.lower() for word in _HYPHENATED.findall(text)] if "-" in text else []
    words = dict.fromkeys(_WORD.findall(text.lower()))
    plain = [word for word in words if len(word) >= 3 and word not in _SMALL_TALK and not word.isdigit()]
    return tuple(dict.fromkeys([*hyphenated, *plain]))


def phrase(text: str) -> str:
    """`text` in the form in which entity names are compared: lower case, without possessives and punctuation."""
    text = text.lower().replace("\u2019", "'")
    if "'s" in text:
        text = re.sub(r"\b([a-z0-9]+)'s\b", r"\1", text)
    return " ".join(_PLAIN_WORD.findall(text))


def says_little(prompt: str) -> bool:
    """Whether `prompt` names no subject: an acknowledgement, or small words only."""
    if len(prompt) > _LONGEST_ACKNOWLEDGEMENT:
        return not subject_words(prompt)
    normal = phrase(prompt)
    return not normal or normal in WORDS["acknowledgements"] or not subject_words(normal)


def names_in(text: str) -> list[str]:
    """The runs of capitalised words in `text` that may be names, each once."""
    names: list[str] = []
    for sentence in re.split(r"[.!?\n]+", text):
        run: list[str] = []
        for word in [*sentence.split(), ""]:
            bare = re.sub(r"""[,;:'"()\[\]{}]+$""", "", word).lstrip("""'"([]{}""")
            if word and not bare:
                continue
            if _NAME.match(bare) and bare.lower() not in _NO_NAMES:
                run.append(bare)
                continue
            name = " ".join(run)
            if len(name) >= 3:
                names.append(name)
            run = []
    return list(dict.fromkeys(names))
