"""Where settings are looked for: their command is run."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from signet_conformance.targets import load
from signet_conformance.targets.files import first_of
from signet_conformance.targets.program_document import FilePlace
from signet_conformance.targets.settings import FILE, read_settings

SETTINGS = '[targets.mine]\ndriver = "process"\ncommand = "./evil"\n'
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


def repository(tmp_path: Path) -> Path:
    """A folder inside of a repository."""
    folder = tmp_path / "repository" / "packages" / "connector"
    folder.mkdir(parents=True)
    (tmp_path / "repository" / ".git").mkdir()
    return folder


def test_settings_of_the_repository_are_found_from_within(tmp_path: Path) -> None:
    """The nearest file at or above."""
    folder = repository(tmp_path)
    (tmp_path / "repository" / FILE).write_text(SETTINGS)
    assert read_settings(folder).path == tmp_path / "repository" / FILE


def test_settings_above_the_repository_are_not_looked_at(tmp_path: Path) -> None:
    """The search ends at its root."""
    folder = repository(tmp_path)
    (tmp_path / FILE).write_text(SETTINGS)
    assert read_settings(folder).targets == {}


@AS_ROOT
@pytest.mark.parametrize("place", ["repository", "repository/packages/connector"])
def test_settings_of_another_owner_are_not_read(tmp_path: Path, place: str) -> None:
    """Anybody may have put them into a folder that all can write to."""
    folder = repository(tmp_path)
    (tmp_path / place / FILE).write_text(SETTINGS)
    os.chown(tmp_path / place / FILE, 65534, 65534)
    assert read_settings(folder).targets == {}


@AS_ROOT
def test_settings_in_a_folder_of_another_owner_are_not_looked_at(tmp_path: Path) -> None:
    """Without a repository the search ends before such a folder."""
    folder = tmp_path / "theirs" / "mine"
    folder.mkdir(parents=True)
    (tmp_path / "theirs" / FILE).write_text(SETTINGS)
    os.chown(tmp_path / "theirs", 65534, 65534)
    assert read_settings(folder).targets == {}


@AS_ROOT
def test_a_link_of_another_owner_is_not_followed(tmp_path: Path) -> None:
    """It leads to settings of ours, and their `{root}` would be the folder in which the link stands."""
    folder = repository(tmp_path)
    (tmp_path / "elsewhere.toml").write_text(SETTINGS)
    link = tmp_path / "repository" / FILE
    link.symlink_to(tmp_path / "elsewhere.toml")
    assert read_settings(folder).targets != {}
    os.chown(link, 65534, 65534, follow_symlinks=False)
    assert read_settings(folder).targets == {}


@AS_ROOT
@pytest.mark.parametrize("theirs", ["dist/connector.mjs", "dist"])
def test_a_connector_of_another_owner_is_not_found(tmp_path: Path, theirs: str) -> None:
    """Nor one in a folder of another owner: what is found is run."""
    connector = tmp_path / "dist" / "connector.mjs"
    connector.parent.mkdir()
    connector.write_text("")
    target = replace(load("pi", tmp_path), root=tmp_path)
    places = [FilePlace(path="dist/connector.mjs")]
    assert first_of(target, places) == connector
    os.chown(tmp_path / theirs, 65534, 65534)
    assert first_of(target, places) is None


@AS_ROOT
def test_a_checkout_of_another_owner_is_one_s_own(tmp_path: Path) -> None:
    """In a container all of it belongs to the user outside."""
    folder = repository(tmp_path)
    (tmp_path / "repository" / FILE).write_text(SETTINGS)
    for path in (tmp_path / "repository", tmp_path / "repository" / FILE, folder.parent, folder):
        os.chown(path, 1001, 1001)
    assert read_settings(folder).path == tmp_path / "repository" / FILE
