"""Facts about turns of which the harness knows no session."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.engine import judge
from tests.support.case_traces import DECLARED, KEYED, build

Item = Mapping[str, Any]
HEADER = {"declared": {**DECLARED, "agents": ["atlas-agent", "beacon-agent"]}}


def hook(operation: str, **more: Any) -> Item:
    """A hook, answered as the daemon does."""
    answer = {"inject": "", "memories": []} if operation == "session-start" else {"inject": "", "memoryCount": 0}
    body = {name: value for name, value in {**KEYED, **more}.items() if value is not None}
    request = {"method": "POST", "path": f"/api/hooks/{operation}", "body": body}
    return {"request": request, "response": {"status": 200, "body": answer}}


def step(kind: str, index: int, **more: Any) -> Item:
    """A step that was given to the connector."""
    return {"mark": "step", "data": {"step": kind, "session": f"s{index}", "index": index, **more}}


def verdicts(folder: Path, kind: str, *, agent: str, text: str) -> dict[str, str]:
    """The verdicts over a turn without a key beside an open session, in a step of this kind."""
    opened = [step("start", 0, agent="atlas-agent"), hook("session-start", agentId="atlas-agent")]
    aside = step(kind, 1, agent="beacon-agent", project="/srv/atlas", text="Is it closed?", reply="It is.")
    told = [
        hook("session-start", sessionKey=None, agentId=agent),
        hook("user-prompt-submit", sessionKey=None, agentId=agent, userMessage=text),
    ]
    judged = judge(build(folder / "trace.jsonl", [*opened, aside, *told], HEADER))
    return {name: judgement.verdict for name, judgement in judged.judgements.items()}


@pytest.mark.parametrize(("kind", "expected"), [("sessionless_prompt", "PASS"), ("start", "WARN")])
def test_start_without_a_key_is_blamed_where_there_is_a_session(tmp_path: Path, kind: str, expected: str) -> None:
    """A connector cannot name a session that the harness knows nothing of."""
    assert verdicts(tmp_path, kind, agent="beacon-agent", text="Is it closed?")["SIG-START-002"] == expected


def test_prompt_without_a_key_is_undecided_where_there_is_no_session(tmp_path: Path) -> None:
    """It is of no started key, because there is none."""
    assert verdicts(tmp_path, "sessionless_prompt", agent="beacon-agent", text="Is it closed?")["SIG-PROMPT-005"] == (
        "INCONCLUSIVE"
    )


@pytest.mark.parametrize(("kind", "expected"), [("sessionless_prompt", "INCONCLUSIVE"), ("start", "FAIL")])
def test_end_without_a_key_is_blamed_where_there_is_a_session(tmp_path: Path, kind: str, expected: str) -> None:
    """Beside an open session it ends nothing, unless the harness knows of no session there."""
    opened = [step("start", 0, agent="atlas-agent"), hook("session-start", agentId="atlas-agent")]
    aside = step(kind, 1, agent="beacon-agent", text="Is it closed?", reply="It is.")
    end = hook("session-end", sessionKey=None, agentId="beacon-agent")
    judged = judge(build(tmp_path / "trace.jsonl", [*opened, aside, end], HEADER))
    assert judged.judgements["SIG-END-002"].verdict == expected


def test_text_of_a_turn_without_a_session_is_judged(tmp_path: Path) -> None:
    """What the user said there arrives as it was said."""
    assert verdicts(tmp_path, "sessionless_prompt", agent="beacon-agent", text="Is it")["SIG-PROMPT-012"] == "FAIL"


def test_agent_of_a_turn_without_a_session_is_judged(tmp_path: Path) -> None:
    """The turn runs as the agent of its step, not as another that is declared."""
    assert verdicts(tmp_path, "sessionless_prompt", agent="atlas-agent", text="Is it closed?")["SIG-AGENT-002"] == (
        "FAIL"
    )


def test_start_without_a_key_hides_no_other(tmp_path: Path) -> None:
    """The next one in a session is blamed, and so is a key of another type wherever it is."""
    aside, inside = step("sessionless_prompt", 0, text="Is it closed?"), step("start", 1)
    keyless = hook("session-start", sessionKey=None)
    items = [aside, keyless, hook("session-start", sessionKey=7), inside, keyless]
    judgement = judge(build(tmp_path / "trace.jsonl", items, HEADER)).judgements["SIG-START-002"]
    assert (judgement.verdict, judgement.subjects, judgement.findings[0].exchanges) == ("FAIL", 3, (3,))
    judgement = judge(build(tmp_path / "trace.jsonl", [aside, keyless, inside, keyless], HEADER)).judgements[
        "SIG-START-002"
    ]
    assert (judgement.verdict, judgement.findings[0].exchanges) == ("WARN", (4,))
