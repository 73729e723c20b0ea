"""Facts about what is drawn in a terminal: widths, wide characters, colours, and that text is never markup."""

from __future__ import annotations

import io
import subprocess

import click
import pytest
from hypothesis import given, settings, strategies as st
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from signet_conformance.errors import printable
from signet_conformance.reports.command_lines import shell_command
from signet_conformance.reports.terminal import (
    MAX_WIDTH,
    MIN_WIDTH,
    Paragraph,
    VerbatimLines,
    console,
    draw,
    draw_table,
    is_live,
    labelled,
    labelled_command,
    steps,
    wants_colour,
    with_progress,
)
from tests.support.terminals import Terminal

NAMES = st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), min_size=1, max_size=12)
OBEYED = ["##[group]a", "a ##vso[b]", "::error::a", "C::D", "#5"]
"""What a CI takes for a command of its own, and two that look like it."""
WORDS = st.lists(st.text("abcXYZ0-/日本語한국어🙂é[]:*_ ", min_size=1, max_size=60), max_size=12)


@settings(deadline=None, max_examples=40)
@given(
    st.lists(NAMES | st.sampled_from(["##[group]a", "a ##vso[b]", "::error::a", "C::D", "#5"]), min_size=1, max_size=3)
)
def test_a_command_reaches_a_shell_as_it_was_meant(words: list[str]) -> None:
    """Any words survive quoting, and the quoted line holds nothing that a terminal or a CI obeys."""
    line = shell_command(words)
    printed = subprocess.run(["bash", "-c", f"printf '%s\\0' {line}"], capture_output=True, check=True)  # noqa: S607  any bash
    assert printed.stdout.decode() == "".join(f"{word}\0" for word in words)
    assert line.isprintable()
    assert printable(line, len(line)) == line


@pytest.mark.parametrize(("runner", "before"), [("npx", "npx "), ("pnpm exec", "pnpm exec "), ("rm -rf /;", "")])
def test_a_command_can_be_pasted_where_npm_runs_the_kit(
    monkeypatch: pytest.MonkeyPatch, runner: str, before: str
) -> None:
    """The kit's own commands begin with what runs it; another program's, and an unknown runner, change nothing."""
    monkeypatch.setenv("SIGNET_CONFORMANCE_RUNNER", runner)
    assert shell_command(["signet-conformance", "explain", "A"]) == f"{before}signet-conformance explain A"
    assert shell_command(["curl", "A"]) == "curl A"


@pytest.mark.parametrize("half", ["\ud800", "a\udfffb", "\ud800\udc80"])
def test_half_a_character_is_written_as_its_bytes(half: str) -> None:
    """A recording may hold one, and no shell can be given it: the line can be pasted all the same."""
    line = shell_command([half])
    assert line.isascii()
    subprocess.run(["bash", "-c", f"printf '%s' {line}"], check=True, capture_output=True)  # noqa: S607  any bash


def test_a_label_stands_beside_wrapped_text() -> None:
    """Later lines of the text are indented below the first."""
    assert draw([labelled("why", "one two three four five six seven")], 40) == [
        "  why       one two three four five six",
        "            seven",
    ]


def test_a_word_that_is_too_long_is_broken() -> None:
    """No line is wider than asked, even without a space."""
    assert draw([Paragraph("x" * 100)], 40) == ["x" * 40, "x" * 40, "x" * 20]


def test_a_path_that_is_too_long_is_broken_between_its_folders() -> None:
    """What is copied from a line is a name; one that does not fit by itself is broken all the same."""
    path = "/home/somebody/connectors/" + "x" * 45 + "/src/connector.ts:103"
    lines = draw([labelled("sent by", Text.assemble((f"{path}, called at a.ts:1", "bold")))], 52)
    assert [line.strip() for line in lines] == [
        "sent by   /home/somebody/connectors/",
        "x" * 40,
        "x" * 5 + "/src/connector.ts:103, called at",
        "a.ts:1",
    ]


def test_an_empty_paragraph_is_one_line() -> None:
    """Nothing to say keeps its place."""
    assert draw([Paragraph("", 2), labelled("why", "")], 40) == ["", "  why"]
    assert draw([], 40) == []


def test_wide_characters_count_twice() -> None:
    """A line of ideographs holds half as many of them as a line of letters, and none is cut in two."""
    lines = draw([labelled("what", "日本語" * 20)], 40)
    assert [line[12:] for line in lines] == [
        "日本語日本語日本語日本語日本",
        "語日本語日本語日本語日本語日",
        "本語日本語日本語日本語日本語",
        "日本語日本語日本語日本語日本",
        "語日本語",
    ]
    assert {cell_len(line) for line in lines[:-1]} == {40}


@settings(deadline=None)
@given(WORDS, st.integers(0, 12), st.integers(0, 12), st.integers(1, 200))
def test_no_line_is_too_wide_and_no_word_is_lost(words: list[str], indent: int, hanging: int, width: int) -> None:
    """Whatever is said, each line fits the terminal, and the lines together say all of it."""
    text = " ".join(words)
    lines = draw([Paragraph(text, indent, hanging)], width)
    assert max(map(cell_len, lines)) <= max(MIN_WIDTH, min(width, MAX_WIDTH))
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert all(line == line.rstrip() for line in lines)


def test_a_command_is_never_broken() -> None:
    """A command stays on its line, however long it is."""
    (line,) = draw([labelled_command("replay", ["check", "x" * 200, "a b"])], 40)
    assert line == f"  replay    check {'x' * 200} 'a b'"


@pytest.mark.parametrize("text", ["[bold]x[/bold]", "[link=http://owned.invalid]x[/link]", ":warning:", "[/]", "[red"])
def test_text_is_never_markup(text: str) -> None:
    """What looks like markup of the library that draws is shown as it is, in colour too."""
    table = Table.grid()
    table.add_row(text, Text(text))
    for colour in (False, True):
        shown = [*draw([text, Paragraph(text), labelled("at", text)], 80, colour), *draw_table(table, 80, colour)]
        assert "".join(map(click.unstyle, shown)).count(text) == 5
    stream = io.StringIO()
    console(stream).print(text)
    assert stream.getvalue() == f"{text}\n"


def test_colour_changes_no_word() -> None:
    """With colour every line of a styled text has escapes, and without them the lines are those without colour."""
    long = Text("one two " * 20, "bold")
    things = [
        labelled("why", long),
        labelled("why", Text("short", "bold")),
        VerbatimLines([long], 4),
        Paragraph(long, 2, 4),
    ]
    coloured = draw(things, 60, colour=True)
    assert all("\x1b[1m" in line for line in coloured)
    assert [click.unstyle(line) for line in coloured] == draw(things, 60)


def test_a_table_in_a_pipe_is_as_wide_as_its_cells() -> None:
    """A table is folded to the width of a terminal; where there is none, no cell is folded."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_row(*("x" * 50 for _ in range(4)))
    assert [len(line) for line in draw_table(table, None)] == [206]
    assert max(len(line) for line in draw_table(table, 100)) <= 100


@pytest.mark.parametrize(
    ("environment", "terminal", "pipe"),
    [
        ({"TERM": "xterm"}, True, False),
        ({"TERM": "dumb"}, False, False),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False, False),
        ({"TERM": "xterm", "NO_COLOR": ""}, True, False),
        ({"TERM": "xterm", "FORCE_COLOR": "1"}, True, True),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, True, True),
        ({"TERM": "xterm", "FORCE_COLOR": "1", "NO_COLOR": "1"}, False, False),
    ],
)
def test_the_user_decides_about_colours(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], terminal: bool, pipe: bool
) -> None:
    """A terminal gets colours and a pipe none; NO_COLOR, FORCE_COLOR and a dumb terminal change that."""
    for name in ("TERM", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    for stream, coloured in ((Terminal(), terminal), (io.StringIO(), pipe)):
        assert wants_colour(stream) is coloured
        console(stream).print(Text("x", "bold red"))
        assert ("\x1b[" in stream.getvalue()) is coloured


@pytest.mark.parametrize(("term", "live"), [("xterm-256color", True), ("dumb", False), ("unknown", False)])
def test_only_a_terminal_is_drawn_over(monkeypatch: pytest.MonkeyPatch, term: str, live: bool) -> None:
    """A line is drawn over where the terminal can do that; never in a pipe, coloured or not."""
    monkeypatch.setenv("TERM", term)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert is_live(Terminal()) is console(Terminal()).is_terminal is live
    assert not is_live(io.StringIO())
    assert not console(io.StringIO()).is_terminal


def test_a_log_gets_a_line_a_step() -> None:
    """Where nothing can be drawn over, each step is one plain line with its number."""
    stream = io.StringIO()
    with steps(2, "trials", stream) as told:
        told("first: passes", False)
        told("[bold]second[/bold]: survived", True)
    assert stream.getvalue() == "1/2 first: passes\n2/2 [bold]second[/bold]: survived\n"


def test_a_terminal_keeps_the_steps_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal shows a line that is drawn over; what failed stays, as text that is no markup."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    stream = Terminal()
    with steps(3, "trials", stream) as told:
        told("first: passes", False)
        told("[red]second[/red]: survived", True)
    assert "[red]second[/red]: survived\n" in stream.getvalue()
    assert "\x1b[2K" in stream.getvalue()
    assert "first: passes\n" not in stream.getvalue()


def test_an_interruption_leaves_the_terminal_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever ends the command, the cursor is shown again and the line is cleared."""
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()

    def interrupted() -> None:
        with steps(2, "trials", stream) as told:
            told("first: passes", False)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert stream.getvalue().rindex("\x1b[?25h") > stream.getvalue().rindex("\x1b[?25l")


def test_counting_passes_every_item_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The items come as they are and in order, and the bar is gone when the last one was taken."""
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    assert list(with_progress(["b", "a"], stream)) == ["b", "a"]
    assert "judging" in stream.getvalue()
    assert stream.getvalue().rindex("\x1b[?25h") > stream.getvalue().rindex("\x1b[?25l")
