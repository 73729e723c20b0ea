"""One thing that driving a target takes, and the things that several kinds of connector take."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from signet_conformance.errors import TargetError, printable
from signet_conformance.targets.files import find_file, find_program, find_runtime, runtimes
from signet_conformance.targets.server import DAEMON, listens, server_url

if TYPE_CHECKING:
    from signet_conformance.targets import Target


@dataclass(frozen=True, slots=True)
class Need:
    """One thing that driving a target takes. `found` is where it is; None with the `remedy` when it is missing.

    A `note` is nothing that can be missing: what is known of the harness that is played, and what is not.
    """

    what: str
    found: str | None
    remedy: str | None = None
    note: bool = False


def runtime_need(target: Target, module: Path | None = None) -> Need:
    """What runs the connector's module, which may ask for more than the target names: TypeScript wants bun."""
    for_what = "" if module is None else f", for {module.name}"
    return _need(f"a runtime: {' or '.join(runtimes(target, module))}{for_what}", lambda: find_runtime(target, module))


def connector_need(target: Target) -> Need:
    """The connector's file."""
    return _need("the connector", lambda: str(find_file(target)))


def loaded_needs(target: Target) -> Iterator[Need]:
    """The connector's file, and what runs it."""
    connector = connector_need(target)
    yield runtime_need(target, None if connector.found is None else Path(connector.found))
    yield connector


def program_needs(target: Target, what: str) -> Iterator[Need]:
    """The program of the command, called `what`; the connector's file and its runtime where the command has them."""
    if not target.command:
        yield Need(what, None, target.profile.build)
        return
    if "{runtime}" in target.command:
        yield runtime_need(target)
    if "{module}" in target.command:
        yield connector_need(target)
    if target.command[0] in ("{runtime}", "{module}"):
        return
    yield _need(what, lambda: " ".join([find_program(target), *target.command[1:]]))
    for word in target.command[1:]:
        # Only what the settings name as a path of this machine: a name of npm's packages holds slashes too.
        if Path(word).is_absolute() and not os.path.lexists(word):
            yield Need(
                "a file of the command", None, f"{printable(word, 400)} does not exist: write it, or mend command"
            )


def server_needs(target: Target) -> Iterator[Need]:
    """A server on this machine: one that is started, that runs already, or that belongs to the daemon."""
    try:
        url = server_url(target)
    except TargetError as error:
        yield missing("a server", error)
        return
    if target.command:
        yield from program_needs(target, f"a server, started at {printable(url)}")
    elif DAEMON in url:
        yield Need("a server of the daemon", printable(url), note=True)
    else:
        remedy = f"nothing listens at {printable(url)}: start the server, or mend the setting url"
        yield Need("a server that runs already", printable(url) if listens(url) else None, remedy)


def _need(what: str, look: Callable[[], str]) -> Need:
    try:
        return Need(what, look())
    except TargetError as error:
        return missing(what, error)


def missing(what: str, error: TargetError) -> Need:
    """A need that an error tells to be missing."""
    return Need(what, None, f"{error.message}. {error.remedy or ''}".rstrip())
