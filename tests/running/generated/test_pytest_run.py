"""Generated sessions in a pytest run: found, explained, saved, and replayed by the command that is printed."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from signet_conformance.errors import UsageError
from signet_conformance.pytest_plugin.options import read_options
from signet_conformance.running.request import DEFAULT_SEED, DEFAULT_SESSIONS
from tests.support.inner_pytest import run

from .live import BROKEN

pytest_plugins = ["pytester"]

SETTINGS = """
[targets.broken]
command = ["{python}", "%s", "legacy_after_clear"]
agents = ["atlas-agent", "beacon-agent"]
harness = "reference"
bounds_s = {start = 1.0, prompt = 1.0}
token = true
"""


def test_breach_of_a_generated_session_is_replayed_by_paste(tmp_path: Path) -> None:
    """The failure names the smallest session and a command; the command fails the same requirement, and that alone."""
    (tmp_path / "signet-conformance.toml").write_text(SETTINGS % BROKEN)
    start = {"step": "start", "session": "s1", "agent": 0, "project": "/workspace/src/acme-api"}
    quiet = {"name": "quiet", "steps": [start, {"step": "end", "session": "s1"}]}
    (tmp_path / "quiet.json").write_text(json.dumps(quiet))  # shows no breach, and stands for all scripted scenarios
    words = ("--target", "broken", "--scenario", "quiet.json", "--scenarios", "20", "--signet-seed", "300")
    first = run(tmp_path, "--signet-conformance", *words)
    assert first.status == 1, first.out + first.err
    assert "20 generated sessions, seed 300" in first.out
    assert "smallest generated session that shows it: 5 steps" in first.out
    assert re.search(r"^  FAIL SIG-HTTP-005.* in 5 steps, saved as signet-failures/\S+\.json$", first.out, re.MULTILINE)
    replayed = re.search(r"^ +replay +pytest (.*SIG-HTTP-005.*\.json)$", first.out, re.MULTILINE)
    assert replayed is not None, first.out
    words = shlex.split(replayed[1])
    saved = json.loads((tmp_path / words[-1]).read_bytes())
    assert (saved["requirement"], saved["seed"], len(saved["steps"])) == ("SIG-HTTP-005", 300, 5)

    again = run(tmp_path, *words)
    assert again.status == 1, again.out + again.err
    assert "SIG-HTTP-005" in again.out
    assert "in 1 trace" in again.out
    assert "generated sessions" not in again.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--scenarios", "many"], "'many' is not a whole number"),
        (["--scenarios=-1"], "'-1' is not a whole number"),
        (["--signet-scenarios", "9999999999"], "is not a whole number from 0 to"),
        (["--signet-seed", "0x1"], "'0x1' is not a whole number"),
        (["--scenario", "none.json"], "cannot be read"),
        (["--scenario", "one.json", "--signet-scenario", "other.json"], "two scenarios are called one"),
    ],
)
def test_option_that_cannot_be_used_is_refused(pytester: pytest.Pytester, words: list[str], message: str) -> None:
    """The error says which option is off, before anything is launched."""
    for name, session in (("one", "s1"), ("other", "s2")):
        scenario = {"name": "one", "steps": [{"step": "start", "session": session}]}
        (pytester.path / f"{name}.json").write_text(json.dumps(scenario))
    config = pytester.parseconfig("--signet-conformance", "--target", "reference", *words)
    with pytest.raises(UsageError, match=message) as raised:
        read_options(config, [])
    assert raised.value.where is not None
    assert raised.value.remedy is not None


@pytest.mark.parametrize(
    ("words", "sessions", "seed"),
    [
        ([], DEFAULT_SESSIONS, DEFAULT_SEED),
        (["--scenarios", "0", "--signet-seed", "7"], 0, 7),
        (["--scenarios", "3", "--signet-scenarios", "5"], 5, DEFAULT_SEED),
        (["--scenario", "one.json"], 0, DEFAULT_SEED),
        (["--scenario", "one.json", "--scenarios", "4"], 4, DEFAULT_SEED),
    ],
)
def test_options_say_what_is_performed(pytester: pytest.Pytester, words: list[str], sessions: int, seed: int) -> None:
    """A run generates sessions unless it is told otherwise or given a scenario; the seed is fixed."""
    (pytester.path / "one.json").write_text(json.dumps({"name": "one", "steps": [{"step": "start", "session": "s1"}]}))
    (asked,) = read_options(pytester.parseconfig("--signet-conformance", "--target", "reference", *words), [])
    assert (asked.sessions, asked.seed, len(asked.scenarios)) == (sessions, seed, "--scenario" in words)


@pytest.mark.parametrize(("words", "sessions", "own"), [([], 7, True), (["--scenarios", "3"], 3, False)])
def test_target_says_how_many_sessions_are_usual(
    pytester: pytest.Pytester, words: list[str], sessions: int, own: bool
) -> None:
    """A profile may name a number of its own, which the command line overrides."""
    (pytester.path / "signet-conformance.toml").write_text(f"{SETTINGS % BROKEN}sessions = 7\n")
    (asked,) = read_options(pytester.parseconfig("--signet-conformance", "--target", "broken", *words), [])
    assert (asked.sessions, asked.sessions_of_target) == (sessions, own)


def test_option_of_the_repository_stays_its_own(tmp_path: Path) -> None:
    """Where the repository has a --scenario, the kit leaves it alone and says which one to use."""
    (tmp_path / "conftest.py").write_text("def pytest_addoption(parser):\n    parser.addoption('--scenario')\n")
    done = run(tmp_path, "--signet-conformance", "--target", "reference", "--scenario", "theirs", "--co", "-q")
    assert done.status == 0, done.out + done.err
    assert "this repository owns --scenario; use --signet-scenario" in done.err
