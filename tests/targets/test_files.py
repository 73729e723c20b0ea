"""What runs a connector's own programs, which hooks start anew each time."""

from __future__ import annotations

from pathlib import Path

import pytest

from signet_conformance import targets
from signet_conformance.targets.files import program_command


def program(folder: Path, name: str, says: str) -> Path:
    """A program that says its version."""
    path = folder / name
    path.write_text(f"#!/bin/sh\necho {says}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("version", "file", "runs"),
    [
        ("v22.1.0", "cli.js", "node"),
        ("v24.21.0", "cli.js", "node"),
        ("v20.20.2", "cli.js", "bun"),
        ("v22.0.9", "cli.js", "bun"),
        ("v24.21.0", "cli.ts", "bun"),
    ],
)
def test_a_node_that_keeps_what_it_compiled_runs_hooks(
    version: str, file: str, runs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From 22.1 on it comes before bun, with a folder for what it keeps; TypeScript is bun's."""
    programs = {name: program(tmp_path, name, says) for name, says in (("node", version), ("bun", "1.4.5"))}
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / ".git").mkdir()
    command = program_command(targets.load("codex", tmp_path), tmp_path / file)
    kept = ["env", f"NODE_COMPILE_CACHE={tmp_path / 'cache' / 'signet-conformance' / 'compiled'}"]
    assert command == [*(kept if runs == "node" else []), str(programs[runs]), str(tmp_path / file)]
