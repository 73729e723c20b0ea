"""A release is one version, and what is built holds what it needs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.tools import tool

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def release() -> ModuleType:
    return tool("release")


def test_all_parts_are_of_one_version(release: ModuleType) -> None:
    assert list(release.other_versions(f"v{release.version()}")) == []


def test_another_version_is_named(release: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "conformance" / "npm").mkdir(parents=True)
    (tmp_path / "conformance" / "npm" / "package.json").write_text(json.dumps({"version": "9.9.9"}))
    (tmp_path / "CHANGELOG.md").write_text("# Changes\n")
    said = "\n".join(release.other_versions("v9.9.8", tmp_path))
    assert "the tag v9.9.8 is not v" in said
    assert "package.json says 9.9.9" in said
    assert "CHANGELOG.md has no section" in said


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not on PATH")
def test_a_dry_run_builds_and_looks_into_each_part(
    release: ModuleType, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert release.main(["--dry-run", "--out", str(tmp_path / "dist")]) == 0
    assert len(list((tmp_path / "dist").iterdir())) == 3
    assert capfd.readouterr().out.count(" bytes") == 3


def test_a_folder_that_is_there_is_left_alone(release: ModuleType, tmp_path: Path) -> None:
    assert release.main(["--dry-run", "--out", str(tmp_path)]) == 1
