"""Make the documentation's pictures from recordings of tests/evidence.

Each picture in docs/assets/pictures has a text file beside it with the program's output when the picture was taken,
down to the end of the picture. `--check` compares these files with the program's present output.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

from signet_conformance.cli.watch import PageState, RecordingWatcher, served
from signet_conformance.outcome.conclusion import Terms

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "assets" / "pictures"
TRACES = ROOT / "tests" / "evidence" / "traces"
WIDTH = 80
WINDOW = (960, 2400)
CONNECTORS = ("claude-code-clear", "codex-clear", "hermes-agent-tools", "openclaw-lifecycle", "pi-lifecycle")


@dataclass(frozen=True)
class Terminal:
    """A picture of a command's output."""

    name: str
    command: tuple[str, ...]
    suffix = ".svg"

    def text(self, work: Path) -> str:
        """Return what the command prints, without colours."""
        return run(self.command, work, NO_COLOR="1")

    def draw(self, work: Path) -> bytes:
        """Return the terminal as SVG."""
        coloured = run(self.command, work, FORCE_COLOR="1")
        console = Console(width=WIDTH, record=True, file=io.StringIO(), force_terminal=True, color_system="truecolor")
        console.print(Text.from_ansi(coloured))
        # Fonts are the reader's own: a picture asks no other host for them.
        form = re.sub(r"@font-face \{\{.*?\}\}\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
        title = " ".join(("signet-conformance", *self.command))
        return console.export_svg(title=title, unique_id=self.name, code_format=form).encode()


@dataclass(frozen=True)
class Page:
    """A page for a browser, down to the element with the id `until`; `live` if `watch` serves it."""

    name: str
    until: str
    command: tuple[str, ...] = ()
    live: bool = False
    suffix = ".webp"

    def text(self, work: Path) -> str:
        """Return the text of the page, a line for each piece of markup that has some."""
        with self.served(work / "live" if self.live else work) as url, urllib.request.urlopen(url) as answer:  # noqa: S310 - a file, or our own server
            reader = VisibleText(self.until)
            reader.feed(answer.read().decode())
        if not reader.ended:
            raise SystemExit(f"{self.name}: the page has no element with the id {self.until}: choose another")
        return "".join(f"{line}\n" for line in reader.lines)

    def draw(self, work: Path) -> bytes:
        """Return a screenshot."""
        from tests.support.browser import browser

        with self.served(work / "live" if self.live else work) as url, browser() as window:
            window.resize(*WINDOW)
            return window.visit(url).picture(WINDOW[0], self.until)

    @contextmanager
    def served(self, work: Path) -> Iterator[str]:
        """The address of the page while it can be read."""
        if not self.live:
            run((*self.command, "--html", f"{self.name}.html", "--force"), work)
            yield (work / f"{self.name}.html").as_uri()
            return
        judged = threading.Event()

        def tell(what: PageState | str) -> None:
            if isinstance(what, PageState):
                judged.set()

        with chdir(work), RecordingWatcher(["session.jsonl"], Terms(), tell) as growing, served(growing) as url:
            if not judged.wait(60):
                raise SystemExit(f"{self.name}: the recording was not judged within 60 s")
            yield url


class VisibleText(HTMLParser):
    """The text of a page, without scripts and styles, up to the element with the id `until`."""

    def __init__(self, until: str) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.ended = False
        self._until = until
        self._hidden = False

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Note what is not shown, and where the picture ends."""
        self._hidden = tag in ("script", "style", "noscript", "title")
        self.ended = self.ended or dict(attributes).get("id") == self._until

    def handle_endtag(self, tag: str) -> None:  # noqa: ARG002 - HTMLParser passes the tag
        """Show text again: what is hidden holds no elements."""
        self._hidden = False

    def handle_data(self, data: str) -> None:
        """Keep a text."""
        line = " ".join(data.split())
        if line and not self.ended and not self._hidden:
            self.lines.append(line)


PICTURES = (
    Terminal("terminal", ("check", "session.jsonl", "-k", "SIG-AGENT-001")),
    Page("page", until="SIG-PROMPT-003", command=("check", "session.jsonl")),
    Page("matrix", until="requirements", command=("matrix", *(f"{name}/report.json" for name in CONNECTORS))),
    Page("watch", until="SIG-PROMPT-003", live=True),
)


def run(command: tuple[str, ...], work: Path, **variables: str) -> str:
    """Run a command of the kit in a folder, and return its output. Its exit status is that of its verdicts."""
    environment = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    done = subprocess.run(
        (Path(sys.executable).with_name("signet-conformance"), *command),
        cwd=work,
        env={**environment, **variables, "COLUMNS": str(WIDTH)},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}")
    return done.stdout


@contextmanager
def prepared() -> Iterator[Path]:
    """A folder with the recordings and reports that the commands read."""
    with tempfile.TemporaryDirectory(prefix="signet-pictures-") as name:
        work = Path(name)
        shutil.copy(TRACES / "pi-lifecycle.jsonl", work / "session.jsonl")
        lines = (work / "session.jsonl").read_text("utf-8").splitlines(keepends=True)
        (work / "live").mkdir()
        (work / "live" / "session.jsonl").write_text("".join(lines[:13]), "utf-8")
        for connector in CONNECTORS:
            (work / connector).mkdir()
            shutil.copy(TRACES / f"{connector}.jsonl", work / connector)
            report = run(("check", f"{connector}/{connector}.jsonl", "--json"), work)
            (work / connector / "report.json").write_text(report, "utf-8")
        yield work


def texts() -> Mapping[str, tuple[str, str]]:
    """By the name of each picture, the program's text when it was taken, and the present text."""
    with prepared() as work:
        return {
            picture.name: ((FOLDER / f"{picture.name}.txt").read_text("utf-8"), picture.text(work))
            for picture in PICTURES
        }


def main() -> int:
    """Take the pictures, or check them, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only compare the texts; needs no browser")
    if parser.parse_args().check:
        old = [name for name, (then, now) in texts().items() if then != now]
        for name in old:
            print(f"the picture {name} shows what the program no longer says\ntry: nox -s pictures", file=sys.stderr)
        return 1 if old else 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    with prepared() as work:
        for picture in PICTURES:
            (FOLDER / f"{picture.name}.txt").write_text(picture.text(work), "utf-8")
            drawn = picture.draw(work)
            (FOLDER / f"{picture.name}{picture.suffix}").write_bytes(drawn)
            print(f"{picture.name}{picture.suffix}: {len(drawn)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
