"""What memory did to a turn: the rows that the model was given, and the words of its answer that rest on them.

The harness goes by words: one of the answer rests on a row that holds it, too, unless the prompt holds it already.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from signet_reference_harness.daemon_client.reply import Reply, memory_rows, suppressed_rows
from signet_reference_harness.tools import ToolResult

WORD: Final = re.compile(r"\w[\w.:/@-]*\w|\w")
SHORTEST: Final = 4
"""Letters of a word that counts; a number counts however short it is."""
COMMON: Final = frozenset(
    {
        *("about", "also", "been", "could", "does", "from", "have", "into", "just", "more", "only", "other", "should"),
        *("some", "than", "that", "their", "them", "then", "there", "these", "they", "this", "those", "very", "were"),
        *("what", "when", "where", "which", "will", "with", "would", "your"),
    }
)
LONGEST_SHOWN: Final = 300
LONGEST_READ: Final = 100_000
"""Characters of an answer whose words are looked for."""


class ShownRow(Struct, frozen=True):
    """A row of memory that the model got from a start, a prompt or a search.

    `words` are the words of the answer that come from it.
    """

    id: str | None
    source: str
    content: str
    score: float | None = None
    words: tuple[str, ...] = ()

    @property
    def is_used(self) -> bool:
        """Whether the answer seems to rest on it: two words do, or one with a digit or a capital in the row."""
        return len(self.words) > 1 or any(any(c.isdigit() or c.isupper() for c in word) for word in self.words)


class MemoryEffect(Struct, frozen=True):
    """The rows of a turn, and about how many `tokens` of the model's context they took.

    `suppressed` is the number of rows that fit but were left out because the session has seen them; `notes` are the
    daemon's reasons.
    """

    rows: tuple[ShownRow, ...] = ()
    tokens: int = 0
    suppressed: int = 0
    notes: tuple[str, ...] = ()

    @property
    def used(self) -> int:
        """How many rows the answer seems to rest on."""
        return sum(row.is_used for row in self.rows)

    @property
    def is_empty(self) -> bool:
        """Whether memory brought nothing, and kept nothing back."""
        return not self.rows and not self.suppressed

    @property
    def in_brief(self) -> str:
        """The effect in one line."""
        count = f"{len(self.rows)} row{'' if len(self.rows) == 1 else 's'}"
        before = f"; {self.suppressed} shown before" if self.suppressed else ""
        return f"memory: {count} ({self.tokens} tokens), {self.used} used{before}"

    def explained(self) -> list[tuple[str, str]]:
        """A line for each row, the used ones first, and for each note: a name and what is to be said."""
        lines = [_line(row) for row in sorted(self.rows, key=lambda row: not row.is_used)]
        return [*lines, *(("", note) for note in self.notes)]


def _line(row: ShownRow) -> tuple[str, str]:
    score = "" if row.score is None else f" {row.score:.2f}"
    words = f"in the answer: {', '.join(row.words)}" if row.is_used else "not used"
    content = " ".join(row.content.split())[:LONGEST_SHOWN]
    return f"{(row.id or '-')[:8]}{score}", f"{content}  [{row.source}; {words}]"


def effect_of(
    prompt: str,
    reply: str,
    *,
    start_rows: Iterable[Mapping[str, Any]],
    contexts: Sequence[str],
    submitted: str,
    submission: Reply | None,
    results: Iterable[ToolResult],
) -> MemoryEffect:
    """The effect of what the daemon injected, at starts (`contexts`) and the prompt (`submitted`), and of `results`."""
    given: list[ShownRow] = []
    notes: list[str] = []
    characters, suppressed = sum(map(len, contexts)) + len(submitted), 0
    injected = "\n".join(contexts)
    given += (_row(row, "session-start") for row in start_rows if str(row.get("content", "")) in injected)
    if submitted:
        given.append(ShownRow(None, "user-prompt-submit", submitted))
    if submission is not None and submission.text("engine"):
        notes.append(f"user-prompt-submit: {submission.text('engine')}")
    for result in results:
        if result.reply is None or not result.ok or not result.name.startswith("memory_"):
            continue
        rows_of_result = [_row(row, result.name) for row in memory_rows(result.reply.body)]
        given += rows_of_result
        characters += sum(len(row.content) for row in rows_of_result)
        left_out, note = _search_effect(result.reply.body)
        suppressed += left_out
        if note:
            notes.append(f"{result.name}: {note}")
    rows = _with_words(given, prompt, reply) if given else ()
    return MemoryEffect(rows, characters // 4, suppressed, tuple(dict.fromkeys(notes)))


def _row(row: Mapping[str, Any], source: str) -> ShownRow:
    score, identity = row.get("score"), row.get("id")
    is_number = isinstance(score, int | float) and not isinstance(score, bool)
    content = row.get("content")
    return ShownRow(
        identity if isinstance(identity, str) else None,
        source,
        content if isinstance(content, str) else "",
        float(score) if is_number and score is not None else None,
    )


def _search_effect(body: Mapping[str, Any]) -> tuple[int, str]:
    """How many rows a search left out, and what the daemon said of how it searched."""
    left_out, method = suppressed_rows(body), body.get("method")
    told = [f"found by {method}"] if isinstance(method, str) else []
    told += [f"{left_out} left out, as they were shown before"] if left_out else []
    return left_out, ", ".join(told)


def _with_words(rows: Iterable[ShownRow], prompt: str, reply: str) -> tuple[ShownRow, ...]:
    """Each row once, with the words of the answer that it holds and the prompt does not, as the row writes them."""
    said = list(filter(_counts, dict.fromkeys(WORD.findall(reply[:LONGEST_READ].casefold()))))
    known = _words_in(prompt.casefold(), said)
    said = [word for word in said if word not in known]
    once: dict[str, ShownRow] = {}
    for row in rows:
        own = _words_in(row.content, said)
        words = tuple(own[word] for word in said if word in own)
        once[row.id or row.content] = ShownRow(row.id, row.source, row.content, row.score, words)
    return tuple(once.values())


def _words_in(text: str, wanted: Sequence[str]) -> Mapping[str, str]:
    """The words of a text as it writes them, by their folded form; none if it holds nothing of what is wanted."""
    folded = text.casefold()
    if not any(word in folded for word in wanted):
        return {}
    return {word.casefold(): word for word in WORD.findall(text)}


def _counts(word: str) -> bool:
    return (len(word) >= SHORTEST and word not in COMMON) or any(map(str.isdigit, word))
