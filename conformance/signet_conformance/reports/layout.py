"""Lines for a terminal: wrapped at words, coloured only on request, words of a shell quoted."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from textwrap import wrap

from click import style

from signet_conformance.finding import Verdict

MIN_WIDTH = 40
MAX_WIDTH = 120
LABEL_WIDTH = 10

_COLOURS = {
    Verdict.ERROR: "magenta",
    Verdict.FAIL: "red",
    Verdict.WARN: "yellow",
    Verdict.PASS: "green",
    Verdict.INCONCLUSIVE: "cyan",
    Verdict.NOT_APPLICABLE: "bright_black",
}


def usable_width(width: int) -> int:
    """`width` in columns, kept between what can be read and what is comfortable."""
    return max(MIN_WIDTH, min(width, MAX_WIDTH))


def painted(text: str, verdict: Verdict, colour: bool) -> str:
    """`text` in the colour of a verdict."""
    return style(text, fg=_COLOURS[verdict], bold=True) if colour else text


def strong(text: str, colour: bool) -> str:
    """`text` in bold."""
    return style(text, bold=True) if colour else text


def faint(text: str, colour: bool) -> str:
    """`text` in a colour that stands back."""
    return style(text, fg="bright_black") if colour else text


def paragraph(text: str, width: int, indent: str = "", hanging: str | None = None) -> list[str]:
    """`text` wrapped at words; lines after the first are indented by `hanging` (default: `indent`)."""
    return wrap(
        text,
        width,
        initial_indent=indent,
        subsequent_indent=indent if hanging is None else hanging,
        break_on_hyphens=False,
    ) or [indent]


def labelled(label: str, text: str, width: int, colour: bool) -> list[str]:
    """A label in its own column with wrapped text beside it."""
    margin = " " * (2 + LABEL_WIDTH)
    first, *rest = paragraph(text, width, margin)
    return [f"  {faint(f'{label:<{LABEL_WIDTH}}', colour)}{first[len(margin) :]}", *rest]


def command_line(label: str, words: Sequence[str], colour: bool) -> str:
    """A label and a command on one line, however long: a command that is broken cannot be pasted."""
    return f"  {faint(f'{label:<{LABEL_WIDTH}}', colour)}{shell_command(words)}"


def shell_command(words: Sequence[str]) -> str:
    """The words as one line for a POSIX shell; what a terminal must not see is written as escapes ($'…')."""
    return " ".join(_shell_word(word) for word in words)


def _shell_word(word: str) -> str:
    if word.isprintable():
        return shlex.quote(word)
    escaped = (
        f"\\x{byte:02x}" if not 0x20 <= byte < 0x7F or byte in b"'\\" else chr(byte) for byte in os.fsencode(word)
    )
    return f"$'{''.join(escaped)}'"
