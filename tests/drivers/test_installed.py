"""What an installer left of a memory server, as the harness reads it from its settings and its plugins."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.drivers.hosts.installed import mcp_command, offered_tools, refused_servers
from signet_conformance.drivers.hosts.protocol import Skipped
from signet_conformance.targets.face import FOLDER

CODEX: dict[str, Any] = json.loads((FOLDER / "codex-0.169.json").read_bytes())
TOOLS = {"memory_search": 1, "memory_store": 2, "secret_exec": 3}


def configured(home: Path, text: str) -> Path:
    """A home with these settings of Codex."""
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text(text)
    return home


@pytest.mark.parametrize(
    ("members", "left"),
    [
        ("", [*TOOLS]),
        ('disabled_tools = ["memory_store"]', ["memory_search", "secret_exec"]),
        ('enabled_tools = ["memory_store", "memory_search"]', ["memory_search", "memory_store"]),
        ('enabled_tools = ["memory_store"]\ndisabled_tools = ["memory_store"]', []),
        ('disabled_tools = "memory_store"', [*TOOLS]),
    ],
)
def test_the_settings_say_which_tools_are_left_to_the_model(members: str, left: list[str], tmp_path: Path) -> None:
    """Codex takes the tools of a server that are enabled and not disabled; a member that is no list is none."""
    home = configured(tmp_path, f'[mcp_servers.signet]\ncommand = "signet-mcp"\n{members}\n')
    assert list(offered_tools(home, CODEX, TOOLS)) == left


def test_a_plugin_brings_the_server_that_the_settings_lack(tmp_path: Path) -> None:
    """The settings win where both have it; without either there is none."""
    home = configured(tmp_path, '[plugins."signet@local"]\nenabled = true\n')
    with pytest.raises(Skipped, match="no memory server is installed"):
        mcp_command(home, CODEX)
    plugin = home / ".codex/plugins/cache/local/signet/0.1.0"
    plugin.mkdir(parents=True)
    (plugin / ".mcp.json").write_text(json.dumps({"mcpServers": {"signet": {"command": "of-the-plugin"}}}))
    assert mcp_command(home, CODEX) == (["of-the-plugin"], {})
    (home / ".codex/config.toml").write_text('[plugins."signet@local"]\n[mcp_servers.signet]\ncommand = "own"\n')
    assert mcp_command(home, CODEX) == (["own"], {})


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ('command = ["signet-mcp"]', ["invalid type: sequence, expected a string (in mcp_servers.signet.command)"]),
        ('command = "signet-mcp"', []),
        ('url = "http://127.0.0.1:3850/mcp"', []),
    ],
)
def test_a_command_that_the_host_cannot_read_is_refused(settings: str, expected: list[str], tmp_path: Path) -> None:
    """Codex reads no settings at all where the command of a server is a list."""
    home = configured(tmp_path, f"[mcp_servers.signet]\n{settings}\n")
    assert [row["words"] for row in refused_servers(home, CODEX)] == expected
