"""Finds secrets in the arguments of programs and functions by the patterns in `arguments.json`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Final

from ahocorasick_rs import BytesAhoCorasick, Implementation
from msgspec import Struct

from signet_recording_proxy.redaction.appearance import is_random_or_invented, is_random_or_key
from signet_recording_proxy.redaction.secret_names import is_value
from signet_recording_proxy.redaction.shown_text import LINE_BREAK
from signet_recording_proxy.redaction.spans import Span, Token, replace_spans
from signet_recording_proxy.redaction.tables import Expression, any_of, read_table

_ACCEPTS: Final = {
    "value": is_value,
    "random_or_key": is_random_or_key,
    "random_or_invented": is_random_or_invented,
}


class ArgumentPattern(Struct, frozen=True):
    """How one kind of argument that is a secret looks, such as the value of an option or of a call's parameter.

    The last group of `expression` is the secret, if the function that `accepts` names returns True for it. With
    `preceded_by`, that expression, such as the name of the program, has to match earlier in the same command;
    `separators` end a command.

    The other fields only make the search faster. Text is skipped unless it contains one of `stems` (in any case; a
    character beyond ASCII is `?` in a stem), `at_stem` matches where the stem begins, and the text contains one of
    `literals` (in this case). `at_stem` is read by Python and by Rust, ignores case, and has to match in plain text and
    in a line of JSON.
    """

    stems: tuple[str, ...]
    expression: Expression
    preceded_by: Expression | None = None
    literals: tuple[str, ...] = ()
    separators: str = "\n|;"
    at_stem: Expression | None = None
    accepts: str = "value"


_MAX_COMMAND_CHARS = 400
"""How far before a secret `preceded_by` is searched for."""


class _Tables(Struct):
    commands: tuple[ArgumentPattern, ...]
    """Patterns for command lines and for what commands print."""
    calls: tuple[ArgumentPattern, ...]
    """Patterns for function calls, settings and phrases of output."""


_TABLES: Final = read_table("arguments.json", _Tables, LINE_BREAK=LINE_BREAK)
TABLE: Final = (*_TABLES.commands, *_TABLES.calls)
STEMS: Final = tuple(dict.fromkeys(stem for row in TABLE for stem in row.stems))
"""Text without any of these, in lower case, has no such secret."""
_BY_STEM: Final = {stem: [row for row in TABLE if stem in row.stems] for stem in STEMS}
_AT_STEM: Final = {
    stem: [Expression(f"(?i:{row.at_stem})") if row.at_stem else None for row in rows]
    for stem, rows in _BY_STEM.items()
}
_NUMBERS: Final = [[number for number, row in enumerate(TABLE) if stem in row.stems] for stem in STEMS]


@cache
def _search() -> BytesAhoCorasick:
    return BytesAhoCorasick([stem.encode() for stem in STEMS], implementation=Implementation.DFA)


def replace_arguments(text: str, token: Token) -> str:
    """`text` with each secret replaced by its token."""
    lowered = text.encode("ascii", "replace").lower()
    stems = {stem for stem, _, _ in _search().find_matches_as_indexes(lowered, overlapping=True)}
    for number in sorted({number for stem in stems for number in _NUMBERS[stem]}):
        row = TABLE[number]
        if _has_a_literal(text, row.literals):
            text = replace_spans(text, _secrets(text, row), token)
    return text


def is_near(stem: str, text: str, at: int) -> bool:
    """Return whether the text at `at`, where the stem is, may be part of a command with this stem."""
    return any(at_stem is None or at_stem.compiled.match(text, at) is not None for at_stem in _AT_STEM[stem])


def may_follow(stem: str, part: str) -> bool:
    """Return whether a part of a text may contain the option of a command with this stem."""
    return any(_has_a_literal(part, row.literals) for row in _BY_STEM[stem])


def prefilter() -> str:
    """Return an expression in Rust's syntax that matches every encoded line with such a secret."""
    stems = any_of(stem for row in TABLE if not row.at_stem for stem in row.stems).replace(r"\?", ".")
    return "|".join((stems, *(row.at_stem for row in TABLE if row.at_stem)))


def _secrets(text: str, row: ArgumentPattern) -> Iterator[Span]:
    for match in row.expression.compiled.finditer(text):
        group = match.lastindex or 0
        if _ACCEPTS[row.accepts](match[group]) and _is_preceded(text, match.start(group), row):
            yield match.span(group)


def _has_a_literal(text: str, literals: tuple[str, ...]) -> bool:
    return not literals or any(literal in text for literal in literals)


def _is_preceded(text: str, at: int, row: ArgumentPattern) -> bool:
    """Whether the row's `preceded_by` matches before a place and within the same command."""
    if row.preceded_by is None:
        return True
    first = max(0, at - _MAX_COMMAND_CHARS)
    begins = max(first, *(text.rfind(separator, first, at) + 1 for separator in row.separators))
    return row.preceded_by.compiled.search(text, begins, at + 1) is not None
