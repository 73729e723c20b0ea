"""What a target needs on this machine: found where, or missing and how to get it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from signet_conformance.errors import TargetError, printable
from signet_conformance.targets import Target
from signet_conformance.targets.face import find_face
from signet_conformance.targets.files import find_file, find_program, find_runtime, first_of
from signet_conformance.targets.server import DAEMON, listens, server_url

_FACELESS = ("command", "http-adapter")
"""The drivers that leave it to the connector's author which harness is played."""


@dataclass(frozen=True, slots=True)
class Need:
    """One thing that driving a target takes. `found` is where it is; None with the `remedy` when it is missing.

    A `note` is nothing that can be missing: what is known of the harness that is played, and what is not.
    """

    what: str
    found: str | None
    remedy: str | None = None
    note: bool = False


def examine(target: Target) -> Iterator[Need]:
    """Every need of a target, in the order in which they are met; at least one."""
    served = target.profile.url is not None
    if target.driver == "command":
        yield from _program(target, "a program that speaks signet-driver/1")
    elif target.driver == "http-adapter" or served:
        yield from _server(target)
    elif target.driver == "mcp" and target.command:
        yield from _program(target, "a memory server over standard input and output")
    elif target.profile.config is not None:
        yield _need(f"a runtime: {_names(target)}", lambda: find_runtime(target))
        yield _config(target.folder / target.profile.config)
    else:
        yield from _loaded(target)
    if target.driver == "mcp" and served:
        yield _client()
    yield from _installed(target)
    if target.driver not in _FACELESS:
        yield from _face(target)


def _loaded(target: Target) -> Iterator[Need]:
    """The connector's file, and what runs it."""
    if target.driver != "python-plugin":
        yield _need(f"a runtime: {_names(target)}", lambda: find_runtime(target))
    yield _need("the connector", lambda: str(find_file(target)))


def _program(target: Target, what: str) -> Iterator[Need]:
    if not target.command:
        yield Need(what, None, target.profile.build)
        return
    if "{runtime}" in target.command:
        yield _need(f"a runtime: {_names(target)}", lambda: find_runtime(target))
    if "{module}" in target.command:
        yield _need("the connector", lambda: str(find_file(target)))
    if target.command[0] in ("{runtime}", "{module}"):
        return
    yield _need(what, lambda: " ".join([find_program(target), *target.command[1:]]))
    for word in target.command[1:]:
        # Only what the settings name as a path of this machine: a name of npm's packages holds slashes too.
        if Path(word).is_absolute() and not os.path.lexists(word):
            yield Need(
                "a file of the command", None, f"{printable(word, 400)} does not exist: write it, or mend command"
            )


def _server(target: Target) -> Iterator[Need]:
    try:
        url = server_url(target)
    except TargetError as error:
        yield _missing("a server", error)
        return
    if target.command:
        yield from _program(target, f"a server, started at {printable(url)}")
    elif DAEMON in url:
        yield Need("a server of the daemon", printable(url), note=True)
    else:
        remedy = f"nothing listens at {printable(url)}: start the server, or mend the setting url"
        yield Need("a server that runs already", printable(url) if listens(url) else None, remedy)


def _client() -> Need:
    found = find_spec("mcp")
    where = None if found is None else found.origin
    return Need("the official MCP client", where, "pip install 'signet-conformance[harness]'")


def _config(path: Path) -> Need:
    found = str(path) if path.is_file() else None
    return Need("the file of hooks", found, f"{path} does not exist: mend the setting config")


def _installed(target: Target) -> Iterator[Need]:
    """The programs that the connector installs by name: those of the profile's places, or else of PATH."""
    for name, places in target.profile.programs.items():
        found = first_of(target, places) or shutil.which(name)
        what = f"the program {name}"
        if found is None and target.profile.config is not None:
            yield Need(what, "not on PATH; needed only where a hook of the file calls it", note=True)
        else:
            made = "build the connector" if target.profile.build is None else target.profile.build
            yield Need(what, None if found is None else str(found), f"{name} is neither built nor on PATH. {made}")


def _face(target: Target) -> Iterator[Need]:
    """The harness that is played: what of it is known from where, and what is not known."""
    try:
        face = find_face(target)
    except TargetError as error:
        yield _missing("a face", error)
        return
    yield Need(f"the harness {face.name}", face.data.checked, note=True)
    for fact in face.data.unverified:
        yield Need("not seen in that harness", fact, note=True)
    if face.data.unverified:
        yield Need("where it is otherwise", "set face to a .json file of your own, made from that one", note=True)


def _names(target: Target) -> str:
    return " or ".join(target.profile.runtime)


def _need(what: str, look: Callable[[], str]) -> Need:
    try:
        return Need(what, look())
    except TargetError as error:
        return _missing(what, error)


def _missing(what: str, error: TargetError) -> Need:
    return Need(what, None, f"{error.message}. {error.remedy or ''}".rstrip())
