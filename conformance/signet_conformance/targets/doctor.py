"""What a target needs on this machine: found where, or missing and how to get it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec

from signet_conformance.errors import TargetError
from signet_conformance.targets import Target
from signet_conformance.targets.face import find_face
from signet_conformance.targets.files import find_file, find_runtime, first_of


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
    """Every need of a target, in the order in which they are met."""
    if target.driver == "command":
        yield _program(target, "a program that speaks signet-driver/1")
    if target.driver == "http-adapter" and target.command:
        yield _program(target, "a server that speaks signet-adapter/1")
    elif "url" in target.profile:
        yield Need("a server that runs already", str(target.profile["url"]), note=True)
    served = target.driver == "mcp" and "url" in target.profile
    if served:
        yield _client()
    elif "runtime" in target.profile:
        yield _need(f"a runtime: {_names(target.profile['runtime'])}", lambda: find_runtime(target))
    if "config" in target.profile:
        yield _config(target)
    elif not served and ("files" in target.profile or "module" in target.profile):
        yield _need("the connector", lambda: str(find_file(target)))
    for name, places in target.profile.get("programs", {}).items():
        found = first_of(target, places)
        yield Need(f"the program {name}", f"{found}" if found else "whatever PATH has under this name")
    if "face" in target.profile:
        yield from _face(target)


def _client() -> Need:
    found = find_spec("mcp")
    where = None if found is None else found.origin
    return Need("the official MCP client", where, "pip install 'signet-conformance[harness]'")


def _program(target: Target, what: str) -> Need:
    if not target.command:
        return Need(what, None, target.profile.get("build"))
    program = shutil.which(target.command[0])
    if program is None and "{" not in target.command[0]:
        return Need(what, None, f"{target.command[0]} is not on PATH: install it, or mend the setting command")
    return Need(what, " ".join(target.command))


def _config(target: Target) -> Need:
    path = target.folder / str(target.profile["config"])
    found = str(path) if path.is_file() else None
    return Need("the file of hooks", found, f"{path} does not exist: mend the setting config")


def _face(target: Target) -> Iterator[Need]:
    """The harness that is played: what of it is known from where, and what is not known."""
    try:
        face = find_face(target)
    except TargetError as error:
        yield _missing("a face", error)
        return
    yield Need(f"the harness {face.name}", f"{face.data['checked']}", note=True)
    for fact in face.data.get("unverified", ()):
        yield Need("not seen in that harness", fact, note=True)
    if "unverified" in face.data:
        yield Need("where it is otherwise", "set face to a .json file of your own, made from that one", note=True)


def _names(runtime: object) -> str:
    return " or ".join(map(str, runtime)) if isinstance(runtime, list) else str(runtime)


def _need(what: str, look: Callable[[], str]) -> Need:
    try:
        return Need(what, look())
    except TargetError as error:
        return _missing(what, error)


def _missing(what: str, error: TargetError) -> Need:
    return Need(what, None, f"{error.message}. {error.remedy or ''}".rstrip())
