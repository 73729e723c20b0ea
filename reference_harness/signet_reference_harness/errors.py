"""The harness's own errors: each is raised for wrong input, before any request is made.

The daemon's behaviour never raises: it comes back as a :class:`~signet_reference_harness.daemon_client.reply.Reply`.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import metadata
from pkgutil import resolve_name
from typing import Any
from urllib.parse import unquote, urlsplit


class HarnessError(Exception):
    """Base of the errors that the harness raises on purpose: `message`, and in `remedy` what to do next."""

    def __init__(self, message: str, *, remedy: str | None = None) -> None:
        self.message = message
        self.remedy = remedy
        super().__init__(f"{message}\n  try: {remedy}" if remedy else message)


class ConfigError(HarnessError):
    """Raised for an option, an environment variable or a file that cannot be used."""


class RoutingError(HarnessError):
    """Raised for an agent that the routing table names no daemon for."""


class IdentityError(HarnessError):
    """Raised when a session key, an agent id or a project cannot name a session."""


class ToolInputError(HarnessError):
    """Raised by a tool for arguments that the daemon would refuse. The model reads the error; no request is made."""


class ToolFailedError(HarnessError):
    """Raised for a tool that ran without a result. The model reads why."""


class ConfinementError(HarnessError):
    """Raised for a path that leads out of its folder, through a symbolic link, or to nothing usable."""


class ProviderError(HarnessError):
    """Raised by a provider that cannot complete; the turn is then undone, the session goes on.

    `raw_reason` is the provider's own word for what went wrong, None where it gave none.
    """

    def __init__(self, message: str, *, remedy: str | None = None, raw_reason: str | None = None) -> None:
        self.raw_reason = raw_reason
        super().__init__(message, remedy=remedy)


class ProviderDeferredError(ProviderError):
    """Raised by a provider that needs a longer wait than is allowed: it may be asked again in `seconds`."""

    def __init__(self, message: str, seconds: float, **options: Any) -> None:
        super().__init__(message, **options)
        self.seconds = seconds


class StepError(HarnessError):
    """Raised when a line of the driver protocol, or the step in it, cannot be performed."""


@contextmanager
def os_errors(where: object, remedy: str | None = None, kind: type[HarnessError] = ConfigError) -> Iterator[None]:
    """Raise an OSError of the block as an error of `kind`, with `where` and the system's reason in its message."""
    try:
        yield
    except OSError as error:
        raise kind(f"{where}: {error.strerror or error}", remedy=remedy) from None


def with_cause(error: Exception) -> str:
    """The error with the system's text for its cause, such as: connection refused."""
    text, cause = f"{type(error).__name__}: {error}".rstrip(": "), error.__cause__ or error.__context__
    while cause is not None and (cause.__cause__ or cause.__context__) is not None:
        cause = cause.__cause__ or cause.__context__
    if isinstance(cause, OSError) and cause.errno is not None:
        return f"{text} ({os.strerror(cause.errno).lower()})"
    return text


def pip_install(extra: str) -> str:
    """The command that adds an extra to what the harness was installed from: a clone or wheel, else by its name.

    A copy of the kit's function, which the harness does not import.
    """
    source = "signet-conformance"
    try:
        url = json.loads(metadata.distribution(source).read_text("direct_url.json") or "{}").get("url", "")
    except (metadata.PackageNotFoundError, ValueError):
        url = ""
    if url.startswith("file://"):
        source = unquote(urlsplit(url).path)
    return f"pip install {shlex.quote(f'{source}[{extra}]')}"


def load_plugin(
    place: str,
    where: str,
    make: Callable[[Any], Any],
    needed: tuple[str, ...],
    *,
    remedy: str,
    scrub: Callable[[str], str] = str,
) -> Any:
    """The result of `make` for the object at `place`, `module:attribute`; it has all `needed` attributes, none empty.

    Raises ConfigError, which names `where`; the text of a plugin's exception passes through `scrub`.
    """
    if not all(place.partition(":")[::2]):
        problem = f"{where}: {place!r} is not of the form module:attribute"
        raise ConfigError(problem, remedy="name it such as my_module:MyClass")
    try:
        plugin = make(resolve_name(place.replace(" ", "")))
    except HarnessError:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001  # a plugin may raise anything
        cause = scrub(f"{type(error).__name__}: {error}")
        module = place.partition(":")[0].strip()
        if isinstance(error, ModuleNotFoundError) and error.name in (module, module.partition(".")[0]):
            remedy = "install its package, or set PYTHONPATH to the folder that it is in"
        raise ConfigError(f"{where}: cannot be made from {place}: {cause}", remedy=remedy) from None
    missing = [name for name in needed if getattr(plugin, name, "") == ""]
    if missing:
        raise ConfigError(f"{where}: {place} lacks {', '.join(missing)}", remedy=remedy)
    return plugin


def printable(text: str) -> str:
    """`text` with control characters, which a terminal would execute, escaped."""
    return "".join(
        c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape", "backslashreplace").decode("ascii")
        for c in text
    )
