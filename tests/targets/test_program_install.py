"""What the registry's client is asked for when a program is installed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from signet_conformance.targets.program import PLACE_VARIABLE, find_program_profile
from signet_conformance.targets.program_install import install

CLIENT = """#!/bin/sh
echo "$@" > "{folder}/asked"
while [ "$1" != --prefix ]; do shift; done
mkdir -p "$2/node_modules/{package}"
echo '{{"version": "{release}"}}' > "$2/node_modules/{package}/package.json"
"""


@pytest.mark.parametrize(
    ("name", "release", "asked"),
    [("openclaw", None, "openclaw@latest"), ("openclaw", "2026.6.1", "openclaw@2026.6.1"), ("pi", None, None)],
)
def test_a_program_with_a_node_of_its_own_is_not_chosen_by_that_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, release: str | None, asked: str | None
) -> None:
    """Its newest release is asked for by name; where this machine's node runs it, npm picks one that it can run."""
    profile = find_program_profile(name).profile
    client = tmp_path / "npm"
    client.write_text(CLIENT.format(folder=tmp_path, package=profile.package, release=release or "9.9.9"))
    client.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv(PLACE_VARIABLE, str(tmp_path / "programs"))
    made = install(find_program_profile(name, release))
    assert made.release == (release or "9.9.9")
    assert (asked or profile.package) in (tmp_path / "asked").read_text().split()
