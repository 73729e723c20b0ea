"""Targets whose connectors are the fixtures beside this file, and runs of them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from signet_conformance import engine, trace
from signet_conformance.children import forks
from signet_conformance.children.environment import clean_environment
from signet_conformance.drivers.launch import launch
from signet_conformance.finding import Verdict
from signet_conformance.rules import run_rules
from signet_conformance.running.recorded_daemon import RecordedDaemon
from signet_conformance.scenarios.scenario import Scenario, installed, scripted
from signet_conformance.targets import Target, load

FIXTURES = Path(__file__).parent / "fixtures"
SCENARIOS = ("plain", "compaction", "interleaved", "daemon-refuses")

Made = Callable[..., Target]
Recorded = Callable[..., Sequence[Path]]
Broken = Callable[..., Mapping[str, Verdict]]

START = {"step": "start", "session": "s1", "agent": "atlas-agent", "project": "/workspace/atlas"}
PROMPT = {"step": "prompt", "session": "s1", "text": "Which database?", "reply": "PostgreSQL."}


of_the_host = pytest.mark.parametrize("runtime", ["node"], indirect=True)
"""What a host takes of a plugin, and when it calls it, is decided by the kit's own code: one program shows it."""


def performed(target: Target, home: Path, steps: list[Mapping[str, Any]], **env: str) -> list[Mapping[str, Any]]:
    """The results of some steps, with nothing listening where the daemon would be."""
    return greeted(target, home, steps, **env)[1]


def greeted(
    target: Target, home: Path, steps: list[Mapping[str, Any]], **env: str
) -> tuple[Mapping[str, Any], list[Mapping[str, Any]]]:
    """What the connector's driver says of itself, and the results of some steps."""
    home.mkdir()
    given = clean_environment(home, **{"SIGNET_DAEMON_URL": "http://127.0.0.1:1", **env})
    driver = launch(target, given, str(home), 60.0)
    try:
        about = driver.hello()
        return about, [driver.perform(step, lambda _event: None) for step in steps]
    finally:
        driver.close()


def recordings(recorded_daemon: RecordedDaemon, folder: Path, scenarios: Sequence[Scenario]) -> Sequence[Path]:
    """The recordings of some scenarios, each performed by a connector of its own; none of them may break off."""
    folder.mkdir()
    paths = [folder / f"{scenario.name}.jsonl" for scenario in scenarios]
    for scenario, out in zip(scenarios, paths, strict=True):
        assert recorded_daemon.perform(scenario, recorded_daemon.launch(scenario.env), out) is None
    return paths


@pytest.fixture(params=["node", "bun"])
def runtime(request: pytest.FixtureRequest) -> str:
    """Where a program that runs JavaScript is, each in turn; a test is skipped by name where there is none."""
    program = shutil.which(request.param)
    if program is None:
        pytest.skip(f"{request.param} is not on PATH")
    return program


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """A target with the profile of a shipped one, and a fixture or the `code` of a module for its connector."""

    def make(name: str, *, mode: str = "conforming", code: str | None = None, **own: Any) -> Target:
        if code is not None:
            own["module"] = str(tmp_path / "plugin.mjs")
            (tmp_path / "plugin.mjs").write_text(code)
        lines = [f"[targets.{name}]", *(f"{key} = {json.dumps(value)}" for key, value in own.items())]
        (tmp_path / "signet-conformance.toml").write_text("\n".join(lines) + f'\nenv = {{FIXTURE_MODE = "{mode}"}}\n')
        return load(name, tmp_path)

    return make


@pytest.fixture(scope="session")
def _shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RecordedDaemon, Path]]:
    home = tmp_path_factory.mktemp("recorded-daemon")
    recorded_daemon = RecordedDaemon(
        load("reference"), "embedded", home, canary="canary-5c1e07", token="sig_sk_" + "51" * 20
    )
    with forks.server():
        yield recorded_daemon, home / "home"
        recorded_daemon.close()


@pytest.fixture
def recorded(_shared: tuple[RecordedDaemon, Path], tmp_path: Path) -> Recorded:
    """Drives a target through scripted scenarios, or others, and gives their recordings in the folder `traces`.

    All tests share a daemon and a recorder, for they are most of what a scenario costs; a connector's home is new.
    """
    recorded_daemon, home = _shared

    def drive(target: Target, names: Sequence[str] = (), *others: Scenario) -> Sequence[Path]:
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir()
        recorded_daemon.target = target
        wanted = [scenario for scenario in (*scripted(), *installed()) if scenario.name in names]
        return recordings(recorded_daemon, tmp_path / "traces", [*wanted, *others])

    return drive


@pytest.fixture
def broken(recorded: Recorded) -> Broken:
    """Drives a target through some scripted scenarios; the requirements that it breaks, with their verdicts."""

    def drive(target: Target, names: Sequence[str] = SCENARIOS) -> Mapping[str, Verdict]:
        judged = engine.judge_run([trace.read(path) for path in recorded(target, names)])
        return {
            name: judgement.verdict
            for name, judgement in judged.together.items()
            if judgement.verdict in (Verdict.FAIL, Verdict.ERROR) and name not in run_rules()
        }

    return drive
