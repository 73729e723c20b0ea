"""Facts about the files of a connector that its author edits."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from signet_conformance import targets
from signet_conformance.errors import UsageError
from signet_conformance.targets.sources import SourceFiles

EXAMPLE = Path(__file__).parents[2] / "examples" / "driver-python"


def test_source_files_are_those_that_a_connector_is_made_of(tmp_path: Path) -> None:
    """What is installed, hidden, written by programs or by the kit is passed over."""
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True)
    for name in ("node_modules/a.js", ".git/b.py", "__pycache__/c.py", "signet-failures/d.json", "log.txt", ".e.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    (tmp_path / "own-venv").mkdir()
    (tmp_path / "own-venv" / "pyvenv.cfg").touch()
    files = SourceFiles(targets.load("example-python", tmp_path))
    assert len(files) == len(["connector.py", "driver.py", "signet-conformance.toml"])
    (tmp_path / "log.txt").write_text("more")
    (tmp_path / "new.py").touch()
    assert files.await_change() == [tmp_path / "new.py"]
    (tmp_path / "driver.py").unlink()
    assert files.await_change() == [tmp_path / "driver.py"]


def test_typescript_counts_once_it_is_compiled(tmp_path: Path) -> None:
    """Where the driver is JavaScript, a source that is saved begins no pass; what the compiler writes does."""
    shutil.copytree(EXAMPLE.with_name("driver-typescript"), tmp_path, dirs_exist_ok=True)
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "driver.js").touch()
    files = SourceFiles(targets.load("example-typescript", tmp_path))
    assert files.compiled
    (tmp_path / "src" / "connector.ts").write_text("// saved")
    (tmp_path / "dist" / "connector.js").write_text("// compiled")
    assert files.await_change() == [tmp_path / "dist" / "connector.js"]


def test_target_without_files_cannot_be_watched(tmp_path: Path) -> None:
    """A shipped target whose program is the kit's own has nothing that its author could save."""
    with pytest.raises(UsageError, match="so it cannot watch any"):
        SourceFiles(targets.load("reference", tmp_path))


def test_plugin_in_python_is_watched_beside_its_file(tmp_path: Path) -> None:
    """The nearest package.json above it may be that of a whole repository."""
    (tmp_path / "package.json").write_text("{}")
    (tmp_path / "plugin").mkdir()
    for name in ("plugin/provider.py", "other.py"):
        (tmp_path / name).touch()
    settings = '[targets.mine]\ndriver = "python-plugin"\nmodule = "plugin/provider.py"\n'
    (tmp_path / "signet-conformance.toml").write_text(settings)
    files = SourceFiles(targets.load("mine", tmp_path))
    assert set(files.places) == {tmp_path / "plugin", tmp_path / "signet-conformance.toml"}
