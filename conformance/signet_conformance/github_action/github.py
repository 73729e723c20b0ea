"""What GitHub Actions reads of a step: workflow commands, lines in files it names, annotations at lines at fault."""

from __future__ import annotations

import contextlib
import secrets
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TextIO

from msgspec import Struct

from signet_conformance.errors import os_errors, printable
from signet_conformance.finding import FOLDING_ORDER, Verdict
from signet_conformance.outcome.conclusion import Conclusion
from signet_conformance.reports.cause_text import extent
from signet_conformance.reports.causes import Cause, Causes
from signet_conformance.reports.command_lines import explain_command, page_address

MAX_SUMMARY_BYTES = 1_000_000
"""GitHub drops a step's whole summary when it is longer than 1 MiB."""
MAX_MESSAGE = 1000
_LEVELS = ("error", "warning", "notice")
_SPEAKS_TO_A_RUNNER = ("GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STATE", "GITHUB_STEP_SUMMARY")


class Annotation(Struct, frozen=True):
    """One remark that GitHub shows at a file's line. `level` is error, warning or notice."""

    level: str
    title: str
    message: str
    file: str | None = None
    line: int | None = None

    def command(self) -> str:
        """The workflow command, on one line, whatever the texts hold."""
        assert self.level in _LEVELS  # noqa: S101 - the level is this module's own vocabulary
        place = {"file": self.file, "line": self.line, "title": self.title}
        members = ",".join(
            f"{name}={_property(printable(value, 400))}" for name, value in place.items() if value is not None
        )
        return f"::{self.level} {members}::{_data(printable(self.message, MAX_MESSAGE))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


class Runner(Struct, frozen=True):
    """The CI system around a lane. `commands` says whether it reads workflow commands."""

    stream: TextIO
    commands: bool = False
    output: Path | None = None
    summary: Path | None = None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str], stream: TextIO) -> Runner:
        """Read the CI system from the environment; all parts are None on a plain machine."""
        files = [environment.get(name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")]
        output, summary = (Path(file) if file else None for file in files)
        return cls(stream, environment.get("GITHUB_ACTIONS") == "true", output, summary)

    def annotate(self, annotation: Annotation) -> None:
        """Show a remark."""
        if self.commands:
            print(annotation.command(), file=self.stream, flush=True)

    def set(self, name: str, value: str | int) -> None:
        """Set an output of the step, on one line whatever it holds: a path may lead through a link of any name."""
        if self.output is not None:
            _append(self.output, f"{name}={printable(value, 4000)}\n")

    def summarise(self, markdown: str) -> None:
        """Add to the step's summary, as much of it as GitHub takes."""
        if self.summary is None:
            return
        whole = markdown.encode("utf-8", "backslashreplace")
        room = MAX_SUMMARY_BYTES - (self.summary.stat().st_size if self.summary.exists() else 0)
        if len(whole) > room:
            whole = whole[: max(0, room - 100)].rpartition(b"\n")[0]
            whole += b"\n\nThe summary was cut here; the uploaded report has the rest.\n"
        _append(self.summary, whole.decode("utf-8", "ignore"))

    @contextlib.contextmanager
    def quoting(self) -> Iterator[None]:
        """While this lasts, nothing that is printed is taken for a workflow command: it quotes a connector."""
        if not self.commands:
            yield
            return
        token = secrets.token_hex(16)
        print(f"::stop-commands::{token}", file=self.stream, flush=True)
        try:
            yield
        finally:
            print(f"\n::{token}::", file=self.stream, flush=True)


def without_runner(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment for a child that has no way to speak to the CI system, and none of its tokens."""
    return {
        name: value
        for name, value in environment.items()
        if name not in _SPEAKS_TO_A_RUNNER and not name.startswith("ACTIONS_") and name != "GITHUB_TOKEN"
    }


def _append(path: Path, text: str) -> None:
    remedy = "let GITHUB_OUTPUT and GITHUB_STEP_SUMMARY name files, or unset them"
    with (
        os_errors("cannot be written", where=printable(path, 400), remedy=remedy),
        path.open("a", encoding="utf-8", newline="") as stream,
    ):
        stream.write(text)


WORDS: Mapping[int, str] = {
    0: "conforming",
    1: "breached",
    2: "unusable",
    3: "untested",
    4: "unjudged",
    130: "cancelled",
}
"""Exit status to the word in the lane's output `verdict`."""
MAX_ANNOTATIONS = 10
"""GitHub shows ten errors and ten warnings of a step."""
MAX_NAMED = 3
"""Requirements of one cause that the title of its annotation names."""
_VERDICT_LEVELS = {Verdict.ERROR: "error", Verdict.FAIL: "error", Verdict.WARN: "warning"}


def counts(conclusion: Conclusion) -> dict[str, int]:
    """How many requirements have each verdict, all six named."""
    tally = Counter(conclusion.verdicts.values())
    return {verdict.value: tally[verdict] for verdict in FOLDING_ORDER}


def remarks(conclusion: Conclusion, workspace: Path) -> Iterator[Annotation]:
    """A remark for each cause, at the line of the trace that shows it best; then for entries that fail the lane."""
    shown: Counter[str] = Counter()
    for cause in Causes.of(conclusion).connector():
        if cause.is_known:
            continue
        shown[level := _VERDICT_LEVELS[cause.verdict]] += 1
        if shown[level] <= MAX_ANNOTATIONS:
            yield _cause(cause, workspace)
    if over := sum(max(0, count - MAX_ANNOTATIONS) for count in shown.values()):
        yield Annotation("notice", "Signet conformance", f"{over} more causes: see the summary")
    for word, entries, advice in (
        ("stale", conclusion.known.stale, "it no longer fails: remove the entry"),
        ("expired", conclusion.known.expired, "fix the connector, or agree on a later date"),
    ):
        for file, entry in entries:
            text = f"the entry of {entry.requirement} at {entry.target} is {word}: {advice}"
            yield Annotation("error", "Signet baseline", text, relative(Path(file.path), workspace))


def _cause(cause: Cause, workspace: Path) -> Annotation:
    level, first = _VERDICT_LEVELS[cause.verdict], cause.first
    title = f"{cause.verdict.value} {', '.join(cause.requirements[:MAX_NAMED])}"
    page = page_address(cause.requirement) or explain_command(cause.requirement)
    text = f"{', '.join(filter(None, [cause.says, first.what, extent(cause)]))} ({page})"
    for source in first.sources:
        if (file := Path.cwd() / source.file).is_relative_to(workspace):
            return Annotation(level, title, text, relative(file, workspace), source.line)
    if not first.file:
        return Annotation(level, title, text)
    return Annotation(level, title, text, relative(Path(first.file), workspace), first.line or 1)


def relative(path: Path, workspace: Path) -> str:
    """A path as GitHub knows it: from the workspace."""
    return str(path.relative_to(workspace)) if path.is_relative_to(workspace) else str(path)
