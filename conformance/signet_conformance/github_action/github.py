"""Output for GitHub Actions: annotations and other workflow commands, step outputs and the step summary."""

from __future__ import annotations

import contextlib
import secrets
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, TextIO

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
MAX_ANNOTATIONS = 10
"""GitHub shows at most ten errors and ten warnings of a step."""
MAX_NAMED = 3
"""How many requirements of a cause its annotation's title names."""
VERDICT_WORDS: Mapping[int, str] = {
    0: "conforming",
    1: "breached",
    2: "unusable",
    3: "untested",
    4: "unjudged",
    130: "cancelled",
}
"""The word in the lane's output `verdict`, by exit status."""
Level = Literal["error", "warning", "notice"]
_LEVELS_OF_VERDICTS: Mapping[Verdict, Level] = {Verdict.ERROR: "error", Verdict.FAIL: "error", Verdict.WARN: "warning"}
_RUNNER_FILES = ("GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STATE", "GITHUB_STEP_SUMMARY")
"""The variables with the files through which a step gives commands to its runner."""


class Annotation(Struct, frozen=True):
    """A message that GitHub shows at a line of a file."""

    level: Level
    title: str
    message: str
    file: str | None = None
    line: int | None = None

    def command(self) -> str:
        """The workflow command, on one line even if the texts have several."""
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
    """The CI system that runs the lane (`signet-conformance lane`), or a plain machine.

    `commands` is True if it obeys workflow commands on `stream`. `output` and `summary` are the files for the step's
    outputs and its summary, if any.
    """

    stream: TextIO
    commands: bool = False
    output: Path | None = None
    summary: Path | None = None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str], stream: TextIO) -> Runner:
        """Read the CI system from the environment; a plain machine has neither commands nor files."""
        files = [environment.get(name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")]
        output, summary = (Path(file) if file else None for file in files)
        return cls(stream, environment.get("GITHUB_ACTIONS") == "true", output, summary)

    def annotate(self, annotation: Annotation) -> None:
        """Show an annotation, if the CI system has them."""
        if self.commands:
            print(annotation.command(), file=self.stream, flush=True)

    def set_output(self, name: str, value: str | int) -> None:
        """Set an output of the step. A line break in the value is escaped: a path may contain one."""
        if self.output is not None:
            _append(self.output, f"{name}={printable(value, 4000)}\n")

    def add_summary(self, markdown: str) -> None:
        """Append to the step's summary, cut to what GitHub accepts."""
        if self.summary is None:
            return
        whole = markdown.encode("utf-8", "backslashreplace")
        room = MAX_SUMMARY_BYTES - (self.summary.stat().st_size if self.summary.exists() else 0)
        if len(whole) > room:
            whole = whole[: max(0, room - 100)].rpartition(b"\n")[0]
            whole += b"\n\nThe summary was cut here; the uploaded report has the rest.\n"
        _append(self.summary, whole.decode("utf-8", "ignore"))

    @contextlib.contextmanager
    def commands_stopped(self) -> Iterator[None]:
        """Inside the block, GitHub obeys no workflow command: the output may quote text of a connector."""
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
    """The environment without the CI system's tokens, and without the variables by which a child gives it commands."""
    return {
        name: value
        for name, value in environment.items()
        if name not in _RUNNER_FILES and not name.startswith("ACTIONS_") and name != "GITHUB_TOKEN"
    }


def _append(path: Path, text: str) -> None:
    remedy = "let GITHUB_OUTPUT and GITHUB_STEP_SUMMARY name files, or unset them"
    with (
        os_errors("cannot be written", where=path, remedy=remedy),
        path.open("a", encoding="utf-8", newline="") as stream,
    ):
        stream.write(text)


def count_verdicts(conclusion: Conclusion) -> dict[str, int]:
    """How many requirements have each verdict, with zeros."""
    tally = Counter(conclusion.verdicts.values())
    return {verdict.value: tally[verdict] for verdict in FOLDING_ORDER}


def annotations_of(conclusion: Conclusion, workspace: Path) -> Iterator[Annotation]:
    """An annotation for each cause that is not a known failure, then one for each stale or expired baseline entry.

    A cause is shown at the line of the connector's source that sent the request, if known, else at a line of the trace.
    """
    shown: Counter[str] = Counter()
    for cause in Causes.of(conclusion).connector():
        if cause.is_known:
            continue
        level = _LEVELS_OF_VERDICTS[cause.verdict]
        shown[level] += 1
        if shown[level] <= MAX_ANNOTATIONS:
            yield _annotation_of(cause, workspace)
    if over := sum(max(0, count - MAX_ANNOTATIONS) for count in shown.values()):
        yield Annotation("notice", "Signet conformance", f"{over} more causes: see the summary")
    for word, entries, advice in (
        ("stale", conclusion.known.stale, "it no longer fails: remove the entry"),
        ("expired", conclusion.known.expired, "fix the connector, or agree on a later date"),
    ):
        for file, entry in entries:
            text = f"the entry of {entry.requirement} at {entry.target} is {word}: {advice}"
            yield Annotation("error", "Signet baseline", text, relative(Path(file.path), workspace))


def _annotation_of(cause: Cause, workspace: Path) -> Annotation:
    level, first = _LEVELS_OF_VERDICTS[cause.verdict], cause.first
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
    """The path relative to the workspace, as GitHub expects it; unchanged if it is outside."""
    return str(path.relative_to(workspace)) if path.is_relative_to(workspace) else str(path)
