"""The kind `command`: a program of the connector's author performs the steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from signet_conformance.errors import TargetError
from signet_conformance.targets.files import find_file, find_runtime
from signet_conformance.targets.kinds.kind import LOADED, Kind
from signet_conformance.targets.needs import Need, program_needs

if TYPE_CHECKING:
    from signet_conformance.targets import Target


def _command_line(target: Target) -> tuple[str, ...]:
    """The command of the profile, with the connector's file and its runtime in their places."""
    if not target.command:
        raise TargetError(f"no program drives {target.name} yet", where=target.where, remedy=target.profile.build)
    places: Mapping[str, Callable[[], str]] = {
        "{runtime}": lambda: find_runtime(target),
        "{module}": lambda: str(find_file(target)),
    }
    return tuple(places[word]() if word in places else word for word in target.command)


def _needs(target: Target) -> Iterator[Need]:
    yield from program_needs(target, "a program that speaks signet-driver/1")


KIND = Kind(
    name="command",
    reads=LOADED | {"command"},
    command_line=_command_line,
    needs=_needs,
    has_face=False,
    own_program=True,
)
