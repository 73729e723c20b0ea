"""Facts about a request whose client left before all of it had come: no daemon has handled it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from signet_conformance.engine import judge, judge_run
from signet_conformance.facts import Recording
from signet_conformance.finding import Verdict
from tests.support.case_traces import KEYED, build

LEFT = {"kind": "client_closed", "t": 1.0}
DECLARED = {"agents": ["atlas-agent"], "harness": "openclaw", "token": True}
TOKEN = "sig_sk_0123456789abcdef"


def left(path: str = "/api/hooks/session-start", text: str = '{"harness": "open', **more: Any) -> dict[str, Any]:
    """A request of which only a part has come."""
    sent = {"method": "POST", "path": path, "raw_body": {"text": text, "media_type": None}, "incomplete": True, **more}
    return {"request": sent, "response": None, "error": LEFT}


@pytest.mark.parametrize(
    "item",
    [
        left(),
        left("/api/hooks/session-end"),
        left("/api/memory/remember"),
        left("/api/nowhere"),
        left(text='{"agentId": "openclaw", "sessionKey": "s"}', headers={"content-type": "text/plain"}),
        left(headers={"x-signet-runtime-path": "no such", "x-signet-no-hooks": "1", "x-signet-agent-id": " "}),
    ],
    ids=["start", "end", "save", "no route", "an object so far", "headers"],
)
def test_it_breaches_nothing(item: dict[str, Any], tmp_path: Path) -> None:
    """Neither by what it lacks nor by what it says."""
    judged = judge(build(tmp_path / "trace.jsonl", [item], {"declared": DECLARED}, shared=False))
    assert [name for name, each in judged.judgements.items() if each.verdict in (Verdict.FAIL, Verdict.WARN)] == []


def test_the_same_would_breach_if_it_had_come_whole(tmp_path: Path) -> None:
    """A recording that does not tell is judged by what stands in it, as ever."""
    item = left()
    del item["request"]["incomplete"]
    judged = judge(build(tmp_path / "trace.jsonl", [item], {"declared": DECLARED}, shared=False)).judgements
    named = ("SIG-HTTP-001", "SIG-HTTP-013", "SIG-START-001", "SIG-AGENT-002")
    assert {judged[name].verdict for name in named} == {Verdict.FAIL}


def test_it_does_not_come_first(tmp_path: Path) -> None:
    """Health is asked for before the first request that a daemon may handle."""
    health = {"request": {"method": "GET", "path": "/health", "body": None}, "response": {"status": 200, "body": {}}}
    start = {"request": {"method": "POST", "path": "/api/hooks/session-start", "body": dict(KEYED)}}
    judged = judge(build(tmp_path / "trace.jsonl", [left(), health, start], shared=False)).judgements
    assert judged["SIG-HEALTH-001"].verdict is Verdict.PASS


def test_a_secret_in_it_was_sent_all_the_same(tmp_path: Path) -> None:
    """Whoever listened has it."""
    judged = judge(build(tmp_path / "trace.jsonl", [left(text=f'{{"project": "{TOKEN}')], shared=False)).judgements
    assert judged["SIG-HTTP-009"].verdict is Verdict.FAIL


def test_it_calls_no_operation(tmp_path: Path) -> None:
    """What a target declares is not shown by it."""
    end = {"mark": "scenario_end", "data": {"name": "x", "error": None}}
    header = {"declared": {**DECLARED, "capabilities": ["session-start"]}}
    traces = [build(tmp_path / f"{n}.jsonl", [left(), end], header, shared=False) for n in range(2)]
    assert "never seen: session-start" in judge_run(traces).together["SIG-COV-001"].message


def test_one_that_was_answered_was_handled(tmp_path: Path) -> None:
    """A daemon may answer before it has heard all."""
    item = {**left(), "response": {"status": 413, "body": {"error": "too large"}}}
    (call,) = Recording(build(tmp_path / "trace.jsonl", [item], shared=False)).calls
    assert (call.incomplete, call.operation) == (False, "session-start")


@pytest.mark.parametrize("said", [False, None, "yes", 1, []])
def test_only_true_says_so(said: Any, tmp_path: Path) -> None:
    """A member of the wrong type counts as absent."""
    (call,) = Recording(build(tmp_path / "trace.jsonl", [left(incomplete=said)], shared=False)).calls
    assert not call.incomplete
