"""Find out whether a program's complaint is about its connector: its installation, or an error that it threw."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from signet_conformance.drivers.hosts.protocol import StepError
from signet_conformance.files.json_values import ABSENT, pointer, value_at

OBSERVER = "signet-conformance-observer"
"""The name of the kit's own plugin inside a program: messages about it are not about the connector."""
_UNKNOWN = re.compile(r"[Uu]nrecognized key[^\"':]*: (?P<keys>.+)")
_QUOTED = re.compile(r"\"([^\"]+)\"|'([^']+)'")


@dataclass(frozen=True, slots=True)
class Refusal:
    """A file of the connector's installation that the program refuses, and its own words about it.

    `event`: the event whose handler is refused, if it is about one.
    """

    file: str
    words: str
    event: str | None = None

    def row(self, formerly: Collection[str]) -> Mapping[str, Any]:
        """Describe it as the answer to hello does; `formerly` are events that earlier releases of the program know."""
        objection = {"accepted": False, "words": self.words}
        if self.event in formerly:
            return {"file": f"a handler of {self.event}", **objection, "event": self.event, "formerly": True}
        return {"file": Path(self.file).name, **objection}


class ConnectorRefusedError(StepError):
    """Raised when a program does not start because of something that the connector's installer wrote."""


def is_of_the_kit(settings: Mapping[str, Any], home: Path, file: str, member: str, words: str) -> bool:
    """Whether a complaint about a member of a file is about an entry that the kit itself wrote.

    `settings` are the kit's own, by their path below the home; `member` is a path such as `agents.defaults`, empty or
    `<root>` for the whole file. A member is the kit's if it still has the kit's value, even if the connector wrote the
    file later. If the words name several keys, all must be the kit's.
    """
    if OBSERVER in words:
        return True
    ours, now = _both(settings, home, file)
    path = [part for part in member.removeprefix("<root>").split(".") if part]
    unknown = _UNKNOWN.search(words)
    keys = [] if unknown is None else [one or other for one, other in _QUOTED.findall(unknown["keys"])]
    places = [pointer(*path, key) for key in keys] or [pointer(*path)]
    values = ((value_at(ours, place), value_at(now, place)) for place in places)
    return all(kit is not ABSENT and kit == there for kit, there in values)


def has_first_member(settings: Mapping[str, Any], home: Path, file: str, member: str) -> bool:
    """Whether a file, as it is now or as the kit wrote it, has the first member of such a path."""
    first = member.partition(".")[0]
    place = pointer(first)
    return first == "<root>" or any(value_at(each, place) is not ABSENT for each in _both(settings, home, file))


def _both(settings: Mapping[str, Any], home: Path, file: str) -> tuple[Any, Any]:
    """Return the kit's own content of a file, and its content now."""
    name = next((each for each in settings if Path(each).name == Path(file).name), None)
    if name is None:
        return None, None
    try:
        return settings[name], json.loads((home / name).read_bytes())
    except (OSError, ValueError):
        return settings[name], None


MOST = 2000
_ERROR = re.compile(r"^(?:Uncaught )?(?:[\w.$]*(?:Error|Exception)\b|error: )")
_PLACE = re.compile(r"(?:^|[\s(])(?:file://)?(?P<path>/[^\s():]+):\d+(?::\d+)?\)?(?: \{)?$")
_OPENS, _CLOSES = ("{", "["), ("}", "]")
_OF_BUN = ("address: ", "code: ", "errno: ", "fd: ", "path: ", "port: ", "syscall: ")
"""Members that bun prints between an error and its stack. Node prints them after the stack, in braces."""
_AFTERWARDS = ("Node.js v", "Bun v")


def thrown_by(words: Sequence[str], folders: Sequence[Path], but: Sequence[Path], daemon: str) -> str | None:
    """Return the error at the end of these lines, with its stack, if the connector threw it; None if that is not known.

    It did if the innermost file of the stack is below one of the folders, and not in `but`. Files of the runtime
    (`node:internal/...`) do not count; if there is no other, a connection to `daemon`, the address that the connector
    got, is the connector's. An error with later output was logged, and ended nothing.
    """
    begins = (place for place, line in enumerate(words) if _ERROR.match(line))
    # The first that reaches the end: its causes are printed within it.
    shown = next(filter(None, (_shown_to_the_end(words[begin:]) for begin in begins)), None)
    if shown is None:
        return None
    innermost = next((Path(unquote(place["path"])) for line in shown if (place := _PLACE.search(line))), None)
    if innermost is None:
        port = urlsplit(daemon).port
        is_ours = any(re.search(rf"(?:127\.0\.0\.1:|localhost:|[pP]ort: ){port}\b", line) for line in shown)
    else:
        is_ours = any(innermost.is_relative_to(folder) for folder in folders)
        is_ours = is_ours and not any(innermost.is_relative_to(each) for each in but)
    return "\n".join(_stack(shown))[:MOST] if is_ours else None


def _shown_to_the_end(words: Sequence[str]) -> Sequence[str] | None:
    """The lines that show an error, its stack and its members; None if others follow, or a bracket is never closed."""
    depth = int(words[0].endswith(_OPENS))
    end = 1
    for line in words[1:]:
        depth -= line.startswith(_CLOSES)
        if not (depth > 0 or line.startswith(("at ", *_CLOSES, *_OF_BUN))):
            break
        depth += line.endswith(_OPENS)
        end += 1
    is_last = depth <= 0 and all(line.startswith(_AFTERWARDS) for line in words[end:] if line)
    return words[:end] if is_last else None


def _stack(shown: Sequence[str]) -> Iterator[str]:
    """The error and where it was thrown, without members and causes."""
    yield shown[0]
    for line in shown[1:]:
        if line.startswith("at "):
            yield line.removesuffix(" {")
        elif not line.startswith(_OF_BUN):
            break
