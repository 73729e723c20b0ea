"""What a target needs on this machine: found where, or missing and how to get it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from signet_conformance.errors import TargetError
from signet_conformance.targets import Target
from signet_conformance.targets.files import find_file, find_runtime, first_of


@dataclass(frozen=True, slots=True)
class Need:
    """One thing that driving a target takes. `found` is where it is; None with the `remedy` when it is missing."""

    what: str
    found: str | None
    remedy: str | None = None


def examine(target: Target) -> Iterator[Need]:
    """Every need of a target, in the order in which they are met."""
    if target.driver == "command":
        yield Need("a program that speaks signet-driver/1", " ".join(target.command))
        return
    if "runtime" in target.profile:
        yield _need(f"a runtime: {_names(target.profile['runtime'])}", lambda: find_runtime(target))
    if "config" not in target.profile:
        yield _need("the connector", lambda: str(find_file(target)))
    for name, places in target.profile.get("programs", {}).items():
        found = first_of(target, places)
        yield Need(f"the program {name}", f"{found}" if found else "whatever PATH has under this name")


def _names(runtime: object) -> str:
    return " or ".join(map(str, runtime)) if isinstance(runtime, list) else str(runtime)


def _need(what: str, look: Callable[[], str]) -> Need:
    try:
        return Need(what, look())
    except TargetError as error:
        return Need(what, None, f"{error.message}. {error.remedy or ''}".rstrip())
