"""Programs that people run: their profiles, and how a target is put into one."""

from __future__ import annotations

from pathlib import Path

import pytest

from signet_conformance import targets
from signet_conformance.errors import NothingTestedError, TargetError, UsageError
from signet_conformance.running.request import DrivenRequest
from signet_conformance.targets.program import INSTALLED, PLACE_VARIABLE, find_program_profile, program_names
from signet_conformance.targets.real import HarnessChoice, for_each_agent, options_for, with_harness


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of installed programs, empty."""
    monkeypatch.setenv(PLACE_VARIABLE, str(tmp_path))
    return tmp_path


def _install(place: Path, name: str, release: str) -> None:
    (place / name / release).mkdir(parents=True)
    (place / name / release / INSTALLED).touch()


@pytest.mark.parametrize("name", program_names())
def test_each_profile_plays_the_program_of_its_name(name: str) -> None:
    """A profile keeps its schema, and its name is that of its file and of a harness that targets are made for."""
    profile = find_program_profile(name).profile
    assert profile.name == name
    assert name in targets.names()


def test_the_newest_that_is_installed_is_driven(place: Path) -> None:
    """Without a release the newest is taken, by its numbers; what was not installed to the end does not count."""
    for release in ("0.9.2", "0.73.1"):
        _install(place, "pi", release)
    (place / "pi" / "1.0.0").mkdir()
    target = with_harness(targets.load("pi"), HarnessChoice("real"), "--harness")
    assert target.real is not None
    assert target.real.release == "0.73.1"
    assert options_for(target) == ("--harness", "real", "--harness-version", "0.73.1")


@pytest.mark.parametrize("release", [None, "0.54.2"])
def test_what_is_not_installed_is_not_applicable(place: Path, release: str | None) -> None:
    """The message says how the program is installed, and that nothing was tested is status 3."""
    _install(place, "pi", "0.73.1") if release else None
    with pytest.raises(NothingTestedError, match="NOT-APPLICABLE: pi") as refused:
        with_harness(targets.load("pi"), HarnessChoice("real", release), "--harness")
    assert "--install-harness" in str(refused.value.remedy)
    assert (release or "") in str(refused.value.remedy)
    assert refused.value.exit_status == 3


def test_no_program_is_installed_for_a_connector_that_is_missing(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connector is looked for before a download that may take minutes."""
    monkeypatch.setenv("PATH", "")
    with pytest.raises(TargetError, match="the connector pi is not found"):
        with_harness(targets.load("pi", place), HarnessChoice("real", install=True), "--harness")
    assert not (place / "pi").exists()


def test_a_run_says_which_real_program_it_drives(place: Path) -> None:
    """Not the release whose face the fake lane plays."""
    _install(place, "openclaw", "2026.9.6")
    target = with_harness(targets.load("openclaw"), HarnessChoice("real"), "--harness")
    asked = DrivenRequest(folder=place, target=target)
    assert asked.describe_host("--face") == "the real openclaw 2026.9.6"


def test_a_target_without_a_program_is_refused() -> None:
    """The reference harness is no program that people install, and sdk's harness has no profile."""
    for name in ("reference", "sdk"):
        with pytest.raises(TargetError):
            with_harness(targets.load(name), HarnessChoice("real"), "--harness")


@pytest.mark.parametrize("choice", [HarnessChoice("unreal"), HarnessChoice(None, "1.0"), HarnessChoice(install=True)])
def test_a_choice_without_sense_is_refused(choice: HarnessChoice) -> None:
    """An unknown word, or a release without a real program."""
    with pytest.raises(UsageError) as refused:
        with_harness(targets.load("pi"), choice, "--harness")
    assert refused.value.remedy


@pytest.mark.parametrize(("agents", "rows"), [((), []), (("iris", "otto"), [{"id": "iris"}, {"id": "otto"}])])
def test_settings_name_the_agents_that_the_target_declares(agents: tuple[str, ...], rows: list[dict[str, str]]) -> None:
    """In OpenClaw's own settings, wherever a list speaks of an agent; everything else stays."""
    settings = find_program_profile("openclaw").profile.settings[".openclaw/openclaw.json"]
    made = for_each_agent(settings, agents)
    assert made["agents"]["list"] == rows
    assert {**made, "agents": {**made["agents"], "list": settings["agents"]["list"]}} == settings
