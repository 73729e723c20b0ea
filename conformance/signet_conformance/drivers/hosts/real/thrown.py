"""What a program said of the error that ended it, and whether the connector in it threw that."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

MOST = 2000
_ERROR = re.compile(r"^(?:Uncaught )?(?:[\w.$]*(?:Error|Exception)\b|error: )")
_PLACE = re.compile(r"(?:^|[\s(])(?:file://)?(?P<path>/[^\s():]+):\d+(?::\d+)?\)?(?: \{)?$")
_OPENS, _CLOSES = ("{", "["), ("}", "]")
_OF_BUN = ("address: ", "code: ", "errno: ", "fd: ", "path: ", "port: ", "syscall: ")
"""Members that bun shows between an error and its stack; node has them in braces, behind the stack."""
_AFTERWARDS = ("Node.js v", "Bun v")


def thrown_by(words: Sequence[str], folders: Sequence[Path], but: Sequence[Path], daemon: str) -> str | None:
    """The error that these lines end with, with its stack, where the connector threw it; None where that is not known.

    It did where the innermost file that is named lies in one of the folders, and not in `but`. Files of the runtime
    (`node:internal/...`) are nobody's; where no other is named, a connection to `daemon`, an address as the connector
    was given it, is the connector's. An error after which anything else was said was logged, and ended nothing.
    """
    begins = (place for place, line in enumerate(words) if _ERROR.match(line))
    # The first that leads to the end: those that it was caused by stand within it.
    shown = next(filter(None, (_shown_to_the_end(words[begin:]) for begin in begins)), None)
    if shown is None:
        return None
    innermost = next((Path(unquote(told["path"])) for line in shown if (told := _PLACE.search(line)) is not None), None)
    if innermost is None:
        port = urlsplit(daemon).port
        is_ours = any(re.search(rf"(?:127\.0\.0\.1:|localhost:|[pP]ort: ){port}\b", line) for line in shown)
    else:
        is_ours = any(innermost.is_relative_to(folder) for folder in folders)
        is_ours = is_ours and not any(innermost.is_relative_to(each) for each in but)
    return "\n".join(_stack(shown))[:MOST] if is_ours else None


def _shown_to_the_end(words: Sequence[str]) -> Sequence[str] | None:
    """The lines that show an error, its stack and its members; None where other words follow."""
    depth = int(words[0].endswith(_OPENS))
    end = 1
    for line in words[1:]:
        depth -= line.startswith(_CLOSES)
        if not (depth > 0 or line.startswith(("at ", *_CLOSES, *_OF_BUN))):
            break
        depth += line.endswith(_OPENS)
        end += 1
    return words[:end] if all(line.startswith(_AFTERWARDS) for line in words[end:] if line) else None


def _stack(shown: Sequence[str]) -> Iterator[str]:
    """The error and where it was thrown, without members and causes."""
    yield shown[0]
    for line in shown[1:]:
        if line.startswith("at "):
            yield line.removesuffix(" {")
        elif not line.startswith(_OF_BUN):
            break
