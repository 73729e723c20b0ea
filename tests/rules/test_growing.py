"""Facts about recordings that still grow: what has not happened yet may still happen, and is no breach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from signet_conformance.engine import judge
from tests.support.case_traces import DECLARED, KEYED, build

from .model_requests import TOOLS
from .step_items import CLOSED, OPENED, step

Item = Mapping[str, Any]


def hook(operation: str, key: str = "k1", **answer: Any) -> Item:
    """A hook of a key, answered with these members."""
    body = {**KEYED, "sessionKey": key, "userMessage": "next"}
    request = {"method": "POST", "path": f"/api/hooks/{operation}", "body": body}
    return {"request": request, "response": {"status": 200, "body": answer}}


def said(text: str) -> Item:
    """A user turn."""
    return step("prompt", index=9, text=text, reply="Understood.")


def asked(text: str, **more: Any) -> Item:
    """A request to the model."""
    body = {"model": "m", "tools": TOOLS, "messages": [{"role": "user", "content": text}]}
    return {"side": "model", "request": {"method": "POST", "path": "/v1/messages", "body": body}, **more}


NATIVE_A, NATIVE_B = ({"mark": "session_key", "data": {"session": "s1", "key": key}} for key in ("a", "b"))
UNKNOWN = hook("user-prompt-submit", sessionKnown=False)
STARTED, ENDED, PRE = hook("session-start"), hook("session-end"), hook("pre-compaction")
NEXT, OTHER = hook("user-prompt-submit"), hook("session-start", "k2")
UNKNOWN_OTHER, NEXT_OTHER = hook("user-prompt-submit", "k2", sessionKnown=False), hook("user-prompt-submit", "k2")
TURN = [step("start"), STARTED, said("next"), NEXT, said("Which one?")]
SILENT = [step("start"), STARTED, said("next"), NEXT, CLOSED, said("next"), OPENED, said("next"), step("end")]
AWAY = [step("start"), STARTED, said("Which one?"), asked("Which one?"), CLOSED, said("And which now?")]
WAITING = [
    said("next"),
    {
        **NEXT,
        "response": None,
        "fault": {"kind": "delay", "delay_s": 7.0},
        "error": {"kind": "client_closed"},
        "t0": 1,
        "t1": 9,
    },
]
CLAIMING = [
    step("start", index=0),
    STARTED,
    step("tool", index=1, tool="memory_store", arguments={"content": "Deploys go out on Fridays."}),
    {"mark": "tool_answer", "data": {"index": 1, "done": True}},
]
FORGETTING = [
    step("tool", tool="memory_forget", arguments={"ids": ["m-1", "m-2"], "mode": "execute"}),
    {"request": {"method": "DELETE", "path": "/api/memory/m-1"}},
]
OPENED_AS_A = [step("start"), STARTED, NATIVE_A, step("fork"), OTHER, NATIVE_B]
IN_ITS_COMPACTION = [step("start"), STARTED, NATIVE_A, step("compact"), ENDED]
REOPENED = [*OPENED_AS_A, step("reopen"), hook("session-end", "k2"), STARTED]
"""The host goes back to the session's first id, and tells it only at the end of the step."""
BEGUN = {"mark": "scenario", "data": {"name": "broken-off"}}
"""A scenario of which no mark tells that it is over, since its driver died."""
CASES: Sequence[tuple[str, Sequence[Item], str, str]] = [
    ("SIG-START-004", [UNKNOWN], "INCONCLUSIVE", "FAIL"),
    ("SIG-START-004", [UNKNOWN, NEXT], "FAIL", "FAIL"),
    ("SIG-START-004", [UNKNOWN, UNKNOWN_OTHER, NEXT_OTHER], "FAIL", "FAIL"),
    ("SIG-PROMPT-005", [UNKNOWN, OTHER], "INCONCLUSIVE", "FAIL"),
    ("SIG-END-007", [STARTED, ENDED, PRE], "INCONCLUSIVE", "WARN"),
    ("SIG-END-007", [STARTED, ENDED, PRE, NEXT], "INCONCLUSIVE", "WARN"),
    ("SIG-END-007", [STARTED, ENDED, PRE, PRE], "INCONCLUSIVE", "WARN"),
    ("SIG-END-008", [STARTED, ENDED], "INCONCLUSIVE", "WARN"),
    ("SIG-FAIL-002", WAITING, "INCONCLUSIVE", "FAIL"),
    ("SIG-FAIL-002", [*WAITING, step("end")], "FAIL", "FAIL"),
    ("SIG-PROMPT-011", TURN, "PASS", "WARN"),
    ("SIG-PROMPT-011", [*TURN, step("end")], "WARN", "WARN"),
    ("SIG-PROMPT-011", [*TURN, step("tool", tool="memory_search")], "PASS", "WARN"),
    ("SIG-CMP-008", IN_ITS_COMPACTION, "INCONCLUSIVE", "WARN"),
    ("SIG-CMP-008", [*IN_ITS_COMPACTION, step("end")], "WARN", "WARN"),
    ("SIG-SESS-004", REOPENED, "PASS", "FAIL"),
    ("SIG-SESS-004", [*REOPENED, step("end")], "FAIL", "FAIL"),
    ("SIG-FAIL-001", SILENT, "INCONCLUSIVE", "FAIL"),
    ("SIG-MEM-006", FORGETTING, "INCONCLUSIVE", "FAIL"),
    ("SIG-MEM-006", [*FORGETTING, step("end")], "FAIL", "FAIL"),
    ("SIG-MEM-006", [*CLAIMING, step("end", index=2)], "NOT-APPLICABLE", "FAIL"),
    ("SIG-MODEL-008", AWAY, "INCONCLUSIVE", "FAIL"),
    ("SIG-MODEL-008", [*AWAY, step("end")], "FAIL", "FAIL"),
]


@pytest.mark.parametrize(("requirement", "items", "growing", "whole"), CASES)
def test_what_may_still_happen_is_no_breach(
    tmp_path: Path, requirement: str, items: Sequence[Item], growing: str, whole: str
) -> None:
    """What follows already is judged; when the recording is whole, all is."""
    capabilities = ["session-start", "user-prompt-submit"]
    header = {"declared": {**DECLARED, "capabilities": capabilities}}
    header = {**header, "daemon_version": "0.182.0"} if requirement == "SIG-END-008" else header
    trace = build(tmp_path / "trace.jsonl", items, header)
    broken_off = build(tmp_path / "broken-off.jsonl", [*items, BEGUN], header)
    for each, expected in ((replace(trace, growing=True), growing), (broken_off, growing), (trace, whole)):
        judged = judge(each)
        told = judged.harness if requirement.startswith("SIG-MODEL") else judged.judgements
        assert told[requirement].verdict == expected
