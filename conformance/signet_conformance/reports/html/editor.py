"""Links from a page into the reader's editor: at a line of the connector's code."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import quote

from signet_conformance.reports.evidence import Source
from signet_conformance.reports.html.page import Markup, element, joined

EDITOR = "SIGNET_CONFORMANCE_EDITOR"
"""The environment variable that names an editor of the table, an address of one's own, or `none`."""
_EDITORS = {
    "vscode": "vscode://file/{file}:{line}",
    "vscodium": "vscodium://file/{file}:{line}",
    "cursor": "cursor://file/{file}:{line}",
    "windsurf": "windsurf://file/{file}:{line}",
    "zed": "zed://file/{file}:{line}",
    "idea": "idea://open?file=/{file}&line={line}",
    "sublime": "subl://open?url=file:///{file}&line={line}",
    "textmate": "txmt://open?url=file:///{file}&line={line}",
}
_ADDRESS = re.compile(r"(?!javascript:|data:|vbscript:)[a-z][a-z0-9+.-]*:\S+", re.IGNORECASE)


def editor_address(source: Source) -> str | None:
    """The address that opens an editor at a line; None without one, as where the variable says none."""
    named = os.environ.get(EDITOR, "") or "vscode"
    address = _EDITORS.get(named, named)
    if _ADDRESS.fullmatch(address) is None:
        return None
    file = quote((Path.cwd() / source.file).as_posix().lstrip("/"), safe="/")
    return address.replace("{file}", file).replace("{line}", str(source.line))


def linked_sources(sources: tuple[Source, ...]) -> Markup:
    """The places that led to a request, the innermost first, each a link where an editor can open it."""
    parts: list[str | Markup] = []
    for source in sources:
        address = editor_address(source)
        parts += [", called at "] if parts else []
        parts.append(source.words if address is None else element("a", source.words, href=address))
    return joined(parts)
