"""The files below a home before and after an installation: what is gone, what was added, what is old."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from signet_conformance.files.json_values import pointer

_NOT_SETTINGS = frozenset({".agents", ".cache", "node_modules", "__pycache__"})
_OURS = ".signet-conformance-"
_LARGEST = 4 * 1024 * 1024

Files = Mapping[str, Any]
"""Path below the home to content: the value of a JSON or TOML file, the text of any other one."""


def files_below(home: Path) -> Files:
    """Read the files of a home, without the workspace of the daemon and what the kit keeps there."""
    found: dict[str, Any] = {}
    for folder, names, files in os.walk(home):
        names[:] = [name for name in names if name not in _NOT_SETTINGS and not name.startswith(_OURS)]
        for name in files:
            path = Path(folder, name)
            if not name.startswith(_OURS) and path.is_file() and path.stat().st_size <= _LARGEST:
                found[str(path.relative_to(home))] = parse(name, path.read_bytes().decode("utf-8", "replace"))
    return found


def parse(name: str, text: str) -> Any:
    """The value of a JSON or TOML file; the text where it is another one, or cannot be parsed."""
    try:
        if name.endswith(".json"):
            return json.loads(text)
        return tomllib.loads(text) if name.endswith(".toml") else text
    except (ValueError, RecursionError):
        return text


def lost(before: Files, after: Files) -> list[str]:
    """Name what stood in files before and does not any more, or otherwise."""
    return [f"{path}{what}" for path, value in before.items() for what in _missing(value, after.get(path), ())]


def _missing(before: Any, after: Any, place: tuple[str | int, ...]) -> Iterator[str]:
    where = f": {pointer(*place)}" if place else ""
    if isinstance(before, dict) and isinstance(after, dict):
        for name, value in before.items():
            if name in after:
                yield from _missing(value, after[name], (*place, name))
            else:
                yield f": {pointer(*place, name)} is gone"
    elif isinstance(before, list) and isinstance(after, list):
        for number, item in enumerate(before):
            if not any(next(_missing(item, other, ()), None) is None for other in after):
                yield f": {pointer(*place, number)} is gone"
    elif isinstance(before, str) and isinstance(after, str) and not place:
        left = {line.strip() for line in after.splitlines()}
        yield from (
            f": the line `{line}`" for each in before.splitlines() if (line := each.strip()) not in left and line
        )
    elif after is None:
        yield f"{where} is gone"
    elif before != after:
        yield f"{where} is another one"


def grown(first: Files, second: Files) -> list[str]:
    """Name the lists that hold more, and the texts that say something again, after a second installation."""
    return [
        f"{what} in {path}" for path, value in second.items() if path in first for what in _more(first[path], value, ())
    ]


def _more(first: Any, second: Any, place: tuple[str, ...]) -> Iterator[str]:
    if isinstance(first, dict) and isinstance(second, dict):
        for name in (name for name in first if name in second):
            yield from _more(first[name], second[name], (*place, name))
    elif isinstance(first, list) and isinstance(second, list):
        if len(second) > len(first):
            yield f"{len(second)} entries of {pointer(*place)}, {len(first)} after the first installation,"
        for one, other in zip(first, second, strict=False):
            yield from _more(one, other, (*place, "*"))
    elif isinstance(first, str) and isinstance(second, str) and not place:
        known = first.splitlines()
        again = [line for line in second.splitlines() if line.strip()][len([line for line in known if line.strip()]) :]
        if again and all(line in known for line in again):
            yield f"the line `{again[0].strip()}` again"


def left_over(former: Files, after: Files, fresh: Files) -> list[str]:
    """Name the entries of an older release that are still there, and that a fresh installation does not write."""
    old: dict[str, None] = {}
    for path, value in former.items():
        beside = set(_entries(after.get(path), ())) - set(_entries(fresh.get(path), ()))
        old |= dict.fromkeys(
            f"{path}{f': {place}' if place else ''}" for place, entry in _entries(value, ()) if (place, entry) in beside
        )
    return list(old)


def _entries(value: Any, place: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Each entry with its place: members and items that hold no list or object of their own."""
    if isinstance(value, dict) and value:
        for name, each in value.items():
            yield from _entries(each, (*place, name))
    elif isinstance(value, list) and value:
        for each in value:
            holds_lists = isinstance(each, dict) and any(isinstance(inner, list) for inner in each.values())
            if holds_lists:
                yield from _entries(each, (*place, "*"))
            else:
                yield pointer(*place, "*"), json.dumps(each, sort_keys=True)
    elif value is not None:
        yield pointer(*place), json.dumps(value, sort_keys=True)
