"""What a program refuses of its configuration: the part that the connector's installer wrote, or the kit's own."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from signet_conformance.drivers.hosts.protocol import StepError

OBSERVER = "signet-conformance-observer"
"""The name of the kit's own plugin inside a program: what is said of it is not said of the connector."""
_UNKNOWN = re.compile(r"[Uu]nrecognized key[^\"':]*: (?P<keys>.+)")
_QUOTED = re.compile(r"\"([^\"]+)\"|'([^']+)'")
_ABSENT = object()


@dataclass(frozen=True, slots=True)
class Refusal:
    """A file of the connector's installation that the program refuses, and its own words about it."""

    file: str
    words: str


class RefusedError(StepError):
    """Raised when a program does not begin, and says that it is because of what the connector's installer wrote."""


def is_of_the_kit(settings: Mapping[str, Any], home: Path, file: str, member: str, words: str) -> bool:
    """Whether a complaint about a member of a file is about what the kit itself wrote into it.

    `settings` are the kit's own, by their path below the home; `member` is a path such as `agents.defaults`, empty or
    `<root>` for the whole file. The kit's is what stands there as the kit wrote it, whoever wrote the file last; of
    several keys that the words name, all.
    """
    if OBSERVER in words:
        return True
    ours, now = _both(settings, home, file)
    path = [part for part in member.removeprefix("<root>").split(".") if part]
    told = _UNKNOWN.search(words)
    keys = [] if told is None else [one or other for one, other in _QUOTED.findall(told["keys"])]
    paths = [[*path, key] for key in keys] or [path]
    return all(_at(ours, each) is not _ABSENT and _at(ours, each) == _at(now, each) for each in paths)


def stands_in(settings: Mapping[str, Any], home: Path, file: str, member: str) -> bool:
    """Whether a file, as it stands or as the kit wrote it, has a member of the name that such a path begins with."""
    first = member.partition(".")[0]
    return first == "<root>" or any(_at(each, [first]) is not _ABSENT for each in _both(settings, home, file))


def _both(settings: Mapping[str, Any], home: Path, file: str) -> tuple[Any, Any]:
    """What the kit wrote into a file, and what stands there now."""
    name = next((each for each in settings if Path(each).name == Path(file).name), None)
    if name is None:
        return None, None
    try:
        return settings[name], json.loads((home / name).read_bytes())
    except (OSError, ValueError):
        return settings[name], None


def _at(value: Any, path: Sequence[str]) -> Any:
    for part in path:
        if isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        elif isinstance(value, dict) and part in value:
            value = value[part]
        else:
            return _ABSENT
    return value
