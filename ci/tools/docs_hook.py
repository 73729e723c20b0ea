"""Hooks for mkdocs: make a page for each requirement, and keep links within the site.

Ids of requirements in code spans become links to their pages. Links that lead out of docs/ into the repository are
right on GitHub and would be dead here: they become the path as text.
"""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkdocs.structure.files import File

sys.path.insert(0, str(Path(__file__).parent))
import requirement_pages

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

_FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_ID = re.compile(r"(?<!\[)`(SIG-[A-Z]+-\d{3})`")
_OUTWARD = re.compile(r"\[(`?)([^\]`]+)\1\]\((\.\./[^)#\s]+)(#[^)\s]*)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Fill the sections of the navigation that are left empty in mkdocs.yml: their pages come and go."""
    _fill(
        config.nav or [],
        {
            "Requirements": [
                "requirements/README.md",
                *(
                    {area["heading"]: [_path(entry["id"]) for entry in area["requirements"]]}
                    for area in requirement_pages.areas()
                ),
            ],
            "Connectors driven live": [
                "connectors/README.md",
                *(f"connectors/{path.name}" for path in sorted(Path(config.docs_dir, "connectors").glob("[a-z]*.md"))),
            ],
        },
    )
    return config


def _fill(nav: list[Any], sections: Mapping[str, list[Any]]) -> None:
    for entry in nav:
        for name, below in entry.items() if isinstance(entry, dict) else ():
            if name in sections:
                entry[name] = sections[name]
            elif isinstance(below, list):
                _fill(below, sections)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page of every requirement."""
    for entry in requirement_pages.catalogue():
        files.append(File.generated(config, _path(entry["id"]), content=requirement_pages.page(entry)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001 - mkdocs names them
    """Rewrite the links of a page, except in code blocks."""
    return "".join(
        piece if number % 2 else _linked(piece, page.file.src_uri)
        for number, piece in enumerate(_FENCE.split(markdown))
    )


def _linked(text: str, source: str) -> str:
    folder = posixpath.dirname(source)
    known = {entry["id"] for entry in requirement_pages.catalogue()}

    def outward(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join("docs", folder, link[3]))
        if target.startswith("docs/"):
            return link[0]
        return f"`{target}`" if link[2].strip("/") in target else f"{link[2]} (`{target}`)"

    def requirement(match: re.Match[str]) -> str:
        return f"[`{match[1]}`]({posixpath.relpath(_path(match[1]), folder or '.')})" if match[1] in known else match[0]

    return _ID.sub(requirement, _OUTWARD.sub(outward, text))


def _path(requirement: str) -> str:
    return f"requirements/{requirement}.md"
