"""How processes are found that carry a tag."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from signet_conformance.children.environment import TAG, clean_environment, new_tag, tagged_processes

WAITS = "import sys; sys.stdin.read()"


def test_a_process_is_found_whose_id_was_an_older_ones() -> None:
    """Ids come again: what is known of the older process says nothing of the one that has its id now."""
    tag = new_tag()
    environment = {**os.environ, TAG: tag}
    with subprocess.Popen([sys.executable, "-c", WAITS], stdin=subprocess.PIPE, env=environment) as child:
        # As if the process that psutil keeps by this id had begun eleven days before.
        (kept,) = [process for process in psutil.process_iter() if process.pid == child.pid]
        began = kept.create_time() - 1e6
        vars(kept).update(_create_time=began, _ident=(child.pid, began))
        (found,) = tagged_processes(tag)
        assert (found.pid, found.is_running()) == (child.pid, True)
        child.communicate()


def test_a_child_with_a_home_of_its_own_finds_the_toolchain_of_rust(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the user's variables, or else below the user's home; what is not installed is not named."""
    rustup, elsewhere = tmp_path / "user" / ".rustup", tmp_path / "elsewhere"
    for folder in (rustup, elsewhere):
        folder.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.delenv("RUSTUP_HOME", raising=False)
    monkeypatch.delenv("CARGO_HOME", raising=False)
    found = clean_environment(tmp_path / "child")
    assert (found["HOME"], found["RUSTUP_HOME"]) == (str(tmp_path / "child"), str(rustup))
    assert "CARGO_HOME" not in found
    monkeypatch.setenv("CARGO_HOME", str(elsewhere))
    assert clean_environment(tmp_path / "child")["CARGO_HOME"] == str(elsewhere)
