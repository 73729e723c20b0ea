"""Facts about how a lane pins the kit that wrote it."""

from __future__ import annotations

import json
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.github_action import workflow

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(name="installed")
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Fake pip's note of the kit's source, with the folder of a real distribution on a path of its own."""

    def note(noted: object) -> None:
        folder = tmp_path / "signet_conformance-0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text("Name: signet-conformance\nVersion: 0\n")
        if noted is not None:
            (folder / "direct_url.json").write_text(json.dumps(noted))
        monkeypatch.setattr(metadata, "distribution", lambda _name: metadata.PathDistribution(folder))

    return note


@pytest.mark.parametrize(
    "address",
    ["https://github.com/someone/kit", "https://github.com/someone/kit.git", "ssh://git@github.com/someone/kit.git"],
)
def test_pip_notes_the_commit(installed: Any, address: str) -> None:
    """A kit that pip installed from a repository is pinned to the commit that pip took."""
    installed({"url": address, "vcs_info": {"vcs": "git", "commit_id": COMMIT}})
    assert workflow.installed_pin() == f"someone/kit@{COMMIT}"


@pytest.mark.parametrize(
    "noted",
    [
        None,
        {"url": "https://git.example/someone/kit", "vcs_info": {"vcs": "git", "commit_id": COMMIT}},
        {"url": "https://github.com/someone/kit", "vcs_info": {"vcs": "git", "commit_id": "main"}},
        {"url": "https://github.com/someone/kit/../../x", "vcs_info": {"vcs": "git", "commit_id": COMMIT}},
        {"url": "file:///nowhere/at/all", "dir_info": {}},
        {"url": "https://files.example/kit.whl", "archive_info": {}},
    ],
)
def test_another_source_is_no_pin(installed: Any, noted: object) -> None:
    """A package index, an archive, another host and a folder without a repository give no pin."""
    installed(noted)
    assert workflow.installed_pin() is None


def test_a_checkout_is_pinned_to_its_commit(installed: Any, tmp_path: Path) -> None:
    """A kit installed from a clone is pinned to the clone's commit at its remote."""
    clone = tmp_path / "a clone"
    clone.mkdir()
    for words in (
        ["init", "-q"],
        ["config", "remote.origin.url", "git@github.com:someone/kit.git"],
        ["-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "--allow-empty", "-m", "first"],
    ):
        subprocess.run(["/usr/bin/env", "git", "-C", str(clone), *words], check=True)
    installed({"url": clone.as_uri(), "dir_info": {"editable": True}})
    pin = workflow.installed_pin()
    assert pin is not None
    assert pin.startswith("someone/kit@")
    assert len(pin) == len("someone/kit@") + 40
