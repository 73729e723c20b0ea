"""Hosts for hooks, memory servers and Python providers: a conforming connector passes, a broken one is found out."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from signet_conformance import engine, trace
from signet_conformance.finding import Verdict
from signet_conformance.reports.jsonreport import trace_entry
from signet_conformance.reports.remarks import remarks
from signet_conformance.runner import Run
from signet_conformance.scenarios.script import scripted

from .conftest import FIXTURES, START, Broken, Made, performed

PROMPT_TEXT = {"SIG-PROMPT-001": Verdict.FAIL, "SIG-PROMPT-002": Verdict.FAIL}

HOOKS = {
    "SessionStart": "session-start",
    "UserPromptSubmit": "user-prompt-submit",
    "SessionEnd": "session-end",
}


def settings(folder: Path) -> str:
    """A Claude Code settings file whose hooks run the fixture."""
    program = shlex.join([sys.executable, str(FIXTURES / "hook.py")])
    hooks = {
        event: [{"hooks": [{"type": "command", "command": f"{program} {operation} claude-code", "timeout": 30}]}]
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
    assert found == ({} if mode == "conforming" else PROMPT_TEXT)


def test_remarks_reach_the_recording(made: Made, tmp_path: Path) -> None:
    """What is off about the installed hooks stands in each recording once, and in the report of its trace."""
    declared = ["session-start", "user-prompt-submit", "session-end", "pre-compaction"]
    target = made("claude-code", config=settings(tmp_path), capabilities=declared)
    plain = [scenario for scenario in scripted() if scenario.name == "plain"]
    with Run(target, tmp_path / "traces", lanes=1) as run:
        assert [one.error for one in run.perform(plain)] == [None]
    recorded = trace.read(tmp_path / "traces" / "plain.jsonl")
    expected = ["no hook for PreCompact, though pre-compaction is declared"]
    assert list(remarks([recorded, recorded])) == expected
    assert trace_entry(engine.judge(recorded))["remarks"] == expected


def plain_list(folder: Path) -> str:
    """A Kimi configuration whose hooks run the fixture: a plain list of them, in TOML."""
    program = shlex.join([sys.executable, str(FIXTURES / "hook.py")])
    lines = []
    for event, operation in HOOKS.items():
        command = json.dumps(f"{program} {operation} kimi")
        lines += ["[[hooks]]", f'event = "{event}"', f"command = {command}", "timeout = 30"]
    path = folder / "config.toml"
    path.write_text("\n".join(lines))
    return str(path)


@pytest.mark.parametrize("mode", ["conforming", "misnames"])
def test_plain_list_of_hooks(mode: str, made: Made, broken: Broken, tmp_path: Path) -> None:
    """Kimi's hooks stand in a plain list; one that sends the prompt under a wrong name is found out."""
    target = made("kimi", mode=mode, config=plain_list(tmp_path), capabilities=["session-start"])
    assert broken(target, ("plain", "resume")) == ({} if mode == "conforming" else PROMPT_TEXT)


@pytest.mark.parametrize("mode", ["conforming", "misnames"])
def test_cleared_environment(mode: str, runtime: str, made: Made, broken: Broken) -> None:
    """Muse Code's hooks inherit nothing, so what the installer wrote into the command is all that they know."""
    hook = shlex.join([sys.executable, str(FIXTURES / "hook.py")])
    module = str(FIXTURES / "hooks_installer.mjs")
    target = made("muse-code", mode=mode, module=module, runtime=runtime, capabilities=["session-start"])
    target = replace(target, env={**target.env, "FIXTURE_HOOK": hook})
    assert broken(target, ("plain", "two-tasks")) == ({} if mode == "conforming" else PROMPT_TEXT)


def test_installer_that_forgets_the_address(runtime: str, made: Made, tmp_path: Path) -> None:
    """Where hooks inherit nothing, an address that the installer did not write down is not known to them."""
    hook = shlex.join([sys.executable, str(FIXTURES / "hook.py")])
    module = str(FIXTURES / "hooks_installer.mjs")
    target = made("muse-code", mode="forgets-address", module=module, runtime=runtime)
    target = replace(target, env={**target.env, "FIXTURE_HOOK": hook})
    (started,) = performed(target, tmp_path / "home", [START])
    (run,) = started["hooks"]
    assert run["status"] == 1
    assert "KeyError: 'SIGNET_DAEMON_URL'" in run["stderr"]


@pytest.mark.parametrize("mode", ["conforming", "drops-agent"])
def test_python_provider(mode: str, made: Made, broken: Broken) -> None:
    """A provider that leaves its agent out of pre-compaction breaks the agent requirements, a whole one none."""
    found = broken(made("hermes-agent", mode=mode, module=str(FIXTURES / "hermes_conforming" / "__init__.py")))
    expected = {} if mode == "conforming" else {"SIG-AGENT-001": Verdict.FAIL, "SIG-AGENT-002": Verdict.FAIL}
    assert found == expected


def test_memory_server_that_does_not_come_up(made: Made, tmp_path: Path) -> None:
    """A session whose server ends at its start goes on without it: its steps are skipped, with the reason."""
    target = made("mcp", mode="gives-up", module=str(FIXTURES / "mcp_server.py"), runtime=sys.executable)
    results = performed(target, tmp_path / "home", [START, {"step": "prompt", "session": "s1", "text": "hello"}])
    assert len(results) == 2
    for result in results:
        assert "without a memory server: the MCP server ended with status 1" in result["skipped"]


@pytest.mark.parametrize("mode", ["conforming", "drops-agent"])
def test_memory_server_in_javascript(mode: str, runtime: str, made: Made, broken: Broken) -> None:
    """The server's language does not matter: the same is found of one for node or bun."""
    target = made("mcp", mode=mode, module=str(FIXTURES / "mcp_server.mjs"), runtime=runtime)
    assert broken(target, ("tools",)) == ({} if mode == "conforming" else {"SIG-AGENT-002": Verdict.FAIL})


@pytest.mark.parametrize("mode", ["conforming", "drops-agent"])
def test_memory_server(mode: str, made: Made, broken: Broken) -> None:
    """A memory server that drops the agent of its calls is found out, one that sends it passes."""
    target = made("mcp", mode=mode, module=str(FIXTURES / "mcp_server.py"), runtime=sys.executable)
    found = broken(target, ("tools", "interleaved"))
    assert found == ({} if mode == "conforming" else {"SIG-AGENT-002": Verdict.FAIL})
