"""Hosts for hooks, memory servers and Python providers: a conforming connector passes, a broken one is found out."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from signet_conformance.finding import Verdict

from .conftest import FIXTURES, Broken, Made

HOOKS = {
    "SessionStart": "session-start",
    "UserPromptSubmit": "user-prompt-submit",
    "SessionEnd": "session-end",
}


def settings(folder: Path) -> str:
    """A Claude Code settings file whose hooks run the fixture."""
    program = shlex.join([sys.executable, str(FIXTURES / "hook.py")])
    hooks = {
        event: [{"hooks": [{"type": "command", "command": f"{program} {operation}", "timeout": 30}]}]
        for event, operation in HOOKS.items()
    }
    path = folder / "settings.json"
    path.write_text(json.dumps({"hooks": hooks}))
    return str(path)


@pytest.mark.parametrize("mode", ["conforming", "misnames"])
def test_command_hooks(mode: str, made: Made, broken: Broken, tmp_path: Path) -> None:
    """Hooks are run with the harness's JSON; one that sends the prompt under a wrong name is found out."""
    target = made("claude-code", mode=mode, config=settings(tmp_path), capabilities=["session-start"])
    found = broken(target, ("plain", "two-tasks"))
    expected = {} if mode == "conforming" else {"SIG-PROMPT-001": Verdict.FAIL, "SIG-PROMPT-002": Verdict.FAIL}
    assert found == expected


@pytest.mark.parametrize("mode", ["conforming", "drops-agent"])
def test_python_provider(mode: str, made: Made, broken: Broken) -> None:
    """A provider that leaves its agent out of pre-compaction breaks the agent requirements, a whole one none."""
    found = broken(made("hermes-agent", mode=mode, module=str(FIXTURES / "hermes_conforming" / "__init__.py")))
    expected = {} if mode == "conforming" else {"SIG-AGENT-001": Verdict.FAIL, "SIG-AGENT-002": Verdict.FAIL}
    assert found == expected


@pytest.mark.parametrize("mode", ["conforming", "drops-agent"])
def test_memory_server(mode: str, made: Made, broken: Broken) -> None:
    """A memory server that drops the agent of its calls is found out, one that sends it passes."""
    target = made("mcp", mode=mode, module=str(FIXTURES / "mcp_server.py"), runtime=sys.executable)
    found = broken(target, ("tools", "interleaved"))
    assert found == ({} if mode == "conforming" else {"SIG-AGENT-002": Verdict.FAIL})
