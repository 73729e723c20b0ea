"""The plugin of the kit's own that writes down what a harness tells its plugins, in a real program or a played one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

FOLDER = ".signet-conformance-observed"
"""Below the home, as `observers/written.mjs` has it."""
OBSERVERS = Path(__file__).parent / "observers"


def ask(home: Path, observer: Mapping[str, Any]) -> None:
    """Tell the observer of a program in this home what is asked of it."""
    folder = home / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    asked = {name: observer.get(name, []) for name in ("events", "rows", "kinds", "tools")}
    (folder / "asked.json").write_text(json.dumps(asked), "utf-8")


def observe(home: Path, observer: Mapping[str, Any]) -> None:
    """Put the observer into the place from which a program of this home loads its plugins."""
    ask(home, observer)
    place = home / observer["place"]
    place.parent.mkdir(parents=True, exist_ok=True)
    # Of one line: a program takes every file of that folder for a plugin, also what a plugin imports.
    module = json.dumps(str(OBSERVERS / observer["module"]))
    place.write_text(f"export {{ default }} from {module};\n", "utf-8")


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
