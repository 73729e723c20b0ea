"""Files of hooks: a harness that minds members it does not know refuses them, in its own words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.drivers.hosts.hook_settings import refusal
from signet_conformance.targets.face import FOLDER

HOOK = {"type": "command", "command": "signet hook session-start -H codex", "timeout": 20}


def told(face: str, data: dict[str, Any], folder: Path) -> str | None:
    """What the harness says of a file of hooks."""
    path = folder / "hooks.json"
    path.write_text(json.dumps(data))
    return refusal(path, json.loads((FOLDER / f"{face}.json").read_bytes()))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"hooks": {"SessionStart": [{"hooks": [HOOK]}]}}, None),
        ({"hooks": {"SessionStart": [{"matcher": "startup", "hooks": [HOOK]}]}, "description": "Signet"}, None),
        ({"_signet": True, "hooks": {}}, "unknown field `_signet`"),
        ({"hooks": {"Stop": [{"_signet": True, "hooks": [HOOK]}]}}, "unknown field `_signet`"),
        ({"hooks": {"Stop": [{"hooks": [{**HOOK, "once": True}]}]}}, "unknown field `once`"),
        ({"hooks": {"Stop": "odd"}}, None),
    ],
)
def test_codex_refuses_members_that_it_does_not_know(data: dict[str, Any], words: str | None, tmp_path: Path) -> None:
    """Codex 0.169.0 takes a file of hooks only where it knows every member, at each level."""
    assert told("codex-0.169", data, tmp_path) == words


def test_harness_that_is_not_known_to_mind_takes_every_file(tmp_path: Path) -> None:
    """Nobody saw Claude Code refuse a file for a member of it."""
    assert told("claude-code-2.1", {"_signet": True, "hooks": {}}, tmp_path) is None
