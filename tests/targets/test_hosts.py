"""How a host is launched: with the programs that the connector calls by name, or not at all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from signet_conformance import targets
from signet_conformance.drivers.launch import command_line
from signet_conformance.errors import TargetError

CODEX = "integrations/codex/connector/dist/index.js"
CLI = "surfaces/cli/dist/cli.js"
SERVER = "dist/signetai/dist/mcp-stdio.js"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a built connector and nothing that it calls; PATH has node alone."""
    (tmp_path / "signet-conformance.toml").write_text("[targets]\n")
    place(tmp_path, CODEX)
    place(tmp_path, "bin/node")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path


def place(root: Path, *names: str) -> None:
    """Files that can be run, at these places of a repository."""
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)


@pytest.mark.parametrize(
    ("there", "nowhere"), [((), "signet"), ((SERVER,), "signet"), ((CLI,), "signet-mcp")], ids=["both", "cli", "server"]
)
def test_a_program_that_is_nowhere_is_not_blamed_on_the_connector(
    there: tuple[str, ...], nowhere: str, repository: Path
) -> None:
    """Nothing is driven where a program is neither built nor on PATH: its hooks could only fail."""
    place(repository, *there)
    with pytest.raises(TargetError, match=f": {nowhere}, which the connector calls by this name") as caught:
        command_line(targets.load("codex", repository))
    assert "bun run build" in str(caught.value.remedy)


def test_a_program_that_was_built_stands_before_that_of_path(repository: Path) -> None:
    """The host is given what was built, and takes the rest from PATH."""
    place(repository, CLI, "bin/signet", "bin/signet-mcp")
    given = json.loads(command_line(targets.load("codex", repository))[-1])
    assert given["programs"] == {"signet": [str(repository / "bin" / "node"), str(repository / CLI)]}


@pytest.mark.parametrize("setting", ['config = "hooks.json"', f'module = "{CODEX}"'], ids=["hooks", "connector"])
def test_a_file_of_the_author_s_may_call_no_program(setting: str, repository: Path) -> None:
    """Where settings name the file of hooks or the connector's, nobody knows which programs are called."""
    (repository / "signet-conformance.toml").write_text(f"[targets.codex]\n{setting}\n")
    given = json.loads(command_line(targets.load("codex", repository))[-1])
    assert given["programs"] == {}
