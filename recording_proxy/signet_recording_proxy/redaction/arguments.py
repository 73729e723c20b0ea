"""Secrets that are arguments of programs and functions, and how the tables of these are written."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from ahocorasick_rs import BytesAhoCorasick, Implementation

from signet_recording_proxy.redaction.secret_names import is_value
from signet_recording_proxy.redaction.spans import Span, Token, replace_spans

GIVEN = (
    r"(?:\\{0,4}'([^'\\\n]{4,256}+)\\{0,4}'|\\{0,4}\"([^\"\\$\n]{4,256}+)\\{0,4}\""
    r"|\\{0,4}[\"']?([^\s\"'\\|;&<>$-][^\s\"'\\|;&<>]{3,255}+))"
)
"""The value of an option: a word without a variable, or what stands in quotes."""
QUOTED = r"\\{0,4}[\"'`]([^\s\"'`\\]{8,256}+)\\{0,4}[\"'`]"


def option(name: str) -> re.Pattern[str]:
    """An option of this name, with a value behind a blank."""
    return re.compile(rf"\s{name}\s{{1,4}}{GIVEN}")


NAME = (
    r"(?i:passw(?:or[dt]|d)|pass_?phrase|secret|token"
    r"|(?:api|app|secret|access|private|auth|signing|encryption|master|licen[cs]e)_?key)"
)
WITH_A_DIGIT = r"(?=[^\s\"'`<&]{0,255}[0-9])"


class Command(NamedTuple):
    """Programs, and an option by which they take a password; without a program the option names it itself.

    Text that holds it has one of `stems` in lower case, and there what `near` matches (in Python's expressions and in
    Rust's, in any case, in text and in an encoded line); and one of `marks` as they are, if there are any. `apart` is
    what the option cannot stand behind. The last group of `option` is the secret, on which `accepts` has the last word.
    """

    stems: tuple[str, ...]
    option: re.Pattern[str]
    program: re.Pattern[str] | None = None
    marks: tuple[str, ...] = ()
    apart: str = "\n|;"
    near: str = ""
    accepts: Callable[[str], bool] = is_value


_OPTION_REACH = 400


class Arguments:
    """Secrets that the commands of a table take. Text without any of `stems` (lower case) holds none."""

    def __init__(self, table: Sequence[Command]) -> None:
        self.table = table
        self.stems = tuple(dict.fromkeys(stem for command in table for stem in command.stems))
        self._of_stems = {stem: [each for each in table if stem in each.stems] for stem in self.stems}
        self._near = {
            stem: [re.compile(each.near, re.IGNORECASE) if each.near else None for each in commands]
            for stem, commands in self._of_stems.items()
        }
        self._numbers = [[number for number, each in enumerate(table) if stem in each.stems] for stem in self.stems]

    @cached_property
    def _search(self) -> BytesAhoCorasick:
        return BytesAhoCorasick([stem.encode() for stem in self.stems], implementation=Implementation.DFA)

    def replace(self, text: str, token: Token) -> str:
        """`text` with each secret replaced by what `token` gives for it."""
        lowered = text.encode("ascii", "replace").lower()
        stems = {stem for stem, _, _ in self._search.find_matches_as_indexes(lowered, overlapping=True)}
        for number in sorted({number for stem in stems for number in self._numbers[stem]}):
            command = self.table[number]
            if _has_a_mark(text, command.marks):
                text = replace_spans(text, _options(text, command), token)
        return text

    def is_near(self, stem: str, text: str, at: int) -> bool:
        """Return whether the text at `at`, where the stem is, may be part of a command with this stem."""
        return any(near is None or near.match(text, at) is not None for near in self._near[stem])

    def may_follow(self, stem: str, part: str) -> bool:
        """Return whether a part of a text may contain the option of a command with this stem."""
        return any(_has_a_mark(part, command.marks) for command in self._of_stems[stem])

    def gates(self) -> list[str]:
        """Return expressions in Rust's syntax: an encoded line that holds such a secret matches one of them."""
        return [command.near or "|".join(map(re.escape, command.stems)) for command in self.table]


def _options(text: str, command: Command) -> Iterator[Span]:
    for match in command.option.finditer(text):
        group = match.lastindex or 0
        if command.accepts(match[group]) and _is_option_of(text, match.start(group), command):
            yield match.span(group)


def _has_a_mark(text: str, marks: tuple[str, ...]) -> bool:
    return not marks or any(mark in text for mark in marks)


def _is_option_of(text: str, at: int, command: Command) -> bool:
    """Whether the program of a command stands before a place, with nothing between that ends the command."""
    if command.program is None:
        return True
    first = max(0, at - _OPTION_REACH)
    begins = max(first, *(text.rfind(mark, first, at) + 1 for mark in command.apart))
    return command.program.search(text, begins, at + 1) is not None
