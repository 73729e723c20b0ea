"""What a target needs on this machine: found where, or missing and how to get it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from signet_conformance.errors import TargetError
from signet_conformance.targets import Target
from signet_conformance.targets.face import find_face
from signet_conformance.targets.files import installed_program, made, runtimes
from signet_conformance.targets.needs import Need, missing, runtime_need

__all__ = ["Need", "examine"]


def examine(target: Target) -> Iterator[Need]:
    """Every need of a target, in the order in which they are met; at least one."""
    yield from target.kind.needs(target)
    yield from _installed(target)
    if target.release is not None:
        yield Need("the connector's release", target.release, note=True)
    if target.undriven is not None:
        yield Need("a release that the kit drives", None, target.undriven)
    for fact in (*target.notes, *target.profile.notes):
        yield Need("known of the connector", fact, note=True)
    if target.kind.has_face:
        yield from _face(target)


def _installed(target: Target) -> Iterator[Need]:
    """The programs that the connector installs by name: those of the profile's places, or else of PATH."""
    for name in target.profile.programs:
        place = installed_program(target, name)
        what = f"the program {name}"
        if place is None and target.profile.config is not None:
            yield Need(what, "not on PATH; needed only where a hook of the file calls it", note=True)
        else:
            remedy = f"{name} is neither built nor on PATH. {made(target)}"
            yield Need(what, None if place is None else str(place), remedy)
        if isinstance(place, Path) and runtimes(target, place) != target.profile.runtime:
            yield runtime_need(target, place)


def _face(target: Target) -> Iterator[Need]:
    """The harness that is played: what of it is known from where, and what is not known."""
    try:
        face = find_face(target)
    except TargetError as error:
        yield missing("a face", error)
        return
    yield Need(f"the harness {face.name}", face.data.checked, note=True)
    for fact in face.data.notes:
        yield Need("known of that harness", fact, note=True)
    for fact in face.data.unverified:
        yield Need("not seen in that harness", fact, note=True)
    if face.data.unverified:
        yield Need("where it is otherwise", "set face to a .json file of your own, made from that one", note=True)
