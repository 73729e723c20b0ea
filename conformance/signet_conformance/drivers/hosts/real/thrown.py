"""What a program said of the error that ended it, and whether the connector in it threw that."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

MOST = 2000
_ERROR = re.compile(r"^(?:Uncaught )?(?:[\w.$]*(?:Error|Exception)\b|error: )")
_PLACE = re.compile(r"(?:^|[\s(])(?:file://)?(?P<path>/[^\s():]+):\d+(?::\d+)?\)?$")


def thrown_by(words: Sequence[str], folders: Sequence[Path], but: Sequence[Path], daemon: str) -> str | None:
    """The last error of these lines, with its stack, where the connector threw it; None where that is not known.

    It did where the innermost file that the stack names lies in one of the folders, and not in `but`. Files of the
    runtime (`node:internal/...`) are nobody's; where it names no other, a connection to `daemon`, an address as the
    connector was given it, is the connector's.
    """
    begin = next((place for place in reversed(range(len(words))) if _ERROR.match(words[place])), None)
    if begin is None:
        return None
    stack = [words[begin]]
    for line in words[begin + 1 :]:
        if not line.startswith("at "):
            break
        stack.append(line)
    innermost = next((Path(unquote(told["path"])) for line in stack if (told := _PLACE.search(line)) is not None), None)
    if innermost is None:
        port = urlsplit(daemon).port
        is_ours = any(re.search(rf"(?:127\.0\.0\.1:|localhost:|[pP]ort: ){port}\b", line) for line in words[begin:])
    else:
        is_ours = any(innermost.is_relative_to(folder) for folder in folders)
        is_ours = is_ours and not any(innermost.is_relative_to(each) for each in but)
    return "\n".join(stack)[:MOST] if is_ours else None
