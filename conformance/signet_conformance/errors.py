"""The error tree, and what makes text safe in messages. Every error says what, where, which value, what to do next.

Messages reach the terminal as they are, so a message never holds a traceback, a secret or a raw control character
(see :func:`printable`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

INTERRUPTED = 130
"""Exit status of a run that its user stopped, as a shell reports it."""
_CI_COMMAND = re.compile(
    r":(?=:(?:set-|add-|stop-|save-|remove-|debug|warning|error|notice|group|endgroup|echo))|#(?=#(?:vso|teamcity)?\[)",
    re.IGNORECASE,
)


def printable(value: object, limit: int = 120) -> str:
    """`value` as one line that a terminal shows harmlessly, cut to `limit` characters.

    Control characters, terminal escapes and bidirectional marks come out escaped: traces and
    command lines may be hostile, and their pieces end up in messages. What a CI system would take for a command of
    its own, such as `::set-output` or `##[`, has its first character escaped.
    """
    text = value if isinstance(value, str) else str(value)
    if len(text) > limit:
        text = f"{text[: limit - 1]}…"
    shown = (
        text
        if text.isprintable()
        else "".join(
            c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode("ascii") for c in text
        )
    )
    return _CI_COMMAND.sub(lambda match: f"\\x{ord(match[0]):02x}", shown) if "::" in shown or "##" in shown else shown


def pip_install(extra: str) -> str:
    """The command that adds an extra: to the clone or wheel that the kit was installed from, else by the kit's name.

    A registry need not have the kit, or may have another one.
    """
    import json
    import shlex
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import unquote, urlsplit

    source = "signet-conformance"
    try:
        url = json.loads(distribution(source).read_text("direct_url.json") or "{}").get("url", "")
    except (PackageNotFoundError, ValueError):
        url = ""
    if url.startswith("file://"):
        source = unquote(urlsplit(url).path)
    return f"pip install {shlex.quote(f'{source}[{extra}]')}"


def printable_json(text: str) -> str:
    """JSON in ASCII that means the same and that no terminal obeys, nor a CI system: it looks for `##[` in any line."""
    return text.replace("##", "\\u0023#").replace("\x7f", "\\u007f")


def counted(number: int, noun: str) -> str:
    """A number with its noun, which takes an s: `1 call`, `3,334 sessions`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def first_of(names: Iterable[str], most: int) -> str:
    """The first of some names, and how many more there are: `a, b and 3 more`."""
    every = list(names)
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(every[:most]) + more


class SignetConformanceError(Exception):
    """Base of all errors that the kit raises on purpose. `exit_status` is what a command ends with."""

    exit_status = 2

    def __init__(self, message: str, *, where: str | None = None, remedy: str | None = None) -> None:
        self.message = message
        self.where = where
        self.remedy = remedy
        super().__init__(message)

    def __str__(self) -> str:
        head = f"{self.where}: {self.message}" if self.where else self.message
        return f"{head}\n  try: {self.remedy}" if self.remedy else head


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
    """Raised when a part of the kit itself failed: a crashed recorder, a rule that raised."""

    exit_status = 4


@contextmanager
def os_errors(
    what: str, *, where: str | None = None, remedy: str, error: type[SignetConformanceError] = UsageError
) -> Iterator[None]:
    """Raise an OSError of the block as `error`, which says `what` went wrong, and the system's reason."""
    try:
        yield
    except OSError as failure:
        raise error(f"{what}: {failure.strerror or failure}", where=where, remedy=remedy) from None
