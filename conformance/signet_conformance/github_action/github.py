"""What GitHub Actions reads of a step: workflow commands on standard output, and lines in files it names.

On a machine that names no such file nothing is written, and no workflow command is printed.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from signet_conformance.errors import UsageError, printable

MAX_SUMMARY_BYTES = 1_000_000
"""GitHub drops a step's whole summary when it is longer than 1 MiB."""
MAX_MESSAGE = 1000
_LEVELS = ("error", "warning", "notice")
_SPEAKS_TO_A_RUNNER = ("GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STATE", "GITHUB_STEP_SUMMARY")


@dataclass(frozen=True, slots=True)
class Annotation:
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


@dataclass(frozen=True, slots=True)
class Runner:
    """The CI system around a lane. `commands` says whether it reads workflow commands."""

    stream: TextIO
    commands: bool = False
    output: Path | None = None
    summary: Path | None = None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str], stream: TextIO) -> Runner:
        """What the environment says of the CI system; a plain machine says nothing."""
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
    try:
        with path.open("a", encoding="utf-8", newline="") as stream:
            stream.write(text)
    except OSError as failure:
        raise UsageError(
            f"cannot be written: {failure.strerror}",
            where=printable(path, 400),
            remedy="let GITHUB_OUTPUT and GITHUB_STEP_SUMMARY name files, or unset them",
        ) from None
