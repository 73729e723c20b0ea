"""The suite for adapters behind HTTP, as pytest runs it in a repository of somebody else."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from signet_conformance.contracts import AdapterServerContract
from tests.support.inner_pytest import run

SERVER = Path(__file__).resolve().parents[1] / "drivers" / "fixtures" / "adapter_server.py"
BROKEN: Mapping[str, tuple[str, str]] = {
    "misnames": ("test_a_prompt_is_told_in_the_user_s_words", "put its text in userMessage"),
    "drops-agent": ("test_a_compaction_is_told_before_and_after", "pre-compaction says the agent None"),
    "keeps-context": ("test_what_the_daemon_injects_reaches_the_harness", "onSessionStart answered {}"),
    "ends-elsewhere": ("test_an_end_hands_over_the_transcript", "session-end says the cwd None, not '/srv/acme'"),
    "needs-daemon": ("test_a_daemon_that_is_away_costs_no_turn", "answered with status 502 with the daemon away"),
    "answers-everything": ("test_a_method_that_is_not_there_is_refused", "/onDance was answered 200"),
    "prose": ("test_a_start_claims_the_session", "the answer's body is not a JSON object"),
}
SUITE = """
class Test{name}(AdapterServerContract):
    command = {command!r}
    harness = "adapter"
"""


def repository(folder: Path) -> Path:
    """Suites for an adapter that conforms, one that knows no compactions, and those that break something."""
    names = {"conforming": "Conforming", "lacks-compaction": "Lacking", **{mode: _class(mode) for mode in BROKEN}}
    text = "from signet_conformance.contracts import AdapterServerContract\n"
    env = str(shutil.which("env"))
    for mode, name in names.items():
        command = [env, f"FIXTURE_MODE={mode}", sys.executable, str(SERVER), "{port}"]
        text += SUITE.format(name=name, command=command)
    file = folder / "test_mine.py"
    file.write_text(text)
    return file


def _class(mode: str) -> str:
    return "".join(word.title() for word in mode.split("-"))


def test_a_broken_adapter_is_caught_by_name(tmp_path: Path) -> None:
    """One that conforms passes, one without compactions is skipped there, and a breach fails the test named for it."""
    file = repository(tmp_path)
    chosen = [f"{file.name}::Test{_class(mode)}::{name}" for mode, (name, _) in BROKEN.items()]
    lacking = f"{file.name}::TestLacking::test_a_compaction_is_told_before_and_after"
    done = run(tmp_path, "-q", "-rA", "-p", "no:cacheprovider", f"{file.name}::TestConforming", lacking, *chosen)
    outcomes = re.findall(r"^(PASSED|FAILED|ERROR) \S+?::Test([^\s\[]+)", done.out, re.MULTILINE)
    failed = {name for outcome, name in outcomes if outcome != "PASSED"}
    assert failed == {f"{_class(mode)}::{name}" for mode, (name, _) in BROKEN.items()}, done.everything
    for mode, (name, said) in BROKEN.items():
        assert said in done.out, (mode, name)
    passed = {name for outcome, name in outcomes if outcome == "PASSED"}
    assert passed == {f"Conforming::{name}" for name in dir(AdapterServerContract) if name.startswith("test_")}
    assert "the adapter serves no onPreCompaction" in done.out


def test_a_suite_without_a_command_says_what_to_write(tmp_path: Path) -> None:
    """The error is an example of the missing line."""
    (tmp_path / "test_mine.py").write_text(
        "from signet_conformance.contracts import AdapterServerContract\nclass TestMine(AdapterServerContract): pass\n"
    )
    done = run(tmp_path, "-q", "-p", "no:cacheprovider", "-k", "is_refused")
    assert 'say command = ["node", "server.mjs", "{port}"]: how your server is started' in done.out


def test_an_imported_suite_is_not_collected_itself(tmp_path: Path) -> None:
    """Only what subclasses it is a test."""
    (tmp_path / "test_mine.py").write_text("from signet_conformance.contracts import *\n")
    assert run(tmp_path, "-q", "-p", "no:cacheprovider").status == 5
