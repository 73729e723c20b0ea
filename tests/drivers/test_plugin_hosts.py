"""Plugin hosts: a conforming connector passes in each, a broken one is found out, a host is what the real one was."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.finding import Verdict
from signet_conformance.targets.face import FOLDER as FACES

from .conftest import FIXTURES, PROMPT, START, Broken, Made, performed

AGENT = {"SIG-AGENT-001": Verdict.FAIL, "SIG-AGENT-002": Verdict.FAIL}
PROMPT_TEXT = {"SIG-PROMPT-001": Verdict.FAIL, "SIG-PROMPT-002": Verdict.FAIL}
HOSTS = [
    ("openclaw", "openclaw_plugin.mjs", {}, {"misnames": PROMPT_TEXT}),
    ("opencode", "opencode_plugin.mjs", {"runtime": "node"}, {"drops-agent": AGENT}),
    ("pi", "pi_extension.mjs", {"harness": "pi"}, {"drops-agent": AGENT, "misnames": PROMPT_TEXT}),
    ("pi", "pi_extension.mjs", {"face": "pi-0.54"}, {}),
    ("sdk", "sdk_client.mjs", {}, {"drops-agent": AGENT, "misnames": PROMPT_TEXT}),
    ("oh-my-pi", "pi_extension.mjs", {"runtime": "node", "harness": "pi"}, {"drops-agent": AGENT}),
]
CASES = [
    pytest.param(name, module, own, mode, expected, id=f"{name}-{own.get('face', 'default')}-{mode}")
    for name, module, own, breaches in HOSTS
    for mode, expected in {"conforming": {}, **breaches}.items()
]
REAL = Path(__file__).resolve().parents[3] / "shared" / "host-events" / "real-openclaw-host-2026.6.1.jsonl"


@pytest.mark.parametrize(("name", "module", "own", "mode", "expected"), CASES)
@pytest.mark.usefixtures("node")
def test_plugin_host(
    name: str,
    module: str,
    own: Mapping[str, Any],
    mode: str,
    expected: Mapping[str, Verdict],
    made: Made,
    broken: Broken,
) -> None:
    """A whole connector breaks nothing, one that drops its agent or misnames the prompt just what says so."""
    assert broken(made(name, mode=mode, module=str(FIXTURES / module), **own)) == expected


@pytest.mark.usefixtures("node")
def test_handler_that_throws_stops_no_turn(made: Made, tmp_path: Path) -> None:
    """The turn goes on, and the answer tells which handler threw what."""
    target = made("openclaw", mode="throws", module=str(FIXTURES / "openclaw_plugin.mjs"))
    _, turn = performed(target, tmp_path / "home", [START, PROMPT])
    assert turn["turn"] is True
    (noted,) = [call for call in turn["calls"] if call["event"] == "before_prompt_build"]
    assert "a plugin that throws" in noted["thrown"]


@pytest.mark.usefixtures("node")
def test_tool_that_the_connector_lacks_is_skipped(made: Made, tmp_path: Path) -> None:
    """A step without a counterpart is answered with a reason, one with a counterpart with its content."""
    target = made("openclaw", module=str(FIXTURES / "openclaw_plugin.mjs"))
    tool = {"step": "tool", "session": "s1", "arguments": {"id": "m-1"}}
    steps = [START, {**tool, "tool": "memory_search"}, {**tool, "tool": "memory_get"}]
    _, lacking, known = performed(target, tmp_path / "home", steps)
    assert lacking == {"skipped": "the connector has no tool memory_search"}
    assert known["content"] == {"id": "m-1"}


def recorded(path: Path) -> Iterator[Mapping[str, Any]]:
    """The events of a probe's file."""
    for line in path.read_text("utf-8").splitlines():
        yield json.loads(line)


@pytest.mark.usefixtures("node")
@pytest.mark.skipif(not REAL.is_file(), reason="no recording of the real OpenClaw host beside this repository")
def test_openclaw_fires_what_the_real_host_fired(made: Made, tmp_path: Path) -> None:
    """The events of a turn come in the order, with the members and the context, that a probe saw in the real host."""
    real = list(recorded(REAL))
    turn = next(
        i
        for i, one in enumerate(real)
        if one["hook"] == "before_model_resolve" and "And what" in one["input"]["prompt"]
    )
    expected = real[turn : turn + 8]
    out = tmp_path / "probe.jsonl"
    events = json.loads((FACES / "openclaw-2026.6.1.json").read_bytes())["events"]
    target = made("openclaw", module=str(FIXTURES / "probe_plugin.mjs"))
    probe = {"PROBE_OUT": str(out), "PROBE_EVENTS": json.dumps(list(events))}
    performed(target, tmp_path / "home", [START, PROMPT], **probe)
    seen = [one for one in recorded(out) if one["hook"] not in ("gateway_start", "session_start", "gateway_stop")]
    assert [one["hook"] for one in seen] == [one["hook"] for one in expected]
    for ours, theirs in zip(seen, expected, strict=True):
        assert set(ours["input"]) <= set(theirs["input"]), ours["hook"]
        if ours["hook"] not in ("llm_input", "llm_output"):
            assert set(ours["input"]) == set(theirs["input"]), ours["hook"]
        assert set(ours["ctx"]) <= set(theirs["ctx"]), ours["hook"]
        assert {"agentId", "sessionKey", "sessionId", "workspaceDir", "runId"} <= set(ours["ctx"]), ours["hook"]
