"""Commands that a message names, as lines that can be pasted into a shell."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence

from signet_conformance.errors import printable


def shell_command(words: Sequence[str]) -> str:
    """The words as one line for a POSIX shell; what a terminal must not see, or a CI obeys, is in escapes ($'…')."""
    return " ".join(_shell_word(word) for word in words)


def _shell_word(word: str) -> str:
    if printable(word, len(word)) == word:
        return shlex.quote(word)
    escaped = (
        f"\\x{byte:02x}" if not 0x20 <= byte < 0x7F or byte in b"'\\#:" else chr(byte) for byte in _bytes_of(word)
    )
    return f"$'{''.join(escaped)}'"


def _bytes_of(word: str) -> bytes:
    try:
        return os.fsencode(word)
    except UnicodeEncodeError:
        # Half a character, which a recording may hold and no name of a file.
        return word.encode("utf-8", "surrogatepass")
