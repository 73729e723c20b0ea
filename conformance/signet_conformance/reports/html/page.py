"""The shell of every HTML page: self-contained, with a strict policy, styled for light and dark.

The text of its elements is always escaped: what is not `Markup` cannot be markup. Nothing is
fetched. The page's policy names its one script by hash, and data is in blocks that no browser executes.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Container, Iterable, Sequence
from functools import cache
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Any, TextIO

from signet_conformance import __version__
from signet_conformance.errors import printable
from signet_conformance.reports.command_lines import explain_command, page_address
from signet_conformance.reports.json_document import encoded

MAX_TEXT = 2000
_VOID = frozenset({"br", "hr", "input", "link", "meta"})


class Markup(str):
    """HTML, put together by `element` alone."""

    __slots__ = ()


def text(value: object) -> Markup:
    """A value as text: one line of bounded length, control and bidirectional characters shown as escapes."""
    return value if isinstance(value, Markup) else Markup(escape(printable(value, MAX_TEXT)))


def joined(parts: Iterable[str | Markup]) -> Markup:
    """Several parts one after the other."""
    return Markup("".join(text(part) for part in parts))


def element(
    tag: str, /, *content: str | Markup | Iterable[str | Markup], **attributes: str | int | bool | None
) -> Markup:
    """An element. An attribute `class_` is written `class`, `data_verdict` is written `data-verdict`.

    True writes an attribute without a value; None and False leave it out.
    """
    written = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{text(value)}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if tag in _VOID:
        return Markup(f"<{tag}{written}>")
    inner = "".join(text(part) if isinstance(part, str) else joined(part) for part in content)
    return Markup(f"<{tag}{written}>{inner}</{tag}>")


_ASSETS = Path(__file__).parent / "assets"
_UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


@cache
def asset(name: str) -> str:
    """A style sheet or script of the package."""
    return (_ASSETS / name).read_text(encoding="utf-8")


def write_page(
    stream: TextIO,
    title: str,
    header: Iterable[Markup],
    sections: Sequence[tuple[str, str, Markup]],
    scripts: Sequence[str] = (),
    data: Iterable[tuple[str, str]] = (),
    live: int | None = None,
) -> None:
    """Write a page. A section is (id, heading, content), `scripts` name assets, `data` is (id, `embedded` text).

    `live` numbers the state of a page that is served and keeps asking its own server for later ones.
    """
    style = asset("page.css")
    script = "\n".join(asset(name) for name in ("page.js", *scripts, *(() if live is None else ("live.js",))))
    links = (element("li", element("a", heading, href=f"#{name}")) for name, heading, _ in sections)
    status = element("p", "Live.", id="live", class_="live", role="status", data_version=live)
    stream.write(
        asset("page.html").format(
            title=text(title),
            script_hash=_hash(script),
            style_hash=_hash(style),
            connect="" if live is None else "connect-src 'self'; ",
            style=style,
            header=joined(header),
            links=joined(links),
            live="" if live is None else status,
        )
    )
    main = (
        element(
            "section", element("h2", heading, id=f"{name}-heading"), content, id=name, aria_labelledby=f"{name}-heading"
        )
        for name, heading, content in sections
    )
    stream.write(f'<main id="main" tabindex="-1">{joined(main)}</main>')
    stream.write(element("footer", element("p", f"signet-conformance {__version__}")))
    stream.writelines(f'\n<script type="application/json" id="{name}">{block}</script>' for name, block in data)
    stream.write(f"\n<script>{script}</script></body></html>\n")


def _hash(content: str) -> str:
    return f"sha256-{b64encode(sha256(content.encode()).digest()).decode()}"


def embedded(document: Any) -> str:
    """A document as JSON that cannot end its block in a page."""
    text = encoded(document)
    for character, escaped in _UNSAFE.items():
        text = text.replace(character, escaped)
    return text


def verdict_tag(verdict: str) -> Markup:
    """A verdict as a coloured word."""
    return element("span", verdict, class_="verdict", data_verdict=verdict)


def requirement_page(name: str) -> Markup:
    """A link to a requirement's page if it has an address, else the command that shows it."""
    address = page_address(name)
    return element("a", address, href=address) if address else element("code", explain_command(name))


def facts(rows: Iterable[tuple[str, str | Markup]]) -> Markup:
    """Labelled facts, without the empty ones."""
    return element(
        "dl",
        (element("div", element("dt", label), element("dd", value)) for label, value in rows if value),
        class_="facts",
    )


def filter_form(kinds: Iterable[tuple[str, str | Markup, int]], ticked: Container[str] | None = None) -> Markup:
    """Boxes and a search field over the entries of a section that have `data_kind`; a kind is (name, shown, how many).

    Only the kinds that are `ticked` show at first; None: all.
    """
    boxes = (
        element(
            "label",
            element("input", type="checkbox", checked=ticked is None or name in ticked, data_filter=name),
            shown,
            f" {count}",
        )
        for name, shown, count in kinds
        if count
    )
    search = element("label", "Filter ", element("input", type="search", autocomplete="off"))
    form = element("fieldset", element("legend", "Show"), *boxes, search, class_="filter", data_entries=True)
    return joined((form, element("p", class_="count quiet", role="status")))


def more_about(name: str, rows: Iterable[tuple[str, str | Markup]]) -> Markup:
    """Facts below a name, folded at first."""
    return element("details", element("summary", "More", aria_label=f"More about {name}"), facts(rows))


def row(head: str | Markup, *cells: str | Markup, **attributes: str) -> Markup:
    """A row of a table, under its own heading."""
    return element("tr", element("th", head, scope="row"), *(element("td", cell) for cell in cells), **attributes)


def table(caption: str, heads: Sequence[str | Markup], rows: Iterable[Markup]) -> Markup:
    """A table that scrolls by itself in a narrow window; its rows are made by the caller."""
    scope = (element("th", head, scope="col") for head in heads)
    inner = element(
        "table", element("caption", caption), element("thead", element("tr", scope)), element("tbody", rows)
    )
    # Focusable, so that a keyboard can scroll it.
    return element("div", inner, class_="scroll", tabindex=0, role="region", aria_label=caption)
