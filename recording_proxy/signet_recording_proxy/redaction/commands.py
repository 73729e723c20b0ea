"""Secrets that are arguments of programs and functions, as `command_table` and `call_table` know them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from ahocorasick_rs import BytesAhoCorasick, Implementation

from signet_recording_proxy.redaction.arguments import Command
from signet_recording_proxy.redaction.call_table import CALLS
from signet_recording_proxy.redaction.command_table import COMMANDS as PROGRAMS
from signet_recording_proxy.redaction.spans import Span, Token, replace_spans

TABLE = (*PROGRAMS, *CALLS)
_OPTION_REACH = 400


class _Commands:
    """Passwords that programs take on their command lines. Text without any of `STEMS` (lower case) holds none."""

    STEMS = tuple(dict.fromkeys(stem for command in TABLE for stem in command.stems))

    def replace(self, text: str, token: Token) -> str:
        """`text` with each secret replaced by what `token` gives for it."""
        lowered = text.encode("ascii", "replace").lower()
        stems = {stem for stem, _, _ in _stems().find_matches_as_indexes(lowered, overlapping=True)}
        for number in sorted({number for stem in stems for number in _NUMBERS[stem]}):
            command = TABLE[number]
            if _has_a_mark(text, command.marks):
                text = self._without(text, command, token)
        return text

    def is_near(self, stem: str, text: str, at: int) -> bool:
        """Whether a command with this stem may stand around this place, where the stem stands in a text."""
        return any(near is None or near.match(text, at) is not None for near, _ in _OF_STEMS[stem])

    def may_follow(self, stem: str, part: str) -> bool:
        """Whether the option of a command with this stem may stand in this part of a text."""
        return any(_has_a_mark(part, marks) for _, marks in _OF_STEMS[stem])

    def gates(self) -> list[str]:
        """What stands in an encoded line that may hold one of them, as expressions of Rust's."""
        return [command.near or "|".join(map(re.escape, command.stems)) for command in TABLE]

    @staticmethod
    def _without(text: str, command: Command, token: Token) -> str:
        return replace_spans(text, _options(text, command), token)


_OF_STEMS = {
    stem: [
        (re.compile(command.near, re.IGNORECASE) if command.near else None, command.marks)
        for command in TABLE
        if stem in command.stems
    ]
    for stem in _Commands.STEMS
}


_NUMBERS = [[number for number, command in enumerate(TABLE) if stem in command.stems] for stem in _Commands.STEMS]


@cache
def _stems() -> BytesAhoCorasick:
    return BytesAhoCorasick([stem.encode() for stem in _Commands.STEMS], implementation=Implementation.DFA)


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


COMMANDS = _Commands()
