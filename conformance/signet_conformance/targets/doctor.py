"""What driving a target needs on this machine: where each thing is, or how to get it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from signet_conformance.children.environment import listens
from signet_conformance.errors import TargetError, printable
from signet_conformance.targets import files
from signet_conformance.targets.face import find_face

if TYPE_CHECKING:
    from signet_conformance.targets import Target

PORT = "{port}"
DAEMON = "{daemon}"
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True, slots=True)
class Prerequisite:
    """One thing that driving a target takes.

    `found` is where it is. It is None if the thing is missing, and `remedy` says how to get it. A `note` cannot be
    missing: it is a fact about the connector or the harness.
    """

    what: str
    found: str | None
    remedy: str | None = None
    note: bool = False


def runtime_need(target: Target, module: Path | None = None) -> Prerequisite:
    """The runtime of the connector's module."""
    purpose = "" if module is None else f", for {module.name}"
    try:
        wanted = " or ".join(files.runtimes(target, module))
    except TargetError as error:
        return missing("a runtime", error)
    return _need(f"a runtime: {wanted}{purpose}", lambda: files.find_runtime(target, module))


def connector_need(target: Target) -> Prerequisite:
    """The connector's file."""
    return _need("the connector", lambda: str(files.find_file(target)))


def loaded_needs(target: Target) -> Iterator[Prerequisite]:
    """The connector's file, and its runtime."""
    connector = connector_need(target)
    yield runtime_need(target, None if connector.found is None else Path(connector.found))
    yield connector


def program_needs(target: Target, what: str) -> Iterator[Prerequisite]:
    """The command's program, called `what`, and the connector's file and runtime if the command names them."""
    if not target.command:
        yield Prerequisite(what, None, target.profile.build)
        return
    if "{runtime}" in target.command:
        yield runtime_need(target)
    if "{module}" in target.command:
        yield connector_need(target)
    if target.command[0] in ("{runtime}", "{module}"):
        return
    yield _need(what, lambda: " ".join([files.find_program(target), *target.command[1:]]))
    for word in target.command[1:]:
        # Only absolute paths, since the name of an npm package may have slashes too.
        if Path(word).is_absolute() and not os.path.lexists(word):
            yield Prerequisite(
                "a file of the command", None, f"{printable(word, 400)} does not exist: write it, or fix command"
            )


def server_needs(target: Target) -> Iterator[Prerequisite]:
    """The connector's server on this machine: started by the kit, running already, or part of the daemon."""
    try:
        url = server_url(target)
    except TargetError as error:
        yield missing("a server", error)
        return
    if target.command:
        yield from program_needs(target, f"a server, started at {printable(url)}")
    elif DAEMON in url:
        yield Prerequisite("a server of the daemon", printable(url), note=True)
    else:
        remedy = f"nothing listens at {printable(url)}: start the server, or fix the setting url"
        yield Prerequisite("a server that runs already", printable(url) if listens(url) else None, remedy)


def _need(what: str, look: Callable[[], str]) -> Prerequisite:
    try:
        return Prerequisite(what, look())
    except TargetError as error:
        return missing(what, error)


def missing(what: str, error: TargetError) -> Prerequisite:
    """The need that an error reports as missing."""
    return Prerequisite(what, None, "; ".join(filter(None, [error.message, error.remedy])))


def examine(target: Target) -> Iterator[Prerequisite]:
    """Yield every need of a target in the order in which a run meets them, at least one."""
    yield from target.kind.needs(target)
    yield from _installed(target)
    if target.release is not None:
        yield Prerequisite("the connector's release", target.release, note=True)
    if target.undriven is not None:
        yield Prerequisite("a release that the kit drives", None, target.undriven)
    for fact in (*target.notes, *target.profile.notes):
        yield Prerequisite("about the connector", fact, note=True)
    if target.kind.has_face:
        yield from _face(target)


def _installed(target: Target) -> Iterator[Prerequisite]:
    """The programs that the connector's hooks call by name: built files of the profile, or else programs on PATH."""
    for name in target.profile.programs:
        place = files.installed_program(target, name)
        what = f"the program {name}"
        if place is None and target.profile.config is not None:
            yield Prerequisite(what, "not on PATH; needed only where a hook of the file calls it", note=True)
        else:
            remedy = f"{name} is neither built nor on PATH. {files.build_remedy(target)}"
            yield Prerequisite(what, None if place is None else str(place), remedy)
        if isinstance(place, Path) and files.runtimes(target, place) != files.runtimes(target, None):
            yield runtime_need(target, place)


def _face(target: Target) -> Iterator[Prerequisite]:
    try:
        face = find_face(target)
    except TargetError as error:
        yield missing("a face", error)
        return
    yield Prerequisite(f"the harness {face.name} was checked", face.data.checked, note=True)
    for fact in face.data.notes:
        yield Prerequisite("about that harness", fact, note=True)
    for fact in face.data.unverified:
        yield Prerequisite("not observed in that harness", fact, note=True)
    if face.data.unverified:
        yield Prerequisite(
            "if your harness differs", "copy that face into a .json file of your own, and set face to it", note=True
        )


def server_url(target: Target) -> str:
    """The URL of a target's server, with `{port}` and `{daemon}` not yet replaced.

    Raises TargetError if it is not on this machine, or if it is neither given nor started by a command.
    """
    url = target.profile.url
    if url is None:
        url = f"http://127.0.0.1:{PORT}"
    try:
        parts = urlsplit(url.replace(PORT, "80").replace(DAEMON, "http://127.0.0.1"))
    except ValueError:
        parts = urlsplit("")
    if parts.scheme != "http" or parts.hostname not in _LOOPBACK:
        raise TargetError(
            f"url is {printable(url)!r}, which is not an http address on this machine",
            where=target.where,
            remedy="the kit speaks to loopback only, such as http://127.0.0.1:8080",
        )
    if PORT in url and not target.command:
        raise TargetError(
            "neither a command nor a url",
            where=target.where,
            remedy='such as command = ["node", "{root}/server.mjs", "{port}"], or url = "http://127.0.0.1:8080"',
        )
    return url
