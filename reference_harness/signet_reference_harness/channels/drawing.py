"""Draws for a terminal with rich: the model's Markdown, tools and their results, notes of the harness.

Text of a model, a tool or the daemon never reaches the terminal unescaped: see :func:`~..errors.printable`.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from markdown_it import MarkdownIt
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.markdown import Heading, Markdown, MarkdownElement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from signet_reference_harness.errors import printable

LONGEST_DRAWN: Final = 20_000
"""Characters of a block that are drawn as Markdown: a longer one is shown as plain text."""
NARROW: Final = 40
"""With fewer columns, nothing is placed side by side."""


_STYLES: Final = re.compile(r"\x1b\[[0-9;]*m")


class _Heading(Heading):
    """Puts a heading at the left; rich centres it."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        yield self.text


class _Markdown(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {**Markdown.elements, "heading_open": _Heading}


class Drawing:
    """Draws for a terminal; each call gets its width in columns."""

    def __init__(self, *, colour: bool) -> None:
        self._colour = colour
        self._parser = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])

    def ansi(self, drawn: RenderableType, width: int) -> str:
        """A renderable as text with the terminal's codes for style, without blank lines around it."""
        page = io.StringIO()
        console = Console(
            file=page,
            width=max(width, 1),
            force_terminal=True,
            color_system="256" if self._colour else None,
            no_color=not self._colour,
            highlight=False,
            markup=False,
            emoji=False,
            legacy_windows=False,
        )
        console.print(drawn)
        rows = [row.rstrip(" ") for row in page.getvalue().split("\n")]
        blank = [not _STYLES.sub("", row).strip() for row in rows]
        if all(blank):
            return ""
        return "\n".join(rows[blank.index(False) : len(rows) - blank[::-1].index(False)]) + "\n"

    def user_block(self, text: str) -> RenderableType:
        """A message of the person."""
        return _hanging("> ", Text(for_terminal(text), style="bold"), "bold cyan")

    def model_block(self, block: str) -> RenderableType:
        """A block of Markdown."""
        text = for_terminal(block)
        if len(text) > LONGEST_DRAWN:
            return Text(text)
        markdown = _Markdown("", hyperlinks=False, code_theme="ansi_dark")
        # Not by rich's own parser, which leaves out what looks like HTML.
        markdown.parsed = self._parser.parse(text)
        return markdown

    def tool(
        self, name: str, arguments: Mapping[str, Any], width: int, *, ok: bool | None, note: str
    ) -> RenderableType:
        """A call of a tool in one line, and a note on its result in another; `ok` is None while it runs."""
        colour = "yellow" if ok is None else "green" if ok else "red"
        line = Text("● ", style=colour).append(one_line(name, 80), style="bold")
        if arguments:
            line.append(" ").append(one_line(_members_in_words(arguments), 2_000), style="dim")
        line.truncate(max(width, 8), overflow="ellipsis")
        if not note:
            return line
        result = Text("  ").append(one_line(note, 2_000), style="dim" if ok else "red")
        result.truncate(max(width, 8), overflow="ellipsis")
        return Group(line, result)

    def note(self, text: str) -> RenderableType:
        """A note of the harness."""
        return Text(for_terminal(text), style="dim")

    def error(self, text: str) -> RenderableType:
        """An error."""
        return _hanging("! ", Text(for_terminal(text), style="red"), "bold red")

    def rows(self, title: str, rows: Sequence[tuple[str, str]], width: int) -> RenderableType:
        """A heading, and a row of name and text for each entry."""
        heading = Text(for_terminal(title), style="bold")
        if width < NARROW:
            lines: list[RenderableType] = []
            for name, text in rows:
                lines += [Text(one_line(name, 200), style="cyan"), Padding(Text(for_terminal(text)), (0, 0, 0, 2))]
            return Group(heading, *lines)
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(style="cyan", no_wrap=True, max_width=width // 2, overflow="ellipsis")
        table.add_column(ratio=1)
        for name, text in rows:
            table.add_row(Text(f"  {one_line(name, 200)}"), Text(for_terminal(text)))
        return Group(heading, table)


def for_terminal(text: str) -> str:
    """`text` as it may reach a terminal."""
    return printable(text.replace("\r\n", "\n")).replace("\t", "    ")


def one_line(text: str, most: int) -> str:
    """As :func:`for_terminal`, in one line of at most `most` characters."""
    line = " ".join(for_terminal(text[: 2 * most]).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def in_brief(content: Any) -> str:
    """The content of a tool's result, for one line: how many rows, or its first words."""
    rows = content.get("results") if isinstance(content, Mapping) else content
    if isinstance(rows, Sequence) and not isinstance(rows, str):
        return f"{len(rows)} {'result' if len(rows) == 1 else 'results'}"
    if isinstance(content, str):
        first = next((line for line in content.splitlines() if line.strip()), "nothing")
        more = content.count("\n")
        return f"{first}  (+{more} lines)" if more > 1 else first
    return _members_in_words(content) if isinstance(content, Mapping) else json.dumps(content, ensure_ascii=False)


def _members_in_words(members: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)}"
        for name, value in members.items()
    )


def _hanging(mark: str, text: Text, style: str) -> RenderableType:
    table = Table.grid(padding=0)
    table.add_column(width=len(mark))
    table.add_column(ratio=1)
    table.add_row(Text(mark, style=style), text)
    return table


_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")


class Blocks:
    """Splits a text at its blank lines, except those within a fence of code."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        """The complete lines of the unfinished block."""
        self._rest = ""
        """The beginning of the line after them."""
        self._fence = ""

    @property
    def tail(self) -> str:
        """The part of the unfinished block that has arrived."""
        return "\n".join([*self._lines, self._rest]) if self._rest or self._lines else ""

    def feed(self, text: str) -> list[str]:
        """Add a piece of text; returns the blocks that are whole with it, none of them blank."""
        whole: list[str] = []
        *lines, self._rest = (self._rest + text).split("\n")
        if len(self._rest) > LONGEST_DRAWN:
            # A line that does not end is shown in parts, or each piece would take longer than the one before.
            lines, self._rest = [*lines, self._rest, ""], ""
        for line in (each.removesuffix("\r") for each in lines):
            self._track_fence(line)
            if line.strip() or self._fence:
                self._lines.append(line)
            elif self._lines:
                whole.append("\n".join(self._lines))
                self._lines.clear()
        return whole

    def finish(self) -> list[str]:
        """Return the rest as a block if it is not blank. The next piece begins anew."""
        tail = self.tail
        self._lines.clear()
        self._rest = self._fence = ""
        return [tail] if tail.strip() else []

    def _track_fence(self, line: str) -> None:
        fence = _FENCE.match(line)
        if not fence:
            return
        marks = fence[1]
        if not self._fence:
            self._fence = marks
        elif marks.startswith(self._fence) and not line.strip().strip(marks[0]):
            self._fence = ""
