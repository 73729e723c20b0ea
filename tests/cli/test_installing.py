"""A remedy that installs something names what the kit itself was installed from."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import signet_conformance
from signet_conformance import errors
from signet_conformance.contract import schemas_folder
from signet_reference_harness import errors as harness_errors
from tests.support.drives import PLAIN


class Installed(metadata.Distribution):
    """An installation of the kit as pip leaves it, with pip's note of its source."""

    def __init__(self, direct_url: str | None) -> None:
        self._direct_url = direct_url

    def read_text(self, filename: str) -> str | None:
        return self._direct_url if filename == "direct_url.json" else None

    def locate_file(self, path: object) -> metadata.SimplePath:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("direct_url", "command"),
    [
        (json.dumps({"url": "file:///src/the%20kit", "dir_info": {}}), "pip install '/src/the kit[codings]'"),
        (json.dumps({"url": "file:///kit.whl", "archive_info": {}}), "pip install '/kit.whl[codings]'"),
        (json.dumps({"url": "https://kit.invalid/kit.whl"}), "pip install 'signet-conformance[codings]'"),
        (None, "pip install 'signet-conformance[codings]'"),
        ("torn", "pip install 'signet-conformance[codings]'"),
    ],
)
def test_the_source_of_the_kit_is_named(monkeypatch: pytest.MonkeyPatch, direct_url: str | None, command: str) -> None:
    monkeypatch.setattr(metadata, "distribution", lambda _: Installed(direct_url))
    assert errors.pip_install("codings") == command
    assert harness_errors.pip_install("codings") == command


def test_the_kit_itself_is_installed_from_its_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "distribution", lambda _: Installed(json.dumps({"url": "file:///src/kit"})))
    assert errors.pip_install() == "pip install /src/kit"


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        (None, "the schemas folder is missing"),
        ("operations.json", "cannot be read"),
        ("requirements/END.json", "cannot be read"),
        ("versions/0.145.json", "cannot be read"),
        ("routes/0.145.json", "cannot be read"),
    ],
)
def test_a_damaged_installation_is_named_with_its_remedy(tmp_path: Path, damaged: str | None, message: str) -> None:
    """A missing or torn file of the kit is reported as such, not as a crash."""
    package = tmp_path / "signet_conformance"
    source = Path(str(signet_conformance.__file__)).parent
    shutil.copytree(source, package, ignore=shutil.ignore_patterns("_schemas", "__pycache__"))
    if damaged is not None:
        shutil.copytree(schemas_folder(), package / "_schemas")
        (package / "_schemas" / damaged).write_bytes(b"{")
    program = "import sys; from signet_conformance.cli import main; sys.exit(main())"
    (tmp_path / "plain.json").write_text(json.dumps(PLAIN))
    words = ["run", "reference", "--scenario", "plain.json"]
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program, *words], env=environ, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    where = package if damaged is None else package / "_schemas" / damaged
    assert (done.returncode, done.stdout) == (2, "")
    assert f"error: {where}: {message}" in done.stderr
    assert done.stderr.rstrip().endswith("--force-reinstall")
    assert "Traceback" not in done.stderr
