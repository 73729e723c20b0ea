"""What an installer left of a memory server or a plugin, as the harness reads it from its settings and its plugins."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.drivers.hosts.installed import (
    mcp_command,
    objections,
    offered_tools,
    plugin_rows,
    refused_servers,
)
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
    with pytest.raises(Skipped, match="no installed memory server is one that the harness starts"):
        mcp_command(home, CODEX)
    plugin = home / ".codex/plugins/cache/local/signet/0.1.0"
    plugin.mkdir(parents=True)
    (plugin / ".mcp.json").write_text(json.dumps({"mcpServers": {"signet": {"command": "of-the-plugin"}}}))
    assert mcp_command(home, CODEX) == (["of-the-plugin"], {})
    (home / ".codex/config.toml").write_text('[plugins."signet@local"]\n[mcp_servers.signet]\ncommand = "own"\n')
    assert mcp_command(home, CODEX) == (["own"], {})


def test_a_missing_file_of_servers_is_named_alike_in_every_home(tmp_path: Path) -> None:
    """Runs have a home for each worker: with its path in the reason, one cause would be told once for each."""
    with pytest.raises(Skipped) as skipped:
        mcp_command(tmp_path, CODEX)
    assert str(skipped.value) == "no memory server is installed: there is no .codex/config.toml"


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


OPENCODE = ".config/opencode/opencode.json"
UNASKED = {".config/opencode/plugins/acme.mjs": "export default 1", OPENCODE: {"plugin": ["./plugins/other.js"]}}
SLOT = {"slots": {"memory": "acme"}}
OFF = {"acme": {"enabled": False}}
ACME = {"id": "acme", "kind": "memory"}


@pytest.mark.parametrize(
    ("face", "left", "refused"),
    [
        ("opencode-1.18.33", UNASKED, "in ~/.config/opencode only plugins/*.js"),
        ("opencode-1.18.33", {**UNASKED, OPENCODE: {"plugin": ["./plugins/acme.mjs"]}}, None),
        ("opencode-1.18.33", {**UNASKED, OPENCODE: {"plugin": [["acme-opencode", {"at": 1}]]}}, None),
        ("opencode-1.18.33", {**UNASKED, OPENCODE: {"plugin": ["./acme.mjs"]}}, "it names the plugin ./acme.mjs, but"),
        ("opencode-1.18.33", {**UNASKED, OPENCODE: "{ /* comments */ }"}, "unknown"),
        ("opencode-1.18.33", {".config/opencode/plugin/acme.ts": "export default 1"}, None),
        ("opencode-1.18.33", {".config/opencode/AGENTS.md": "# Agents"}, "unknown"),
        ("pi-0.73", {".pi/agent/extensions/acme.mjs": "export default 1"}, "in ~/.pi/agent only extensions/*.js"),
        ("pi-0.73", {".pi/agent/extensions/acme/index.ts": "export default 1"}, None),
        (
            "oh-my-pi-13.19",
            {".omp/agent/extensions/acme.mjs": "1", ".omp/agent/config.yml": "extensions: []"},
            "unknown",
        ),
        ("hermes-agent-0.19", {".hermes/plugins/acme/__init__.py": ""}, "unknown"),
        ("openclaw-2026.2", {"plugins": ["acme"]}, "plugins: Invalid input: expected object, received array"),
        ("openclaw-2026.2", {"plugins": {"entries": {"acme": {}}}}, "acme is disabled: the memory slot is set to"),
        ("openclaw-2026.2", {"plugins": {**SLOT, "allow": ["other"]}}, "acme is disabled: not in allowlist"),
        ("openclaw-2026.2", {"plugins": {**SLOT, "allow": []}}, None),
        ("openclaw-2026.6.1", {"plugins": {**SLOT, "allow": ["other"]}}, None),
        ("openclaw-2026.2", {"plugins": {**SLOT, "entries": OFF}}, None),
        ("openclaw-2026.3", {"plugins": {**SLOT, "entries": OFF}}, "acme is disabled: disabled in config"),
        ("openclaw-2026.6.1", {"plugins": {**SLOT, "entries": OFF}}, "acme is disabled: disabled in config"),
        ("openclaw-2026.9.6", {"plugins": {**SLOT, "entries": OFF}}, "acme is disabled: disabled in config"),
        (
            "openclaw-2026.6.1",
            {"plugins": {"slots": {"memory": "other"}}},
            "acme is disabled: the memory slot is set to",
        ),
    ],
)
def test_a_plugin_is_where_its_host_looks_for_one(
    face: str, left: dict[str, Any], refused: str | None, tmp_path: Path
) -> None:
    """A place, a name in the settings or a switch that the host does not know is refused; what nothing tells is not."""
    files = {".openclaw/openclaw.json": left} if "plugins" in left else left
    for path in files:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    before = {OPENCODE: {"plugin": ["./plugins/other.js"]}}
    read = json.loads((FOLDER / f"{face}.json").read_bytes())
    rows = [*objections([*plugin_rows(tmp_path, before, {**before, **files}, read, ACME)], ())]
    words = [row.get("words") for row in rows] if rows else ["unknown"]
    assert len(words) == 1, rows
    assert words == [None] if refused is None else words[0].startswith(refused), rows


def test_each_rule_is_told_and_one_for_another_kind_of_plugin_says_nothing(tmp_path: Path) -> None:
    """A plugin of OpenClaw for something else needs no memory slot; the id of one without a manifest is not known."""
    face = json.loads((FOLDER / "openclaw-2026.2.json").read_bytes())
    files = {".openclaw/openclaw.json": {"plugins": {"allow": ["other"]}}}
    both = plugin_rows(tmp_path, {}, files, face, {"id": "acme", "kind": "memory"})
    assert [row["file"] for row in both] == [
        f".openclaw/openclaw.json: plugins.{at}" for at in ("allow", "slots.memory")
    ]
    (other,) = plugin_rows(tmp_path, {}, files, face, {"id": "other", "kind": "context-engine"})
    (unknown,) = plugin_rows(tmp_path, {}, files, face, {})
    assert other["accepted"] is unknown["accepted"] is True


BLOCKED = "blocked because non-bundled plugins must set plugins.entries.acme.hooks.allowConversationAccess=true"


@pytest.mark.parametrize(
    ("release", "events", "hooks", "words"),
    [
        ("2026.6.1", ["session_end", "agent_end"], {}, f'typed hook "agent_end" {BLOCKED}'),
        ("2026.6.1", ["agent_end"], {"allowConversationAccess": False}, f'typed hook "agent_end" {BLOCKED}'),
        ("2026.6.1", ["agent_end"], {"allowConversationAccess": True}, None),
        ("2026.6.1", ["before_prompt_build", "session_end"], {}, None),
        ("2026.9.6", ["before_prompt_build", "session_end"], {}, f'typed hook "before_prompt_build" {BLOCKED}'),
        ("2026.3", ["agent_end"], {}, None),
    ],
)
def test_openclaw_keeps_the_conversation_from_a_plugin_that_its_settings_do_not_trust(
    release: str, events: list[str], hooks: dict[str, bool], words: str | None, tmp_path: Path
) -> None:
    """Only a plugin that wants to hear it is held to that setting, in the releases that ask for it."""
    face = json.loads((FOLDER / f"openclaw-{release}.json").read_bytes())
    entry = {"enabled": True, **({"hooks": hooks} if hooks else {})}
    files = {".openclaw/openclaw.json": {"plugins": {**SLOT, "entries": {"acme": entry}}}}
    rows = [*objections([*plugin_rows(tmp_path, {}, files, face, ACME)], events)]
    assert [row["words"] for row in rows if not row["accepted"]] == ([] if words is None else [words])
    assert [row["file"] for row in rows if row["accepted"]] == [".openclaw/openclaw.json"]
