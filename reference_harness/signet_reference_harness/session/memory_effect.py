"""The effect of memory on a turn: the rows that the model got, and the words of its answer that come from them.

The harness compares words: a word of the answer comes from a row if the row has it and the prompt does not.
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
"""Letters of the shortest word that counts; a number always counts."""
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
        """Whether the answer seems to use the row: it has two of its words, or one with a digit or a capital in it."""
        return len(self.words) > 1 or any(any(c.isdigit() or c.isupper() for c in word) for word in self.words)


class MemoryEffect(Struct, frozen=True):
    """The rows of a turn, and about how many `tokens` of the model's context they took.

    `suppressed` is the number of rows that the daemon left out because it had shown them in the session before; `notes`
    are the daemon's own words on how it searched.
    """

    rows: tuple[ShownRow, ...] = ()
    tokens: int = 0
    suppressed: int = 0
    notes: tuple[str, ...] = ()

    @property
    def used(self) -> int:
        """How many rows the answer seems to use."""
        return sum(row.is_used for row in self.rows)

    @property
    def is_empty(self) -> bool:
        """Whether memory brought no row and left none out."""
        return not self.rows and not self.suppressed

    @property
    def in_brief(self) -> str:
        """The effect in one line."""
        count = f"{len(self.rows)} row{'' if len(self.rows) == 1 else 's'}"
        before = f"; {self.suppressed} shown before" if self.suppressed else ""
        return f"memory: {count} ({self.tokens} tokens), {self.used} used{before}"

    def explained(self) -> list[tuple[str, str]]:
        """A line for each row, the used ones first, and for each note: a name and a text."""
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
    """The effect of the injections at starts (`contexts`) and at the prompt (`submitted`), and of `results`."""
    shown: list[ShownRow] = []
    notes: list[str] = []
    characters, suppressed = sum(map(len, contexts)) + len(submitted), 0
    injected = "\n".join(contexts)
    shown += (_row(row, "session-start") for row in start_rows if str(row.get("content", "")) in injected)
    if submitted:
        shown.append(ShownRow(None, "user-prompt-submit", submitted))
    if submission is not None and submission.text("engine"):
        notes.append(f"user-prompt-submit: {submission.text('engine')}")
    for result in results:
        if result.reply is None or not result.ok or not result.name.startswith("memory_"):
            continue
        rows_of_result = [_row(row, result.name) for row in memory_rows(result.reply.body)]
        shown += rows_of_result
        characters += sum(len(row.content) for row in rows_of_result)
        left_out, note = _search_effect(result.reply.body)
        suppressed += left_out
        if note:
            notes.append(f"{result.name}: {note}")
    rows = _with_words(shown, prompt, reply) if shown else ()
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
    """How many rows a search left out, and a note on that and on the daemon's method."""
    left_out, method = suppressed_rows(body), body.get("method")
    notes = [f"found by {method}"] if isinstance(method, str) else []
    notes += [f"{left_out} left out, as they were shown before"] if left_out else []
    return left_out, ", ".join(notes)


def _with_words(rows: Iterable[ShownRow], prompt: str, reply: str) -> tuple[ShownRow, ...]:
    """Each row once, with the words of the answer that are in the row and not in the prompt, in the row's spelling."""
    answer = list(filter(_is_significant, dict.fromkeys(WORD.findall(reply[:LONGEST_READ].casefold()))))
    known = _words_in(prompt.casefold(), answer)
    answer = [word for word in answer if word not in known]
    distinct: dict[str, ShownRow] = {}
    for row in rows:
        own = _words_in(row.content, answer)
        words = tuple(own[word] for word in answer if word in own)
        distinct[row.id or row.content] = ShownRow(row.id, row.source, row.content, row.score, words)
    return tuple(distinct.values())


def _words_in(text: str, wanted: Sequence[str]) -> Mapping[str, str]:
    """The words of a text in its own spelling, by their folded form; empty if it lacks all `wanted` words."""
    folded = text.casefold()
    if not any(word in folded for word in wanted):
        return {}
    return {word.casefold(): word for word in WORD.findall(text)}


def _is_significant(word: str) -> bool:
    return (len(word) >= SHORTEST and word not in COMMON) or any(map(str.isdigit, word))
