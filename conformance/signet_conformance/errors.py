"""The kit's exceptions, and functions that write and escape the text of messages.

Every error says what is wrong, where, with which value, and what to do next. Messages are printed as they are, so they
must not contain a traceback, a secret or a raw control character: pass foreign text in a message or remedy through
`printable`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

Place = str | os.PathLike[str]
DISTRIBUTION = "signet-conformance"
EXIT_INTERRUPTED = 130
"""The exit status of a run that its user or CI system stopped, as a shell reports one that SIGINT ended."""
MORE_FILES = "raise the limit of open files, and run it again: ulimit -n 1024"
"""The remedy if a process may open no further file."""
_CI_COMMAND = re.compile(
    r":(?=:(?:set-|add-|stop-|save-|remove-|debug|warning|error|notice|group|endgroup|echo))|#(?=#(?:vso|teamcity)?\[)",
    re.IGNORECASE,
)


def printable(value: object, limit: int = 120) -> str:
    """`value` cut to `limit` characters and escaped, so that a terminal and a CI log show it as one harmless line.

    Control characters, terminal escapes and bidirectional marks are escaped, since parts of hostile traces and command
    lines reach messages. So is the first character of text that a CI system would obey, such as `::set-output`, `##[`.
    """
    text = value if isinstance(value, str) else str(value)
    if len(text) > limit:
        text = f"{text[: limit - 1]}…"
    if not text.isprintable():
        text = "".join(
            c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode("ascii") for c in text
        )
    if "::" in text or "##" in text:
        text = _CI_COMMAND.sub(lambda match: f"\\x{ord(match[0]):02x}", text)
    return text


def pip_install(extra: str | None = None) -> str:
    """The pip command that installs the kit, with an extra.

    It names the clone or wheel that the kit was installed from, if any: a registry may lack the kit, or hold another.
    """
    import shlex
    from urllib.parse import unquote, urlsplit

    url = str(install_source().get("url", ""))
    source = unquote(urlsplit(url).path) if url.startswith("file://") else DISTRIBUTION
    return f"pip install {shlex.quote(source if extra is None else f'{source}[{extra}]')}"


def install_source() -> dict[str, Any]:
    """What pip recorded about the clone, wheel or repository that the kit was installed from; empty if nothing."""
    import json
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        noted: dict[str, Any] = json.loads(distribution(DISTRIBUTION).read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, OSError, ValueError):
        return {}
    return noted


def printable_json(text: str) -> str:
    """Escape ASCII-only JSON so that no terminal (DEL) and no CI system (`##[`) obeys it; its value stays the same."""
    return text.replace("##", "\\u0023#").replace("\x7f", "\\u007f")


def counted(number: int, noun: str) -> str:
    """The number and the noun, with a plural s unless the number is 1: `1 call`, `3,334 sessions`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def first_of(names: Iterable[str], most: int) -> str:
    """At most `most` of the names, and how many more there are: `a, b and 3 more`."""
    every = list(names)
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(every[:most]) + more


class SignetConformanceError(Exception):
    """Base of all errors that the kit raises on purpose. `exit_status` is the command's exit status.

    `where` may be foreign text: it is escaped here.
    """

    exit_status = 2

    def __init__(self, message: str, *, where: Place | None = None, remedy: str | None = None) -> None:
        self.message = message
        self.where = None if where is None else printable(where, 1000)
        self.remedy = remedy
        super().__init__(message)

    @property
    def headline(self) -> str:
        """The message, after the place if that is known."""
        return f"{self.where}: {self.message}" if self.where else self.message

    def __str__(self) -> str:
        return f"{self.headline}\ntry: {self.remedy}" if self.remedy else self.headline


class UsageError(SignetConformanceError):
    """Raised when the command line or a configuration value cannot be used."""


class TraceError(SignetConformanceError):
    """Raised when a trace file cannot be read: missing, not signet-trace/1, or damaged before its end."""


class ContractError(SignetConformanceError):
    """Raised when the schemas folder is missing, damaged, or lacks the version asked for."""


class TargetError(SignetConformanceError):
    """Raised when a target is unknown, or its profile cannot be used on this machine."""


class NothingTestedError(SignetConformanceError):
    """Raised when a run could not test anything: no daemon, no connector, no exchange."""

    exit_status = 3


class KitError(SignetConformanceError):
    """Raised when a part of the kit itself failed, such as the recorder or a rule."""

    exit_status = 4


@contextmanager
def os_errors(
    problem: str, *, where: Place | None = None, remedy: str, error: type[SignetConformanceError] = UsageError
) -> Iterator[None]:
    """Convert an OSError in the block to `error`. Its message is the `problem` and the system's reason."""
    try:
        yield
    except OSError as failure:
        raise error(f"{problem}: {failure.strerror or failure}", where=where, remedy=remedy) from None
