"""Facts about how a long command tells how far it has come."""

from __future__ import annotations

import io

import pytest

from signet_conformance.reports.progress import counted, steps
from tests.support.terminals import Terminal


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
    assert list(counted(["b", "a"], "judging", stream)) == ["b", "a"]
    assert "judging" in stream.getvalue()
    assert stream.getvalue().rindex("\x1b[?25h") > stream.getvalue().rindex("\x1b[?25l")
