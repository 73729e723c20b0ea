"""What becomes of a memory's text: its normal form and hash, its chunks, the marks at its beginning, its type."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any, Final

from signet_conformance.daemon.values import BLANKS

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
    stored = re.sub(r"\r\n?", "\n", text).strip(BLANKS)
    lowered = re.sub(rf"[{BLANKS}]+", " ", stored.lower())
    normal = re.sub(r"[.,!?;:]+$", "", lowered).strip(BLANKS) or stored.lower()
    return Content(stored, normal, hashlib.sha256(normal.encode("utf-8", "replace")).hexdigest())


def infer_type(text: str) -> str:
    """The type that the words of `text` suggest; ``fact`` when none does."""
    lowered = text.lower()
    return next((name for name, words in _TYPE_WORDS if any(word in lowered for word in words)), "fact")


def decides(text: str) -> bool:
    """Whether `text` tells of a decision: its attributes then count as constraints."""
    return bool(_DECISION.search(text))


@dataclass(frozen=True)
class Marks:
    """What the beginning of a text said about it, and the rest of the text."""

    rest: str
    tags: str | None
    pinned: bool
    importance: float


def read_marks(text: str) -> Marks:
    """The marks of `text`: ``critical:`` pins it with importance 1, ``[a,b]:`` tags it."""
    rest = text.strip(BLANKS)
    critical = rest.lower().startswith(CRITICAL)
    if critical:
        rest = rest[len(CRITICAL) :].strip(BLANKS)
    tagged = _TAGS.fullmatch(rest)
    tags = None
    if tagged:
        tags = ",".join(tag for part in tagged[1].split(",") if (tag := part.strip(BLANKS).lower()))
        rest = tagged[2].strip(BLANKS)
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
    return ",".join(tag for part in parts if (tag := part.strip(BLANKS))) or None


def chunks_of(text: str, size: int = CHUNK_TARGET, *, plain: bool = False) -> list[str]:
    """`text` cut at sentence ends into pieces of about `size` characters, each with the beginning of the next one.

    A sentence of more than twice that size is cut wherever it must be. `plain` pieces, as 0.58 makes them, take lists
    for sentences like any other and hold nothing of the next piece.
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
    pieces = [bare for piece in pieces if (bare := piece.strip(BLANKS))]
    if plain:
        return pieces
    following = [*(piece[: size // 4] for piece in pieces[1:]), ""]
    return [f"{piece} {start}".strip(BLANKS) for piece, start in zip(pieces, following, strict=True)]
