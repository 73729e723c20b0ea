"""Text in a terminal, drawn by rich: the consoles, and the few shapes that all reports consist of.

The consoles interpret no markup, emoji codes or links, since texts come from traces. `errors.printable` escapes control
characters; every report calls it for each text from a trace.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TextIO, TypeVar

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from signet_conformance.errors import printable
from signet_conformance.finding import Verdict
from signet_conformance.reports.command_lines import shell_command

MIN_WIDTH = 40
MAX_WIDTH = 120
LABEL_WIDTH = 10
STRONG = "bold"
FAINT = "bright_black"
VERDICT_STYLES = {
    Verdict.ERROR: "bold magenta",
    Verdict.FAIL: "bold red",
    Verdict.WARN: "bold yellow",
    Verdict.PASS: "bold green",
    Verdict.INCONCLUSIVE: "bold cyan",
    Verdict.NOT_APPLICABLE: "bold bright_black",
}

_MARGIN = 2 + LABEL_WIDTH
_NO_LIMIT = 10_000
_DUMB = ("dumb", "unknown")
_TRAILING = re.compile(r" +((?:\x1b\[[0-9;]*m)*)$", re.MULTILINE)


def terminal_width() -> int:
    """The width of the terminal in columns; 80 without a terminal."""
    return shutil.get_terminal_size((80, 24)).columns


def table_width(stream: TextIO) -> int | None:
    """The width of a table on `stream`; None for a pipe or a file, which take lines of any length."""
    return terminal_width() if stream.isatty() else None


def usable_width(width: int) -> int:
    """`width`, limited to the range from MIN_WIDTH to MAX_WIDTH."""
    return max(MIN_WIDTH, min(width, MAX_WIDTH))


def wants_colour(stream: TextIO) -> bool:
    """Whether a stream gets colours: a terminal does, unless it is a dumb one.

    NO_COLOR turns them off; FORCE_COLOR turns them on, also for a pipe; NO_COLOR wins.
    """
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or is_live(stream)


def is_live(stream: TextIO) -> bool:
    """Whether lines of the stream can be drawn over: true for a terminal that is not dumb."""
    return stream.isatty() and os.environ.get("TERM", "").lower() not in _DUMB


def console(stream: TextIO) -> Console:
    """The console of a stream, with the width of the terminal, and with colours if the user wants them."""
    return _console(stream, terminal_width(), wants_colour(stream), live=is_live(stream))


def _console(stream: TextIO, width: int, colour: bool, *, live: bool = False) -> Console:
    return Console(
        file=stream,
        width=width,
        color_system="standard" if colour else None,
        no_color=not colour,
        force_terminal=live,
        force_interactive=live,
        force_jupyter=False,
        legacy_windows=False,
        markup=False,
        emoji=False,
        highlight=False,
    )


@lru_cache(maxsize=8)
def _drawing_console(width: int, colour: bool) -> Console:
    return _console(io.StringIO(), width, colour)


def draw(things: Iterable[RenderableType], width: int, colour: bool = False) -> list[str]:
    """Draw `things` below each other; return the lines without trailing blanks.

    `width` is the terminal's; text is drawn no wider than MAX_WIDTH.
    """
    return _draw(things, usable_width(width), colour)


def print_drawn(things: Iterable[RenderableType]) -> None:
    """Draw `things` on standard output, in the width and colours of its terminal."""
    print(*draw(things, terminal_width(), wants_colour(sys.stdout)), sep="\n")


def draw_table(table: Table, width: int | None, colour: bool = False) -> list[str]:
    """A table as lines: as wide as its cells, but no wider than `width`, unless that is None."""
    return _draw([table], _NO_LIMIT if width is None else max(MIN_WIDTH, width), colour)


def _draw(things: Iterable[RenderableType], width: int, colour: bool) -> list[str]:
    console = _drawing_console(width, colour)
    with console.capture() as capture:
        console.print(Group(*things), crop=False)
    return _TRAILING.sub(r"\1", capture.get()).split("\n")[:-1]


def grid(rows: Iterable[Iterable[Text | str]]) -> Table:
    """Rows in columns as wide as their cells."""
    table = Table.grid(padding=(0, 2, 0, 0))
    for cells in rows:
        table.add_row(*map(_styled, cells))
    return table


class Paragraph:
    """Text wrapped at words: its first line indented by `indent` columns, the others by `hanging` (default: `indent`).

    `beside` fills the indentation of the first line.
    """

    def __init__(
        self, text: Text | str, indent: int = 0, hanging: int | None = None, *, beside: Text | str = ""
    ) -> None:
        self._text = _styled(text)
        self._indent = indent
        self._hanging = indent if hanging is None else hanging
        self._beside = _styled(beside)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the lines."""
        margin = self._indent - self._beside.cell_len
        yield from self._beside.render(console)
        for line in self._lines(console, options.max_width):
            yield Segment(" " * margin)
            yield from line.render(console)
            yield Segment.line()
            margin = self._hanging

    def _lines(self, console: Console, width: int) -> Sequence[Text]:
        first_room, room = (max(1, width - indent) for indent in (self._indent, self._hanging))
        if cell_len(self._text.plain) <= first_room:
            return [self._text]
        text = _breakable(self._text, min(first_room, room))
        lines = list(text.wrap(console, first_room))
        if first_room != room:
            rest = text[len(lines[0].plain) :]
            lines = [lines[0], *rest[len(rest.plain) - len(rest.plain.lstrip()) :].wrap(console, room)]
        return [Text().join(line.split(_MAY_BREAK)) if _MAY_BREAK in line.plain else line for line in lines]


_MAY_BREAK = "\x1f"
"""A blank without a width, which no report may hold: `errors.printable` escapes it."""
_PATH = re.compile(r"\S*/\S+")


def _breakable(text: Text, room: int) -> Text:
    """The text with a place to break behind each slash of a path that is wider than `room`."""
    ends = [
        path.start() + at + 1
        for path in _PATH.finditer(text.plain)
        if cell_len(path[0]) > room
        for at, character in enumerate(path[0][:-1])
        if character == "/"
    ]
    return Text(_MAY_BREAK).join(text.divide(ends)) if ends else text


class VerbatimLines:
    """Lines that are never wrapped, because users copy them from the terminal."""

    def __init__(self, lines: Iterable[Text | str], indent: int) -> None:
        self._lines = lines
        self._margin = Segment(" " * indent)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the lines."""
        for line in self._lines:
            yield self._margin
            yield from _styled(line).render(console, "\n")


def _styled(text: Text | str) -> Text:
    """`text` with its style as a span, since `Text.render` ignores any other."""
    if isinstance(text, str):
        return Text(text)
    return Text.assemble(text) if text.style else text


def verdict_text(verdict: Verdict) -> Text:
    """A verdict in its colour."""
    return Text.assemble((verdict.value, VERDICT_STYLES[verdict]))


def labelled(label: str, text: Text | str, hanging: int = 0) -> Paragraph:
    """A label in its own column, beside it wrapped text, whose later lines are indented further by `hanging`."""
    return Paragraph(text, _MARGIN, _MARGIN + hanging, beside=_label(label))


def labelled_command(label: str, words: Sequence[str]) -> Text:
    """A label and a command on one line, however long, so that the command can be pasted."""
    return labelled_line(label, shell_command(words))


def labelled_line(label: str, text: str) -> Text:
    """A label and a text on one line, however long, so that the text can be copied."""
    return one_line(Text.assemble(_label(label), " " * (LABEL_WIDTH - len(label)), text))


def one_line(text: Text | str) -> Text:
    """`text` on one line, however long, so that it can be copied."""
    line = Text(text) if isinstance(text, str) else text
    line.no_wrap, line.overflow = True, "ignore"
    return line


def _label(label: str) -> Text:
    return Text.assemble("  ", (label, FAINT))


_MOST_WORDS = 60
_Item = TypeVar("_Item")


@contextmanager
def steps(total: int, doing: str, stream: TextIO) -> Iterator[Callable[[str, bool], None]]:
    """Show progress over `total` steps on `stream`; yield a function that takes a step's name and whether it failed.

    A terminal shows one line that is drawn over, and keeps the failed steps; a log gets every step. `doing` names the
    steps.
    """
    if not is_live(stream):
        count = 0

        def log(words: str, failed: bool) -> None:  # noqa: ARG001  a log keeps every step
            nonlocal count
            count += 1
            print(f"{count}/{total} {words}", file=stream, flush=True)

        yield log
        return
    with _bar(stream) as progress:
        task = progress.add_task(doing, total=total)

        def draw(words: str, failed: bool) -> None:
            if failed:
                progress.console.print(one_line(Text(words)), crop=False)
            progress.update(task, advance=1, description=f"{doing}: {printable(words, _MOST_WORDS)}")

        yield draw


def with_progress(items: Sequence[_Item], stream: TextIO) -> Generator[_Item, None, None]:
    """Iterate over items to judge, counted on a terminal; text written to stderr meanwhile appears above the bar.

    Close the iterator if you stop early, or the bar stays on screen.
    """
    with _bar(stream) as progress:
        yield from progress.track(items, description="judging")


def _bar(stream: TextIO) -> Progress:
    # stdout is not redirected: a report goes there.
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console(stream),
        transient=True,
        redirect_stdout=False,
    )
