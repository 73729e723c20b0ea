"""Commands that a message names, as lines for a shell, and where the page of a requirement is."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Sequence
from functools import cache

from signet_conformance.errors import printable

_MAX_PAGES = 3


def shell_command(words: Sequence[str]) -> str:
    """The words as one line for a POSIX shell; characters that could control a terminal or a CI are escaped ($'…')."""
    runner = os.environ.get(_RUNNER) if words and words[0] == _PROGRAM else None
    return " ".join([*([runner] if runner in _RUNNERS else []), *(_shell_word(word) for word in words)])


_PROGRAM = "signet-conformance"
_RUNNER = "SIGNET_CONFORMANCE_RUNNER"
"""Set by the npm package, whose users do not have the program on their search path."""
_RUNNERS = ("npx", "pnpm exec", "yarn", "bunx")


def _shell_word(word: str) -> str:
    if printable(word, len(word)) == word:
        return shlex.quote(word)
    escaped = (
        f"\\x{byte:02x}" if not 0x20 <= byte < 0x7F or byte in b"'\\#:" else chr(byte) for byte in bytes_of(word)
    )
    return f"$'{''.join(escaped)}'"


def bytes_of(word: str) -> bytes:
    """The bytes of a word of a command line, or of a path."""
    try:
        return os.fsencode(word)
    except UnicodeEncodeError:
        # A lone surrogate, which a recording may hold but no name of a file.
        return word.encode("utf-8", "surrogatepass")


_DISTRIBUTION = "signet-conformance"
_LABEL = "documentation"


def explain_command(requirement: str) -> str:
    """The command that shows a requirement's page in a terminal, ready to be pasted."""
    return shell_command(["signet-conformance", "explain", requirement])


def explain_words(requirements: Iterable[str]) -> Sequence[str]:
    """The command that shows the pages of the first of them that have one; empty if none has."""
    from signet_conformance.contract import catalogue

    names = [name for name in requirements if name in catalogue()]
    return ["signet-conformance", "explain", *names[:_MAX_PAGES]] if names else ()


def explain_note(requirement: str) -> str:
    """The command in parentheses, for the end of a message; empty for a requirement without a page."""
    # Imported here, because commands that only quote a name for a shell start without the law.
    from signet_conformance.contract import catalogue

    known = requirement in catalogue()
    return f" ({explain_command(requirement)})" if known else ""


def page_address(requirement: str) -> str | None:
    """The address of a requirement's page; None while the package names no documentation."""
    site = _site()
    return None if site is None else f"{site}/requirements/{requirement}/"


@cache
def _site() -> str | None:
    """The `Documentation` address of the package's metadata, which comes from pyproject.toml."""
    # It imports the email package, which most runs do not need.
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        links = metadata(_DISTRIBUTION).get_all("Project-URL") or ()
    except PackageNotFoundError:
        return None
    for link in links:
        label, _, address = link.partition(",")
        if label.strip().lower() == _LABEL and address.strip().startswith("https://"):
            return str(address.strip().rstrip("/"))
    return None
