"""The stub of a harness's program on PATH: what it notes, answers and does with plugins, and whose hooks then run."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.drivers.hosts import host_program
from signet_conformance.drivers.hosts.hook_settings import (
    by_event,
    duplicates_in,
    enabled_plugins,
    hook_sources,
    plugin_servers,
)
from signet_conformance.targets.face import FOLDER

FACE: dict[str, Any] = json.loads((FOLDER / "codex-0.169.json").read_bytes())
HOOK = {"type": "command", "command": "acme hook prompt", "timeout": 5}
HOOKS = {"hooks": {"UserPromptSubmit": [{"hooks": [HOOK]}]}}


def ask(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the stub as an installer does."""
    host_program.put_on_path(FACE, home / "bin")
    return subprocess.run(
        [str(home / "bin" / "codex"), *words],
        env={"HOME": str(home), "PATH": "/usr/bin:/bin"}, input="", capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture
def marketplace(tmp_path: Path) -> Path:
    """A home whose settings name a marketplace with the plugin acme, as an installer writes it."""
    root = tmp_path / "market"
    files: dict[str, Any] = {
        ".agents/plugins/marketplace.json": {"plugins": [{"name": "acme", "source": {"path": "./plugins/acme"}}]},
        "plugins/acme/.codex-plugin/plugin.json": {"name": "acme", "version": "1.2.0", "hooks": "./hooks/hooks.json"},
        "plugins/acme/hooks/hooks.json": HOOKS,
        "plugins/acme/.mcp.json": {"mcpServers": {"acme": {"command": "acme-mcp"}}},
    }
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(json.dumps(content))
    settings = tmp_path / ".codex" / "config.toml"
    settings.parent.mkdir()
    settings.write_text(f'[marketplaces.local]\nsource_type = "local"\nsource = "{root}"\n')
    return tmp_path


def test_it_answers_as_the_face_says_and_notes_what_it_is_asked(tmp_path: Path) -> None:
    """Words, input and status of each call; what the face does not name is refused."""
    assert ask(tmp_path, "plugin", "--help").returncode == 0
    assert ask(tmp_path, "--version").stdout == "codex-cli 0.169.0\n"
    refused = ask(tmp_path, "frobnicate", "it")
    assert (refused.returncode, refused.stderr) == (2, "error: unrecognized subcommand 'frobnicate it'\n")
    words = "the installer asked `codex frobnicate it`, which the kit's stub of codex refuses"
    assert host_program.describe_refusals(tmp_path, FACE) == [words]
    noted = [(row["argv"], row["status"]) for row in host_program.read_questions(tmp_path)]
    assert noted == [(["plugin", "--help"], 0), (["--version"], 0), (["frobnicate", "it"], 2)]


def test_a_plugin_is_added_where_the_harness_finds_it(marketplace: Path) -> None:
    """Its hooks and servers count from then on; added again it stands once; removed it is gone."""
    for _ in range(2):
        added = ask(marketplace, "plugin", "add", "acme@local")
        root = marketplace / ".codex/plugins/cache/local/acme/1.2.0"
        assert added.stdout.splitlines()[-1] == f"Installed plugin root: {root}"
    assert list(enabled_plugins(marketplace, FACE)) == [("acme@local", root)]
    assert plugin_servers(marketplace, FACE) == {"acme": {"command": "acme-mcp"}}
    ask(marketplace, "plugin", "remove", "acme@local")
    assert list(enabled_plugins(marketplace, FACE)) == []


def test_a_plugin_of_another_name_than_its_manifest_s_is_refused(marketplace: Path) -> None:
    """The program compares the two, and keeps nothing."""
    manifest = marketplace / "market/plugins/acme/.codex-plugin/plugin.json"
    manifest.write_text(json.dumps({"name": "other"}))
    refused = ask(marketplace, "plugin", "add", "acme@local")
    assert refused.returncode == 1
    assert "plugin.json name `other` does not match marketplace plugin name `acme`" in refused.stderr
    assert list(enabled_plugins(marketplace, FACE)) == []


@pytest.mark.parametrize(
    ("plugin", "words"),
    [("acme@other", "marketplace `other` is not configured"), ("x@local", "plugin `x` was not found")],
)
def test_a_plugin_that_is_nowhere_is_refused(plugin: str, words: str, marketplace: Path) -> None:
    """As the program does: with a message and status 1, so that an installer falls back."""
    refused = ask(marketplace, "plugin", "add", plugin)
    assert refused.returncode == 1
    assert words in refused.stderr


def test_hooks_of_other_tools_are_none_of_the_connector_s(tmp_path: Path) -> None:
    """The kit puts them into the files before the installer runs: they do nothing."""
    other = {"type": "command", "command": ": acme-notes begin"}
    settings = tmp_path / "hooks.json"
    settings.write_text(
        json.dumps({"hooks": {"SessionStart": [{"hooks": [other]}], "Stop": [{"hooks": [HOOK, other]}]}})
    )
    hooks = by_event(hook_sources(tmp_path, settings, FACE))
    assert {event: [hook.command for hook in hooks[event]] for event in hooks} == {"Stop": ["acme hook prompt"]}


def test_a_hook_of_settings_and_of_a_plugin_stands_twice(marketplace: Path) -> None:
    """Each is named with both files; other events and other matchers of the same command are none."""
    ask(marketplace, "plugin", "add", "acme@local")
    settings = marketplace / ".codex" / "hooks.json"
    (alone,) = hook_sources(marketplace, settings, FACE)
    assert (alone.name, duplicates_in([alone])) == ("hooks.json of the plugin acme@local", [])
    settings.write_text(json.dumps(HOOKS))
    sources = hook_sources(marketplace, settings, FACE)
    expected = "the hooks of UserPromptSubmit in hooks.json and in hooks.json of the plugin acme@local"
    assert duplicates_in(sources) == [expected]
    other = {"SessionStart": [{"matcher": matcher, "hooks": [HOOK]} for matcher in ("startup", "resume")]}
    settings.write_text(json.dumps({"hooks": other}))
    assert duplicates_in(hook_sources(marketplace, settings, FACE)) == []
