"""Facts about the loop of `run --watch`."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from signet_conformance.finding import Verdict
from signet_conformance.outcome.conclusion import Conclusion, Judging, Terms
from signet_conformance.running.watch_loop import LatestResults, Pass
from tests.running.test_last_time import AGENT, performed
from tests.support.drives import LASTING, PLAIN, Drive
from tests.support.processes import PATIENCE_S, Watched, wait_until

EXAMPLE = Path(__file__).parents[2] / "examples" / "driver-python"


class Watching:
    """A loop in a process of its own, with the lines that it has written."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[str] = []
        self._read = threading.Condition()
        self._seen = 0
        threading.Thread(target=self._take, daemon=True).start()

    def _take(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._read:
                self.lines.append(line)
                self._read.notify_all()

    def await_line(self, beginning: str) -> list[str]:
        """Wait for a line that begins so; the lines up to it, from the one after the last that was waited for."""

        def is_there() -> bool:
            return any(line.startswith(beginning) for line in self.lines[self._seen :])

        with self._read:
            assert self._read.wait_for(is_there, PATIENCE_S), "".join(self.lines)
            began = self._seen
            self._seen = 1 + next(n for n in range(began, len(self.lines)) if self.lines[n].startswith(beginning))
            return self.lines[began : self._seen]


@pytest.fixture
def drive(tmp_path: Path) -> Drive:
    """A folder with the example of a connector in Python, and two scenarios."""
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True)
    (tmp_path / "two.json").write_text(json.dumps({"scenarios": [PLAIN, {**PLAIN, "name": "again"}]}))
    return Drive(tmp_path)


@contextmanager
def watching(drive: Drive, *words: str) -> Iterator[Watching]:
    """Run the loop over the example."""
    with drive.begin_command("run", "example-python", "--watch", *words) as process:
        yield Watching(process)


def test_loop_tells_what_each_save_changed(drive: Drive) -> None:
    """A breach is new, then gone; a program that does not start is an error, and no end. Nothing is left behind."""
    connector = drive.folder / "connector.py"
    good = connector.read_text()
    with watching(drive, "--scenario=two.json") as loop:
        loop.await_line("watching")
        connector.write_text(good.replace('"agentId"', '"agent"'))
        assert any(line.startswith("  new   FAIL SIG-AGENT-002") for line in loop.await_line("1 new, 0 gone, 0 still"))
        loop.await_line("1 new, 0 gone, 0 still; 2 of 2")
        connector.write_text(good)
        assert "  not shown again so far: SIG-AGENT-002\n" in loop.await_line("0 new, 0 gone, 0 still; 1 of 2")
        loop.await_line("  gone  SIG-AGENT-002")
        loop.await_line("conforming")
        connector.write_text("an error of syntax")
        loop.await_line("saved: connector.py")
        connector.write_text(good)
        loop.await_line("saved: connector.py")
        loop.await_line("conforming")
        with Watched(drive.processes()) as watched:
            loop.process.send_signal(signal.SIGINT)
            assert loop.process.wait(PATIENCE_S) == 130
            assert watched.left() == []
    assert list(drive.temporary.glob("signet-*")) == []


def test_changed_settings_are_read_anew(drive: Drive) -> None:
    """What the connector declares counts from the next pass on; unreadable ones are told and waited out."""
    settings = drive.folder / "signet-conformance.toml"
    good = settings.read_text()
    with watching(drive, "--scenario=two.json", "-k", "SIG-AGENT-002") as loop:
        loop.await_line("conforming")
        settings.write_text(good.replace('"atlas-agent", ', '"atlas-agent"'))
        loop.await_line("saved: signet-conformance.toml")
        settings.write_text(good.replace("token = true", "token = false"))
        loop.await_line("conforming")
        loop.process.send_signal(signal.SIGTERM)
        assert loop.process.wait(PATIENCE_S) == 130


def test_a_save_ends_the_pass_that_is_under_way(drive: Drive) -> None:
    """The scenario that lasts is broken off without a word, and the next pass begins."""
    connector = drive.folder / "connector.py"
    (drive.folder / "lasting.json").write_text(json.dumps(LASTING))
    with watching(drive, "--scenario=lasting.json") as loop:
        for number in (1, 2):

            def is_under_way(number: int = number) -> bool:
                recorded = drive.temporary.glob(f"signet-traces-*/stage-{number}/lasting.jsonl")
                return any(b'"step":"prompt"' in trace.read_bytes() for trace in recorded)

            wait_until(is_under_way, "the scenario never got to a prompt")
            connector.write_text(f"{connector.read_text()}\n")
            loop.await_line("saved: connector.py")
        loop.process.send_signal(signal.SIGINT)
        assert loop.process.wait(PATIENCE_S) == 130
        assert loop.process.stderr is not None
        assert "error" not in loop.process.stderr.read()


def conclusion(folder: Path, **breaches: bool) -> Conclusion:
    """A conclusion over recordings of scenarios by name, in which two calls have the wrong agent or not."""
    judging = Judging(Terms(only=frozenset({AGENT})), whole=True)
    for judged in judging.judge_traces(
        [performed(folder / f"{name}.jsonl", breach=of) for name, of in breaches.items()]
    ):
        judging.add(judged)
    return judging.conclude()


def test_breach_is_gone_once_every_scenario_that_showed_it_was_looked_at(tmp_path: Path) -> None:
    """Until then it is not shown; the scenarios that were not performed still count as showing it."""
    first = Pass(LatestResults())
    first.add(conclusion(tmp_path, plain=True, tools=True), whole=True)
    assert first.changes(whole=True).new == [AGENT]
    before = first.outcome(whole=True)
    assert before.verdicts == {AGENT: Verdict.FAIL}

    second = Pass(before)
    second.add(conclusion(tmp_path, plain=False), whole=False)
    changes = second.changes(whole=False)
    assert (changes.gone, changes.unshown) == ([], [AGENT])
    assert second.outcome(whole=False).broken == {AGENT: {"tools"}}
    second.add(conclusion(tmp_path, tools=False), whole=False)
    assert second.changes(whole=False).gone == [AGENT]
    assert second.outcome(whole=False).broken == {}


def test_what_calls_the_operation_of_a_breach_is_related(tmp_path: Path) -> None:
    """A scenario that did not show the breach, and calls what was called wrongly, is looked at next."""
    seen = Pass(LatestResults())
    seen.add(conclusion(tmp_path, plain=True, tools=False), whole=True)
    assert seen.outcome(whole=True).related([AGENT]) == {"plain", "tools"}
    assert seen.outcome(whole=True).related([]) == set()
