"""Target profiles: a connector's driver, how it is launched, what it declares. Data, one JSON file a target."""

from __future__ import annotations

import difflib
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from signet_conformance.errors import TargetError, printable
from signet_conformance.trace import Declared

_FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Target:
    """A named connector. `command` is what the driver launches, `{python}` replaced by this interpreter."""

    name: str
    title: str
    driver: str
    command: tuple[str, ...]
    declared: Declared


def names() -> Sequence[str]:
    """The known targets, sorted."""
    return sorted(path.stem for path in _FOLDER.glob("*.json"))


def load(name: str) -> Target:
    """The target of a name. Raises TargetError naming the nearest known ones when there is none."""
    known = names()
    if name not in known:
        near = difflib.get_close_matches(name, known, n=3, cutoff=0.4) or known[:5]
        raise TargetError(
            f"no target is called {printable(name, 60)!r}",
            where="--target",
            remedy=f"did you mean {' or '.join(near)}? All: signet-conformance targets",
        )
    data = json.loads((_FOLDER / f"{name}.json").read_bytes())
    return Target(
        name=data["name"],
        title=data["title"],
        driver=data["driver"],
        command=tuple(part.replace("{python}", sys.executable) for part in data["command"]),
        declared=Declared.from_json(data["declared"], f"targets/{name}.json"),
    )
