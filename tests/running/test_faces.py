"""A run in each host release that the kit plays: from the command line, under pytest, in a lane."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from signet_conformance.running.request import worst
from tests.support.drives import PLAIN, Drive
from tests.support.inner_pytest import Finished
from tests.support.repository import Repository

PLUGIN = Path(__file__).parents[1] / "drivers" / "fixtures" / "openclaw_plugin.mjs"
SETTINGS = f"""
[targets.mine]
driver = "node-plugin"
face = "openclaw-2026.6.1"
module = "{PLUGIN}"
agents = ["atlas-agent"]
harness = "openclaw"
env = {{FIXTURE_MODE = "MODE"}}
"""
RELEASES = ("2026.2.23", "2026.3.28", "2026.6.1", "2026.9.6")
FACES = tuple(f"openclaw-{release}" for release in RELEASES)


@pytest.fixture(name="repository")
def make_repository(tmp_path: Path) -> Path:
    """A repository with an OpenClaw plugin, and a scenario of one session."""
    if shutil.which("node") is None:
        pytest.skip("node is not on PATH")
    (tmp_path / "signet-conformance.toml").write_text(SETTINGS.replace("MODE", "conforming"))
    (tmp_path / "plain.json").write_text(json.dumps(PLAIN))
    return tmp_path


def ran(folder: Path, *words: str) -> Finished:
    """Run `signet-conformance run mine` with these options, through the one scenario."""
    return Drive(folder).command("run", "mine", "--scenario", "plain.json", *words)


def test_run_plays_every_face_apart(repository: Path) -> None:
    """Each has verdicts, a closing line and a report of its own, which says what was played and what is newer."""
    done = ran(repository, "--face", "all", "--report", "report")
    assert done.status == 0, done.out + done.err
    newer = {release: list(RELEASES[n:]) for n, release in enumerate(RELEASES, start=1)}
    assert [line for line in done.out.splitlines() if line.startswith("the kit played ")] == [
        f"the kit played openclaw {release}" + (f", and knows of {', '.join(newer[release])}" if newer[release] else "")
        for release in RELEASES
    ]
    played = [json.loads((repository / "report" / face / "report.json").read_text())["played"] for face in FACES]
    assert played == [
        [{"host": "openclaw", "release": release, "newer": newer[release], "real": False}] for release in RELEASES
    ]
    assert sorted(path.name for path in (repository / "report").iterdir()) == list(FACES)


def test_run_plays_the_face_that_is_named(repository: Path) -> None:
    """By its release too; the heading says what is played."""
    done = ran(repository, "--face", "2026.9.6")
    assert done.status == 0, done.out + done.err
    assert done.err.splitlines()[0] == "target mine, in openclaw 2026.9.6"
    assert "the kit played openclaw 2026.9.6\n" in done.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--face", "2027.1"), "--face: no face is called '2027.1'"),
        (
            ("--face", "all", "--write-baseline", "b.json", "--reason", "r"),
            "--write-baseline: one file cannot be",
        ),
    ],
)
def test_face_that_cannot_be_asked_for(words: tuple[str, ...], said: str, repository: Path) -> None:
    """Nothing is driven, and nothing is written."""
    refused = ran(repository, *words)
    assert refused.status == 2
    assert said in refused.err
    assert not (repository / "b.json").exists()


def test_pytest_has_items_for_every_face(repository: Path) -> None:
    """Each face has items of its own and a section of its own, on however many workers the items are judged."""
    words = ("--target", "mine", "--face", "all", "--scenario", "plain.json", "-rA", "-n", "2")
    done = Repository(repository).conform(*words, "-k", "SIG-START-001")
    assert done.status == 0, done.everything
    for face in FACES:
        assert f"PASSED signet-conformance/mine@{face}::SIG-START-001" in done.out
        assert f"signet conformance: {face}" in done.out


def test_faces_may_be_picked_by_their_items(repository: Path) -> None:
    """A face without an item is not played, and does not count."""
    words = ("--target", "mine", "--face", "all", "--scenario", "plain.json", "-rA")
    done = Repository(repository).conform(*words, "-k", "(2026.3.28 or 2026.9.6) and START-001")
    assert done.status == 0, done.everything
    for face in FACES:
        is_picked = face in ("openclaw-2026.3.28", "openclaw-2026.9.6")
        assert (f"PASSED signet-conformance/mine@{face}::SIG-START-001" in done.out) is is_picked
        assert (f"signet conformance: {face}" in done.out) is is_picked


@pytest.mark.parametrize(
    ("statuses", "expected"), [([0], 0), ([0, 3], 3), ([3, 1], 1), ([1, 4], 4), ([2], 2), ([0, 0], 0)]
)
def test_status_of_several_runs_is_the_worst(statuses: list[int], expected: int) -> None:
    """That not all could be judged counts before a breach, a breach before a run that tested nothing."""
    assert worst(statuses) == expected
