"""How the tables of programs and of functions are written: what takes a secret, and where that stands."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from signet_recording_proxy.redaction.secret_names import is_value

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
