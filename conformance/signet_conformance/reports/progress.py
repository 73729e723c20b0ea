"""The progress of a long command: a bar with the time left on a terminal, a line a step in a log."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO, TypeVar

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from signet_conformance.errors import printable
from signet_conformance.reports.terminal import console, is_live, one_line

_MOST_WORDS = 60
_Item = TypeVar("_Item")


@contextmanager
def steps(total: int, doing: str, stream: TextIO) -> Iterator[Callable[[str, bool], None]]:
    """Count `total` steps on `stream`, told by the function that is given: what the step was, and whether it failed.

    A terminal shows one line that is drawn over, and keeps the steps that failed; a log gets every step. `doing` says
    what is counted.
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


def counted(items: Sequence[_Item], doing: str, stream: TextIO) -> Generator[_Item, None, None]:
    """The items, counted on a terminal as they are taken; what is written to stderr meanwhile stands above the bar.

    Whoever does not take all of them closes the iterator, or the bar stays.
    """
    with _bar(stream) as progress:
        yield from progress.track(items, description=doing)


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
