"""What a target needs: each thing is found, or missing with the way to get it, or a note on the harness."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from signet_conformance import targets
from signet_conformance.drivers.launch import command_line
from signet_conformance.errors import TargetError
from signet_conformance.targets.doctor import Need, examine


def needs(name: str, folder: Path, text: str = "") -> list[Need]:
    """What a target needs in a repository with these settings and nothing else."""
    (folder / "signet-conformance.toml").write_text(text or "[targets]\n")
    return list(examine(targets.load(name, folder)))


@pytest.mark.parametrize("name", targets.names())
def test_every_target_can_be_examined(name: str, tmp_path: Path) -> None:
    """Whatever the machine has, each need is found or comes with a remedy; only the reference is whole everywhere."""
    found = needs(name, tmp_path)
    assert found
    assert all(need.found is not None or need.remedy for need in found)
    assert any(need.found is None for need in found) is (name != "reference")


def test_connector_that_is_not_there(tmp_path: Path) -> None:
    """What is missing says where it was looked for, how it is built, and which setting names it."""
    (missing,) = [need for need in needs("kimi", tmp_path) if need.found is None and need.what == "the connector"]
    assert "integrations/kimi/connector/dist/index.js" in str(missing.remedy)
    assert "bun run build" in str(missing.remedy)
    assert "targets.kimi" in str(missing.remedy)


def test_harness_that_nobody_watched(tmp_path: Path) -> None:
    """What a face had to settle without a running harness is told, with the way to correct it."""
    notes = [f"{need.what}: {need.found}" for need in needs("muse-code", tmp_path) if need.note]
    assert any("not against a running Muse Code" in note for note in notes)
    assert any("set face to a .json file of your own" in note for note in notes)


def test_target_that_only_its_author_can_drive(tmp_path: Path) -> None:
    """A shipped target without a program says what the author has to write, also when a run asks for it."""
    text = '[targets.mine]\nbuild = "write a driver program"\n'
    assert needs("mine", tmp_path, text) == [
        Need("a program that speaks signet-driver/1", None, "write a driver program")
    ]
    with pytest.raises(TargetError, match="no program drives mine yet") as caught:
        command_line(targets.load("mine", tmp_path))
    assert caught.value.remedy == "write a driver program"


def test_program_that_is_not_installed(tmp_path: Path) -> None:
    """A command whose program is not on PATH is missing; one that is there is found."""
    (need,) = needs("mine", tmp_path, '[targets.mine]\ncommand = ["no-such-program-here"]\n')
    assert (need.found, "no-such-program-here is not on PATH" in str(need.remedy)) == (None, True)
    (need,) = needs("mine", tmp_path, '[targets.mine]\ncommand = ["{python}", "driver.py"]\n')
    assert need.found == f"{sys.executable} driver.py"


def test_file_of_hooks(tmp_path: Path) -> None:
    """Where the settings name the file of hooks, that is what has to be there."""
    text = '[targets.codex]\nconfig = "hooks.json"\n'
    assert any(need.found is None and "hooks.json" in str(need.remedy) for need in needs("codex", tmp_path, text))
    (tmp_path / "hooks.json").write_text("{}")
    assert any(need.found == str(tmp_path / "hooks.json") for need in needs("codex", tmp_path, text))
