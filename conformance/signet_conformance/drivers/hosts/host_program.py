"""A stub of the harness's own program, for PATH: it logs each call and answers as the face says.

    python -I -S host_program.py DATA.json WORDS...

Installers ask the program of their harness what it can do, and have it add plugins. Without the program they would
behave differently than on a user's machine. The file is run without packages, so it imports the standard library alone.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_ASKED = ".signet-conformance-asked.jsonl"
_MOST_INPUT = 64 * 1024
_ANY = "*"
_UNKNOWN = 2
_DEFAULT_VERSION = "local"


class CommandRefusedError(Exception):
    """Raised when the program cannot do what it is asked; its message is what the program prints."""


def put_on_path(face: Mapping[str, Any], folder: Path) -> None:
    """Write the stub of a face's program into a folder of PATH, if the face names a program."""
    program = face.get("program")
    if program is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    data = folder / f".{program['name']}.json"
    data.write_text(json.dumps({"answers": program["answers"], "plugins": face.get("plugins")}))
    stub = folder / str(program["name"])
    stub.write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, "-I", "-S", __file__, str(data)])} "$@"\n')
    stub.chmod(0o755)


def read_questions(home: Path) -> Sequence[Mapping[str, Any]]:
    """The calls of the stubs of a home, in order: `argv`, `stdin`, `cwd` and the exit `status`."""
    try:
        lines = (home / _ASKED).read_text("utf-8").splitlines()
    except OSError:
        return ()
    return [json.loads(line) for line in lines]


def describe_refusals(home: Path, face: Mapping[str, Any]) -> Sequence[str]:
    """A line for each call of an installer that the stub of a face does not know."""
    unknown = dict.fromkeys(" ".join(row["argv"]) for row in read_questions(home) if row["status"] == _UNKNOWN)
    name = face.get("program", {}).get("name")
    return [f"the installer asked `{name} {words}`, which the kit's stub of {name} refuses" for words in unknown]


def _answer(data: Mapping[str, Any], words: Sequence[str], home: Path) -> int:
    """Print the program's answer to `words`; return its exit status."""
    for answer in data["answers"]:
        pattern = answer["asked"]
        if len(pattern) == len(words) and all(p in (_ANY, w) for p, w in zip(pattern, words, strict=True)):
            break
    else:
        print(f"error: unrecognized subcommand '{' '.join(words)}'", file=sys.stderr)
        return _UNKNOWN
    try:
        output = (
            _ACTIONS[answer["does"]](data["plugins"], words[-1], home) if "does" in answer else answer.get("says", "")
        )
    except (CommandRefusedError, OSError, ValueError) as refusal:
        print(f"Error: {refusal}", file=sys.stderr)
        return 1
    if output:
        print(output)
    return int(answer.get("status", 0))


def _add_plugin(places: Mapping[str, str], plugin: str, home: Path) -> str:
    """Copy a plugin from its marketplace, a folder that the settings name, to where the harness keeps plugins."""
    name, _, marketplace = plugin.rpartition("@")
    settings = home / places["settings"]
    text = settings.read_text("utf-8") if settings.exists() else ""
    known = tomllib.loads(text)
    root = known.get("marketplaces", {}).get(marketplace, {}).get("source")
    if root is None:
        raise CommandRefusedError(f"marketplace `{marketplace}` is not configured")
    listed = json.loads((Path(root) / places["marketplace"]).read_bytes()).get("plugins", [])
    source = next((row["source"]["path"] for row in listed if row.get("name") == name), None)
    if source is None:
        raise CommandRefusedError(f"plugin `{name}` was not found in marketplace `{marketplace}`")
    manifest = json.loads((Path(root) / source / places["manifest"]).read_bytes())
    if manifest.get("name") != name:
        raise CommandRefusedError(
            f"plugin.json name `{manifest.get('name')}` does not match marketplace plugin name `{name}`"
        )
    kept = home / places["cache"] / marketplace / name
    shutil.rmtree(kept, ignore_errors=True)
    target = kept / str(manifest.get("version") or _DEFAULT_VERSION)
    shutil.copytree(Path(root) / source, target)
    if plugin not in known.get("plugins", {}):
        settings.write_text(f'{text.rstrip()}\n\n[plugins."{plugin}"]\nenabled = true\n'.lstrip(), "utf-8")
    return f"Added plugin `{name}` from marketplace `{marketplace}`.\nInstalled plugin root: {target}"


def _remove_plugin(places: Mapping[str, str], plugin: str, home: Path) -> str:
    name, _, marketplace = plugin.rpartition("@")
    shutil.rmtree(home / places["cache"] / marketplace / name, ignore_errors=True)
    return f"Removed plugin `{name}` from marketplace `{marketplace}`."


_ACTIONS = {"add_plugin": _add_plugin, "remove_plugin": _remove_plugin}


def main(arguments: Sequence[str]) -> int:
    """Log the call and answer it; return the exit status."""
    data, words, home = json.loads(Path(arguments[0]).read_bytes()), list(arguments[1:]), Path.home()
    text = (
        "" if sys.stdin is None or sys.stdin.isatty() else sys.stdin.buffer.read(_MOST_INPUT).decode("utf-8", "replace")
    )
    status = _answer(data, words, home)
    with (home / _ASKED).open("a", encoding="utf-8") as log:
        # `Path.cwd` fails where the folder is gone.
        log.write(json.dumps({"argv": words, "stdin": text, "cwd": os.environ.get("PWD", ""), "status": status}) + "\n")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
