"""Pytest runs that really drive a connector, in a folder of their own, with all that they start to be found by it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from signet_conformance.scenarios.scenario import scripted
from tests.support import inner_pytest

START = {"step": "start", "session": "s1", "agent": 0, "project": "/workspace/src/acme-api"}
PROMPT = {
    "step": "prompt",
    "session": "s1",
    "text": "Which database does Atlas Billing use?",
    "reply": "PostgreSQL 16.",
}
END = {"step": "end", "session": "s1"}

PLAIN = {"name": "plain", "title": "One session", "steps": [START, PROMPT, END]}
LASTING = {
    "name": "lasting",
    "title": "A session that lasts, for every prompt waits until its bound",
    "steps": [START, {"step": "fault", "fault": {"kind": "hang"}}, *[PROMPT] * 200, END],
}


_NAMELESS = """
[targets.mine]
command = ["{python}", "%s", "unnamed_compaction", "last_started_agent"]
agents = ["atlas-agent", "beacon-agent"]
harness = "reference"
bounds_s = {start = 15.0, prompt = 5.0}
token = true

[targets.mine.env]
SIGNET_HEALTH_TIMEOUT = "15000"
SIGNET_SESSION_START_TIMEOUT = "15000"
SIGNET_PROMPT_SUBMIT_TIMEOUT = "5000"
"""
"""Its patience is as long as the contract lets it be: on a busy machine it shows its breach late, and not never."""


def make_stoppable(folder: Path) -> None:
    """Give a folder a connector that breaks compactions, and two scenarios: that, and one that lasts.

    Where two sessions are open, its prompts have the agent of the one that was started last.
    """
    program = Path(__file__).parents[1] / "running" / "generated" / "broken_reference.py"
    (folder / "signet-conformance.toml").write_text(_NAMELESS % program)
    compaction = next(scenario for scenario in scripted() if scenario.name == "compaction")
    (folder / "both.json").write_text(json.dumps({"scenarios": [compaction.to_json(), LASTING]}))


def is_stoppable(traces: Path) -> bool:
    """Return True once the compaction is over and the scenario that lasts has come to a prompt."""
    over, lasting = traces / "compaction.jsonl", traces / "lasting.jsonl"
    return all(path.is_file() for path in (over, lasting)) and (
        b"scenario_end" in over.read_bytes() and b'"step":"prompt"' in lasting.read_bytes()
    )


@dataclass(frozen=True)
class Drive:
    """A folder to drive from. Temporary files go below it too, and every child has that in its environment."""

    folder: Path

    def __post_init__(self) -> None:
        self.temporary.mkdir()

    @property
    def temporary(self) -> Path:
        """Where the run has its temporary files."""
        return self.folder / "temporary"

    def begin(self, *arguments: str, scenario: Mapping[str, Any] | None = None) -> subprocess.Popen[str]:
        """Start a pytest run that drives the reference harness, through this scenario where one is given."""
        return self._start(self._pytest(arguments, scenario))

    def perform(
        self, *arguments: str, scenario: Mapping[str, Any] | None = None, **environment: str
    ) -> inner_pytest.Finished:
        """The same to its end, by a process that has imported what it needs."""
        return self._finish(self._pytest(arguments, scenario), **environment)

    def begin_command(self, *words: str, scenario: Mapping[str, Any] | None = None) -> subprocess.Popen[str]:
        """Start `signet-conformance` with these words, and with the scenario where one is given."""
        return self._start(self._command(words, scenario))

    def command(self, *words: str, scenario: Mapping[str, Any] | None = None) -> inner_pytest.Finished:
        """The same to its end, by a process that has imported what it needs."""
        return self._finish(self._command(words, scenario))

    def _pytest(self, arguments: Sequence[str], scenario: Mapping[str, Any] | None) -> list[str]:
        more = [] if scenario is None else [f"--signet-scenario={self._saved(scenario)}"]
        return inner_pytest.command("--signet-conformance", "--target=reference", *arguments, *more)

    def _command(self, words: Sequence[str], scenario: Mapping[str, Any] | None) -> list[str]:
        more = [] if scenario is None else [f"--scenario={self._saved(scenario)}"]
        return [sys.executable, "-m", "signet_conformance.cli", *words, *more]

    def _saved(self, scenario: Mapping[str, Any]) -> str:
        (self.folder / "scenario.json").write_text(json.dumps(scenario))
        return "scenario.json"

    def _start(self, words: Sequence[str]) -> subprocess.Popen[str]:
        return inner_pytest.begin(words, self.folder, TMPDIR=str(self.temporary))

    def _finish(self, words: Sequence[str], **environment: str) -> inner_pytest.Finished:
        return inner_pytest.finished(words, self.folder, TMPDIR=str(self.temporary), **environment)

    def processes(self) -> Mapping[int, str]:
        """The processes that belong to this drive, with their command lines; none that is a mere zombie."""
        alive = {}
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if os.fsencode(self.temporary) in (entry / "environ").read_bytes():
                    alive[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        return alive
