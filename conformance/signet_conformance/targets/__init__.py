"""Target profiles: a connector's driver, how it is found and launched, what it declares. One JSON file a target."""

from __future__ import annotations

import difflib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from signet_conformance.errors import TargetError, printable
from signet_conformance.targets.settings import Settings, read_settings
from signet_conformance.trace import Declared

DRIVERS = ("command", "command-hooks", "mcp", "node-plugin", "python-plugin")
PROCESSES = ("one", "agent", "session")
_FOLDER = Path(__file__).parent
_DECLARED = ("agents", "harness", "bounds_s", "capabilities", "token")


@dataclass(frozen=True, slots=True)
class Target:
    """A named connector.

    `command` is what the driver `command` launches, `{python}` replaced by this interpreter and `{root}` by
    the folder of the settings. `profile` holds what the other drivers read (`face`, `files`, `runtime`,
    `options`, `tools`, `install`). `processes` says what shares a connector process: the whole run (`one`),
    the sessions of an `agent`, or a single `session`. `root` is the folder in which files are looked for.
    """

    name: str
    title: str
    driver: str
    command: tuple[str, ...]
    declared: Declared
    processes: str = "one"
    env: Mapping[str, str] = field(default_factory=dict)
    profile: Mapping[str, Any] = field(default_factory=dict)
    root: Path = field(default_factory=Path.cwd)


def names() -> Sequence[str]:
    """The known targets, sorted."""
    return sorted(path.stem for path in _FOLDER.glob("*.json"))


def load(name: str, root: Path | None = None) -> Target:
    """The target of a name, with the settings of the repository around `root` (default: where one stands).

    Raises TargetError naming the nearest known ones when there is none, or the setting that is off.
    """
    root = Path.cwd() if root is None else root
    settings = read_settings(root)
    own = settings.targets.get(name, {})
    known = sorted({*names(), *settings.targets})
    if name not in known:
        near = difflib.get_close_matches(name, known, n=3, cutoff=0.4) or known[:5]
        raise TargetError(
            f"no target is called {printable(name, 60)!r}",
            where="--target",
            remedy=f"did you mean {' or '.join(near)}? All: signet-conformance targets",
        )
    shipped = json.loads((_FOLDER / f"{name}.json").read_bytes()) if name in names() else {}
    return _made(name, _merged(shipped, own), settings, root)


def _merged(shipped: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """The shipped profile with the repository's own settings in front; what is declared may stand at their top."""
    declared = {**shipped.get("declared", {}), **own.get("declared", {}), **{k: own[k] for k in _DECLARED if k in own}}
    return {**shipped, **{k: v for k, v in own.items() if k not in _DECLARED}, "declared": declared}


def _made(name: str, data: Mapping[str, Any], settings: Settings, root: Path) -> Target:
    where = settings.where(name)
    driver = data.get("driver", "command" if "command" in data else None)
    if driver not in DRIVERS:
        raise TargetError(f"the driver is {printable(driver)!r}", where=where, remedy=f"one of {', '.join(DRIVERS)}")
    processes = data.get("processes", "one")
    if processes not in PROCESSES:
        raise TargetError(
            f"processes is {printable(processes)!r}", where=where, remedy=f"one of {', '.join(PROCESSES)}"
        )
    command = data.get("command", [])
    if not _texts(command) or (driver == "command" and not command):
        raise TargetError("no command", where=where, remedy='such as command = ["node", "{root}/driver.mjs"]')
    env = data.get("env", {})
    if not isinstance(env, Mapping) or not all(isinstance(v, str) for v in env.values()):
        raise TargetError("env is no table of texts", where=where, remedy='such as env = {SIGNET_ENABLED = "true"}')
    folder = settings.folder or root
    return Target(
        name=name,
        title=str(data.get("title", name)),
        driver=driver,
        command=tuple(part.replace("{python}", sys.executable).replace("{root}", str(folder)) for part in command),
        declared=Declared.from_json(data["declared"], where),
        processes=processes,
        env=dict(env),
        profile=data,
        root=folder if "module" in settings.targets.get(name, {}) else root,
    )


def _texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(part, str) for part in value)
