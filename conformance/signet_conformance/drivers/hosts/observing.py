"""The plugin of the kit's own that writes down what a harness tells its plugins, in a real program or a played one."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

FOLDER = ".signet-conformance-observed"
"""Below the home, as `observers/written.mjs` has it."""
OBSERVERS = Path(__file__).parent / "observers"
_LEADS = {
    ".mjs": "export { default } from {module};\n",
    ".py": """from importlib.util import module_from_spec, spec_from_file_location

_spec = spec_from_file_location("signet_conformance_observer", {module})
_observer = module_from_spec(_spec)
_spec.loader.exec_module(_observer)
register = _observer.register
""",
}


def ask(home: Path, observer: Mapping[str, Any]) -> None:
    """Tell the observer of a program in this home what is asked of it."""
    folder = home / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    asked = {name: observer.get(name, []) for name in ("events", "rows", "kinds", "tools", "recorded")}
    (folder / "asked.json").write_text(json.dumps(asked), "utf-8")


def observe(home: Path, observer: Mapping[str, Any]) -> None:
    """Put the observer into the place from which a program of this home loads its plugins."""
    ask(home, observer)
    place = home / observer["place"]
    place.parent.mkdir(parents=True, exist_ok=True)
    # A file that imports it: a program takes every file of that folder for a plugin, also what a plugin imports.
    module = OBSERVERS / observer["module"]
    place.write_text(_LEADS[module.suffix].replace("{module}", json.dumps(str(module))), "utf-8")
    for path, content in observer["beside"].items():
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text(content if isinstance(content, str) else json.dumps(content, indent=2), "utf-8")


def is_busy(home: Path) -> bool:
    """Whether the observer of this home holds its lock, as `observers/hermes.py` does while a provider is at work."""
    try:
        lock = os.open(home / FOLDER / "busy", os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


class Events:
    """The events that the observer of a home writes down, each told once."""

    def __init__(self, home: Path) -> None:
        self._file = home / FOLDER / "events.jsonl"
        self._read = self._file.stat().st_size if self._file.exists() else 0

    def new(self) -> Sequence[Mapping[str, Any]]:
        """Those since the last time, in their order: `{event, members, args, cwd}`, and an `env` of no names."""
        if not self._file.exists():
            return []
        with self._file.open("rb") as file:
            file.seek(self._read)
            # A line that is being written is told the next time.
            whole, newline, _ = file.read().rpartition(b"\n")
        self._read += len(whole) + len(newline)
        return [{**json.loads(line), "env": []} for line in whole.splitlines()]
