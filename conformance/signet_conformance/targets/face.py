"""Host faces: what one release of a harness fires, in which order and with which members. One JSON file a face."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from signet_conformance.errors import TargetError, printable
from signet_conformance.files.reading import read_json
from signet_conformance.targets.releases import numbers

if TYPE_CHECKING:
    from signet_conformance.targets import Target
    from signet_conformance.targets.face_document import FaceDocument

FOLDER = Path(__file__).parent / "faces"
EVERY = "all"
"""Every face of the kit that plays the target's harness, in the place of a name."""


@dataclass(frozen=True, slots=True)
class HostFace:
    """One face: its file, and the document in it."""

    path: Path
    data: FaceDocument

    @property
    def name(self) -> str:
        """The harness and the release of it that is played."""
        return f"{self.data.harness}-{self.data.version}"

    @property
    def newer(self) -> Sequence[str]:
        """The releases of the harness after this one that the kit knows, oldest first, played or not."""
        known = (*_playing_it(self.data.harness).values(), *_not_played(self.data.harness))
        return sorted({release for release in known if numbers(release) > numbers(self.data.version)}, key=numbers)

    def describe(self, option: str) -> str:
        """What is played and what newer is known, in words; `option` chooses another face."""
        faces = {release: f"{option} {name}" for name, release in _playing_it(self.data.harness).items()}
        facts = {**_not_played(self.data.harness), **faces}
        newer = ", ".join(f"{release} ({facts[release]})" for release in self.newer)
        return f"{self.data.harness} {self.data.version}" + (f"; newer: {newer}" if newer else "")


def find_face(target: Target) -> HostFace:
    """The face of a target: a shipped one by its name, or a file of the repository's own, which ends in `.json`.

    Raises TargetError when nothing has that name, when the face breaks its schema, or when the driver cannot play it.
    """
    from signet_conformance.files.documents import demand
    from signet_conformance.targets.face_document import FaceDocument

    name = target.profile.face or ""
    shipped = _shipped()
    own = name.endswith(".json")
    if not own and name not in shipped:
        raise TargetError(
            f"no face is called {printable(name)!r}" if name else "no face is named",
            where=target.where,
            remedy=f"one of {', '.join(shipped)}, or the path of a .json file",
        )
    path = target.folder / name if own else FOLDER / f"{name}.json"
    data = read_json(path, "check the path, or mend the file", error=TargetError)
    face = demand(FaceDocument, data, str(path), error=TargetError)
    needed = target.kind.plays
    if needed is not None and getattr(face, needed) is None:
        raise TargetError(
            f"the face {printable(name)!r} is not one that the driver {target.driver} plays: it has no {needed!r}",
            where=target.where,
            remedy="name a face of the same kind of harness",
        )
    return HostFace(path, face)


def face_of_harness(name: str, release: str | None = None) -> HostFace:
    """The face of that name; of a harness's name the one that plays the `release`, or else its newest.

    Raises TargetError when neither a face nor a harness has that name.
    """
    from signet_conformance.files.documents import demand
    from signet_conformance.targets.face_document import FaceDocument

    played = _playing_it(name)
    newest = sorted(played, key=lambda each: numbers(played[each]))
    wanted = next((each for each in newest if played[each] == release), newest[-1] if newest else name)
    if wanted not in _shipped():
        raise TargetError(
            f"no face is called {printable(name, 100)!r}", where="face", remedy=f"one of {', '.join(_shipped())}"
        )
    path = FOLDER / f"{wanted}.json"
    return HostFace(path, demand(FaceDocument, _documents()[wanted], str(path), error=TargetError))


def known_releases(harness: str) -> Mapping[str, str]:
    """The releases of a harness that the kit knows, oldest first, each with the face that plays it or what is known."""
    played = {release: f"face {name}" for name, release in _playing_it(harness).items()}
    known = {**_not_played(harness), **played}
    return {release: known[release] for release in sorted(known, key=numbers)}


def with_faces(target: Target, choice: str | None, option: str) -> Sequence[Target]:
    """A target as often as its run is performed, each time in the host release that `choice` names.

    `choice` is what `option` was given: the name of a face of the kit, a release of the target's harness, the path of a
    .json file, `all`, or None for the target's own. Raises TargetError for one that cannot be played.
    """
    if choice is None:
        return (target,)
    if not target.kind.has_face:
        raise TargetError(
            f"{printable(target.name, 60)} has no face: the driver {target.driver} plays no harness of the kit's",
            where=option,
            remedy=f"leave {option} out",
        )
    releases = _playing_it(find_face(target).data.harness)
    if choice == EVERY:
        every = sorted(releases, key=lambda name: numbers(releases[name]))
        return tuple(_playing(target, name) for name in every) or (target,)
    if choice.endswith(".json"):
        return (_playing(target, str(Path(choice).absolute())),)
    name = next((name for name, release in releases.items() if choice in (name, release)), choice)
    if name not in _shipped():
        raise TargetError(
            f"no face is called {printable(choice, 100)!r}",
            where=option,
            remedy=f"one of {', '.join(releases)}, all, or the path of a .json file",
        )
    return (_playing(target, name),)


def _playing(target: Target, face: str) -> Target:
    played = dataclasses.replace(target, profile=target.profile.model_copy(update={"face": face}))
    find_face(played)
    return played


def _shipped() -> Sequence[str]:
    return sorted(_documents())


@cache
def _documents() -> Mapping[str, Mapping[str, Any]]:
    """The faces of the kit by name, as they stand in their files."""
    return {path.stem: json.loads(path.read_bytes()) for path in FOLDER.glob("*.json")}


def _playing_it(harness: str) -> Mapping[str, str]:
    """The faces of the kit that play a harness, by name, each with the release of it."""
    return {name: face["version"] for name, face in _documents().items() if face["harness"] == harness}


def _not_played(harness: str) -> Mapping[str, str]:
    """The releases of a harness that no face of the kit plays, each with what is known of it."""
    faces = (face for face in _documents().values() if face["harness"] == harness)
    return {row["release"]: row["known"] for face in faces for row in face.get("newer", ())}
