"""Host faces: what one release of a harness fires, in which order and with which members. One JSON file a face."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from signet_conformance.errors import TargetError, printable
from signet_conformance.files.json_file import read_json

if TYPE_CHECKING:
    from signet_conformance.targets import Target
    from signet_conformance.targets.face_document import FaceDocument

FOLDER = Path(__file__).parent / "faces"


@dataclass(frozen=True, slots=True)
class Face:
    """One face: its file, and the document in it."""

    path: Path
    data: FaceDocument

    @property
    def name(self) -> str:
        """The harness and the release of it that is played."""
        return f"{self.data.harness}-{self.data.version}"


def find_face(target: Target) -> Face:
    """The face of a target: a shipped one by its name, or a file of the repository's own, which ends in `.json`.

    Raises TargetError when there is none, when it breaks its schema, or when the target's driver cannot play it.
    """
    from signet_conformance.files.documents import demand
    from signet_conformance.targets.face_document import FaceDocument

    name = target.profile.face or ""
    shipped = sorted(path.stem for path in FOLDER.glob("*.json"))
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
    return Face(path, face)
