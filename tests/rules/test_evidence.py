"""What a finding shows: the exchanges and values that somebody needs to see, each once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from signet_conformance.facts import Recording
from signet_conformance.finding import Finding
from signet_conformance.rules import rules
from tests.support.case_traces import build


def hook(name: str, **body: Any) -> Mapping[str, Any]:
    """A lifecycle hook of one session."""
    members = {"harness": "openclaw", "sessionKey": "s-41c7", "agentId": "atlas-agent", **body}
    return {"request": {"method": "POST", "path": f"/api/hooks/{name}", "body": members}}


def findings(requirement: str, items: Sequence[Mapping[str, Any]], tmp_path: Path) -> list[Finding]:
    """What a rule finds in a recording of these items."""
    recording = Recording(build(tmp_path / "trace.jsonl", items))
    return [finding for finding in rules()[requirement](recording) if isinstance(finding, Finding)]


def test_a_prompt_submitted_twice_is_told_once(tmp_path: Path) -> None:
    """Marks and the row of hooks show the same repeat: it is one finding."""
    turn = {"mark": "step", "data": {"step": "prompt", "session": "s1", "text": "Which window?"}}
    model = {"mark": "model", "data": {"session": "s1"}}
    prompt = hook("user-prompt-submit", userMessage="Which window?")
    repeats = findings("SIG-PROMPT-003", [hook("session-start"), turn, prompt, prompt, model], tmp_path)
    assert [repeat.exchanges for repeat in repeats] == [(4, 3)]


def test_a_shared_key_names_what_shares_it(tmp_path: Path) -> None:
    """The message has both ids, and the exchanges are those that sent them, the later one first."""
    ends = [hook("session-end", sessionId=name, cwd="/srv/atlas") for name in ("native-1", "native-1", "native-2")]
    (finding,) = findings("SIG-SESS-001", [hook("session-start", project="/srv/atlas"), *ends], tmp_path)
    assert "'native-1' and 'native-2'" in finding.message
    assert finding.exchanges == (4, 2)


def test_projects_that_share_a_key_are_named(tmp_path: Path) -> None:
    """Of more than two the first two are named."""
    starts = [hook("session-start", project=f"/srv/{name}") for name in ("atlas", "beacon", "comet")]
    (finding,) = findings("SIG-SESS-001", starts, tmp_path)
    assert "3 projects, '/srv/atlas' and '/srv/beacon' …" in finding.message
    assert finding.exchanges == (3, 2, 1)
