"""Host faces: the events of one harness release, their order and members. One JSON file each."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from signet_conformance.errors import TargetError, printable
from signet_conformance.files import read_json
from signet_conformance.targets.releases import numbers

if TYPE_CHECKING:
    from signet_conformance.targets import Target
    from signet_conformance.targets.face_document import FaceDocument

FOLDER = Path(__file__).parent / "faces"
_NEVER = "9999"
EVERY = "all"
"""In place of a name: every shipped face of the target's harness."""


@dataclass(frozen=True, slots=True)
class HostFace:
    """A face's file and document."""

    path: Path
    data: FaceDocument

    @property
    def name(self) -> str:
        """The played harness and its release."""
        return f"{self.data.harness}-{self.data.version}"

    @property
    def newer(self) -> Sequence[str]:
        """Later releases of the harness that the kit knows, oldest first, even without a face."""
        known = (*_faces_of(self.data.harness).values(), *_without_face(self.data.harness))
        return sorted({release for release in known if numbers(release) > numbers(self.data.version)}, key=numbers)

    def ahead_of(self, day: str | None) -> tuple[str, ...]:
        """The first day of the host, and `day`, if the host is newer than a connector of that day; empty otherwise."""
        current = self.data.current
        return (current.from_, day) if current is not None and day is not None and day < current.from_ else ()

    def describe(self, option: str, day: str | None = None) -> str:
        """Describe the played release and later known ones, for a connector of that `day`.

        `option` is the option that chooses another face.
        """
        faces = {release: f"{option} {name}" for name, release in _faces_of(self.data.harness).items()}
        facts = {**_without_face(self.data.harness), **faces}
        newer = ", ".join(f"{release} ({facts[release]})" for release in self.newer)
        current = self.data.current
        age = ""
        if current is not None and day is not None:
            runs = day < (current.to or _NEVER)
            age = (
                f", newer than this connector of {day}" if self.ahead_of(day) else f", as people ran it on {day}" * runs
            )
        return f"{self.data.harness} {self.data.version}{age}" + (f"; newer: {newer}" if newer else "")


def find_face(target: Target) -> HostFace:
    """Find the face of a target: a shipped one by its name, or a .json file of the repository.

    Raises TargetError if no face has that name, if it breaks its schema, or if the target's driver cannot play it.
    """
    name = target.profile.face or ""
    shipped = _shipped()
    own = name.endswith(".json")
    if not own and name not in shipped:
        raise _unknown(name, target.where, f"one of {', '.join(shipped)}, or the path of a .json file")
    path = target.folder / name if own else FOLDER / f"{name}.json"
    face = _face(path, read_json(path, "check the path, or fix the file", error=TargetError))
    needed = target.kind.plays
    if needed is not None and getattr(face.data, needed) is None:
        raise TargetError(
            f"the driver {target.driver} cannot play the face {printable(name)!r}: it has no {needed!r}",
            where=target.where,
            remedy="name a face of the same kind of harness; for a face of your own, add what is missing, as"
            " described by: signet-conformance contract schema face",
        )
    return face


def face_of_harness(name: str, release: str | None = None) -> HostFace:
    """Find a shipped face by its name, or by harness and `release` (default: the newest).

    Raises TargetError if no face and no harness has that name.
    """
    played = _faces_of(name)
    newest = next(reversed(played), name)
    wanted = next((each for each in played if played[each] == release), newest)
    if wanted not in _shipped():
        raise _unknown(name, "face", f"one of {', '.join(_shipped())}")
    return _face(FOLDER / f"{wanted}.json", _documents()[wanted])


def _face(path: Path, data: Any) -> HostFace:
    from signet_conformance.files.documents import demand
    from signet_conformance.targets.face_document import FaceDocument

    return HostFace(path, demand(FaceDocument, data, str(path), error=TargetError))


def _unknown(name: str, where: str, remedy: str) -> TargetError:
    what = f"no face is called {printable(name, 100)!r}" if name else "no face is named"
    return TargetError(what, where=where, remedy=remedy)


def ahead_of_connector(target: Target) -> tuple[str, ...]:
    """The first day of the target's host, played or real, and the connector's own, if the host is newer."""
    real = target.real
    if real is None:
        return find_face(target).ahead_of(target.day) if target.kind.has_face else ()
    try:
        face = face_of_harness(real.program.name, real.release)
    except TargetError:
        return ()
    # If the program is older than every face, the face found here says nothing about it.
    return face.ahead_of(target.day) if numbers(real.release) >= numbers(face.data.version) else ()


def changes_of_id(target: Target, step: str) -> tuple[str, ...] | None:
    """The events by which the played host reports a new id of a session in a step; None if no host is played."""
    if target.real is not None or target.profile.face is None:
        return None
    changes = find_face(target).data.changes_id.items()
    return next((tuple(events) for name, events in changes if name == step), ())


def has_own_tools(target: Target, tools: Sequence[str]) -> bool:
    """Whether the target's host has these tools itself, and reports their use to its connector."""
    return not tools or (target.kind.has_face and set(tools) <= set(find_face(target).data.own_tools))


def leaves_end_unreported(target: Target, step: str) -> bool:
    """Whether the target's host gives a session another id in this step without reporting the end of the former one."""
    named = target.real is None and target.profile.face is not None
    return named and step in find_face(target).data.ends_untold


def face_of_the_day(name: str, day: str) -> str:
    """Find the shipped face, of the harness of the face `name`, that was current on a day or in a month.

    If no face is of that time, it is the first later one, or else `name` itself.
    """
    documents = _documents()
    harness = documents[name]["harness"] if name in documents else None
    times = [(face["current"]["from"], face["current"].get("to", _NEVER), each)
             for each, face in documents.items() if face["harness"] == harness and "current" in face]  # fmt: skip
    return next((each for _, to, each in sorted(times) if day < to), name)


def known_releases(harness: str) -> Mapping[str, str]:
    """Map each release of a harness that the kit knows, oldest first, to its face or to the facts about it."""
    played = {release: f"face {name}" for name, release in _faces_of(harness).items()}
    known = {**_without_face(harness), **played}
    return {release: known[release] for release in sorted(known, key=numbers)}


def with_faces(target: Target, choice: str | None, option: str) -> Sequence[Target]:
    """Return the target once for each release of its host in which the run is performed.

    `choice` is the value of `option`: the name of a shipped face, a release of the target's harness, the path of a
    .json file, `all`, or None for the target's own face. Raises TargetError for a face that cannot be played.
    """
    if choice is None:
        return (target,)
    if not target.kind.has_face:
        raise TargetError(
            f"{printable(target.name, 60)} has no face: the driver {target.driver} does not play a harness",
            where=option,
            remedy=f"leave {option} out",
        )
    releases = _faces_of(find_face(target).data.harness)
    if choice == EVERY:
        return tuple(_playing(target, name) for name in releases) or (target,)
    if choice.endswith(".json"):
        return (_playing(target, str(Path(choice).absolute())),)
    name = next((name for name, release in releases.items() if choice in (name, release)), choice)
    if name not in _shipped():
        raise _unknown(choice, option, f"one of {', '.join(releases)}, all, or the path of a .json file")
    return (_playing(target, name),)


def _playing(target: Target, face: str) -> Target:
    target = dataclasses.replace(target, profile=target.profile.model_copy(update={"face": face}))
    find_face(target)
    return target


def _shipped() -> Sequence[str]:
    return sorted(_documents())


@cache
def _documents() -> Mapping[str, Mapping[str, Any]]:
    return {path.stem: json.loads(path.read_bytes()) for path in FOLDER.glob("*.json")}


def _faces_of(harness: str) -> dict[str, str]:
    """Map the shipped faces of a harness to the release that each one plays, the oldest first."""
    played = {name: str(face["version"]) for name, face in _documents().items() if face["harness"] == harness}
    return dict(sorted(played.items(), key=lambda row: numbers(row[1])))


def _without_face(harness: str) -> Mapping[str, str]:
    """Map the releases of a harness that no shipped face plays to the facts about them."""
    faces = (face for face in _documents().values() if face["harness"] == harness)
    return {row["release"]: row["known"] for face in faces for row in face.get("newer", ())}
