"""Notes of what a harness does to its connector: runs of the connector's commands, and events that plugins hear.

Each run of a command leaves a folder. Its facts are those of a host face: arguments, working folder, names of the
environment, members of the JSON on standard input. Values of the environment are not kept, nor are the names that the
kit adds to each. A plugin of the kit's own writes the events down, in a real program or a played one.
"""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from signet_conformance.children.watchdog import WATCHDOG_VARIABLE
from signet_conformance.drivers.hosts.protocol import with_scripts, write_files
from signet_conformance.files.json_values import parse_value

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


def write_order(home: Path, observer: Mapping[str, Any]) -> None:
    """Write down what the observer in this home is to record."""
    folder = home / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    asked = {name: observer.get(name, []) for name in ("events", "rows", "kinds", "tools", "recorded")}
    (folder / "asked.json").write_text(json.dumps(asked), "utf-8")


def observe(home: Path, observer: Mapping[str, Any]) -> None:
    """Put the observer into the place from which a program of this home loads its plugins."""
    write_order(home, observer)
    # A file that imports it: a program takes every file of that folder for a plugin, also what a plugin imports.
    module = OBSERVERS / observer["module"]
    lead = _LEADS[module.suffix].replace("{module}", json.dumps(str(module)))
    write_files(home, {observer["place"]: lead, **observer["beside"]})


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
    """The events that the observer of a home writes down, each returned once."""

    def __init__(self, home: Path) -> None:
        self._file = home / FOLDER / "events.jsonl"
        self._read = self._file.stat().st_size if self._file.exists() else 0

    def new(self) -> Sequence[Mapping[str, Any]]:
        """The events since the last call, in their order: `{event, members, args, cwd}`, and an `env` of no names."""
        if not self._file.exists():
            return []
        with self._file.open("rb") as file:
            file.seek(self._read)
            # A line that is being written is returned by the next call.
            whole, newline, _ = file.read().rpartition(b"\n")
        self._read += len(whole) + len(newline)
        return [{**json.loads(line), "env": []} for line in whole.splitlines()]


_OCCASIONS = ("source", "trigger", "reason")
"""Members of a hook's input that say which kind of an event it is."""
_OURS = {WATCHDOG_VARIABLE, "TMPDIR"}
"""Variables that the kit itself adds to the environment of every program."""


class Observations:
    """The runs of the connector's programs, each returned once."""

    def __init__(self, home: Path) -> None:
        self._folder = home / FOLDER
        self._folder.mkdir(parents=True, exist_ok=True)
        self._home = home
        self._events = Events(home)
        self.names: frozenset[str] = frozenset()
        """The programs of the connector that are observed."""
        self._returned = {path.name for path in self._folder.iterdir()}

    def wrap_programs(self, programs: Mapping[str, Sequence[str]], folder: Path, daemon: str) -> str:
        """Return a PATH with the connector's programs under their names; each run of one is observed.

        A server that is started without the address of the `daemon` gets it.
        """
        self.names = frozenset(programs)
        template = (OBSERVERS / "program.sh").read_text()
        script = template.replace("{folder}", shlex.quote(str(self._folder))).replace("{daemon}", daemon)
        commands = {name: shlex.join(command) for name, command in programs.items()}
        return with_scripts({name: script.replace("{command}", commands[name]) for name in commands}, folder)

    @property
    def busy(self) -> bool:
        """Whether the connector is still at work for a turn whose answer is out, as far as the observer can tell."""
        return is_busy(self._home)

    def hooks_ended(self) -> int:
        """How many hooks have run to their end in this home."""
        return sum(1 for _ in self._folder.glob("run-*/ended"))

    def new_runs(self) -> Sequence[Mapping[str, Any]]:
        """The runs and events that were not returned yet, in the order in which they began."""
        folders = self._folder.glob("run-*")
        new = [path for path in folders if path.name not in self._returned and (path / "env").exists()]
        self._returned |= {path.name for path in new}
        runs = [_run(path) for path in sorted(new, key=lambda path: _text(path / "begun"))]
        return [*runs, *self._events.new()]


def await_hook(observed: Observations, before: int, timeout_s: float) -> bool:
    """Whether a hook has run to its end beyond the `before` ones, within that time."""
    deadline = time.monotonic() + timeout_s
    while observed.hooks_ended() <= before:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _run(path: Path) -> Mapping[str, Any]:
    args = _text(path / "args").splitlines()
    run: dict[str, Any] = {
        "args": args,
        "cwd": _text(path / "cwd").strip(),
        "env": sorted(set(_text(path / "env").split()) - _OURS),
    }
    given = parse_value(_text(path / "stdin"))
    if isinstance(given, dict):
        run |= {"members": sorted(given), "event": given.get("hook_event_name")}
        occasion = next((given[name] for name in _OCCASIONS if isinstance(given.get(name), str)), None)
        run |= {} if occasion is None else {"occasion": occasion}
    begun, ended = _text(path / "begun").strip(), _text(path / "ended").strip()
    if begun and ended:
        run["ms"] = round((float(ended) - float(begun)) * 1000, 1)
    status = _text(path / "status").strip()
    return {**run, **({"status": int(status)} if status else {})}


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
