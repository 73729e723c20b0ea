"""Facts about the daemon's side: each requirement with an answer that keeps it and one that breaches it."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path

import pytest

from signet_conformance.contract import version_key
from signet_conformance.engine import exit_status
from signet_conformance.finding import Side, Verdict
from signet_conformance.rules import daemon_rules
from tests.support.daemon_items import (
    BOTH,
    CLAIMED,
    DROPPED,
    EXEC,
    EXEC_BODY,
    HEALTH,
    JOB,
    LEGACY,
    PRIVATE,
    PROMPTED,
    RECALLED,
    RESTART,
    ROW,
    SAVED,
    SKIPPED,
    STEP,
    STUB,
    Item,
    call,
    end,
    hook,
    judged,
    modify,
    poll,
    prompt,
    ran,
    read,
    start,
)  # fmt: skip

CANARY = {"declared": {"canaries": {"<redacted:1>": "ACME"}}}

CASES: Sequence[tuple[str, str, Sequence[Item]]] = [
    ("001", "PASS", [prompt()]),
    ("001", "FAIL", [prompt({"inject": "", "sessionKnown": True})]),
    ("001", "FAIL", [prompt({**PROMPTED, "inject": 42})]),
    ("001", "FAIL", [prompt(PROMPTED, 201)]),
    ("001", "FAIL", [hook("compaction-complete", {}, summary="They chose PostgreSQL 16.")]),
    ("001", "FAIL", [call("POST", "/api/secrets/exec", EXEC_BODY, 202, {"status": "queued"})]),
    ("001", "NOT-APPLICABLE", [prompt({"inject": 42}, 300)]),
    ("001", "NOT-APPLICABLE", [prompt({"error": "harness is required"}, 400)]),
    ("001", "NOT-APPLICABLE", [{**prompt({"inject": 42}), "fault": {"kind": "shape"}}]),
    ("001", "NOT-APPLICABLE", [{**prompt({"inject": 42}), "error": {"kind": "client_closed"}}]),
    ("001", "NOT-APPLICABLE", [call("GET", "/health", None, 200, {"status": "healthy"})]),
    ("002", "PASS", [prompt({"error": "harness is required"}, 400)]),
    ("002", "FAIL", [prompt({"message": "no"}, 400)]),
    ("002", "FAIL", [prompt({"error": " "}, 400)]),
    ("002", "PASS", [call("DELETE", "/api/memory/m-1", {"reason": "r"}, 404, {"id": "m-1", "status": "not_found"})]),
    ("002", "PASS", [call("POST", "/mcp", [{}], 400, {"jsonrpc": "2.0", "error": {"code": -32700, "message": "no"}})]),
    ("002", "FAIL", [call("POST", "/mcp", [{}], 400, {"jsonrpc": "2.0", "error": {"code": -32700}})]),
    ("002", "NOT-APPLICABLE", [call("POST", "/api/hooks/no-such", {}, 404, "404 Not Found")]),
    ("002", "NOT-APPLICABLE", [{**prompt({}, 400), "fault": {"kind": "status"}}]),
    ("003", "PASS", [STEP, start(), prompt(SKIPPED, **LEGACY)]),
    ("003", "FAIL", [STEP, start(), prompt(**LEGACY)]),
    ("003", "FAIL", [STEP, start(), prompt({**SKIPPED, "claimedBy": "legacy"}, **LEGACY)]),
    ("003", "PASS", [STEP, start(), start(CLAIMED, 409, **LEGACY)]),
    ("003", "FAIL", [STEP, start(), start(**LEGACY)]),
    ("003", "INCONCLUSIVE", [start(), prompt(**LEGACY)]),
    ("003", "NOT-APPLICABLE", [STEP, start(), end(), prompt(**LEGACY)]),
    ("003", "NOT-APPLICABLE", [STEP, start(), RESTART, prompt(**LEGACY)]),
    ("003", "NOT-APPLICABLE", [STEP, start(), {**prompt(**LEGACY), "t0": 14405}]),
    ("004", "PASS", [STEP, start(), start(STUB)]),
    ("004", "FAIL", [STEP, start(), start()]),
    ("004", "INCONCLUSIVE", [start(), start()]),
    ("004", "NOT-APPLICABLE", [STEP, start(), end(), start()]),
    ("004", "NOT-APPLICABLE", [STEP, start(), start(source="clear")]),
    ("004", "NOT-APPLICABLE", [STEP, start(), start(project="/srv/other")]),
    ("004", "NOT-APPLICABLE", [STEP, start(), prompt({**PROMPTED, "sessionKnown": False}), start()]),
    ("004", "NOT-APPLICABLE", [STEP, start(), RESTART, start()]),
    ("005", "PASS", [STEP, end(), end(DROPPED)]),
    ("005", "FAIL", [STEP, end(), end()]),
    ("005", "NOT-APPLICABLE", [STEP, end(), start(), end()]),
    ("005", "NOT-APPLICABLE", [STEP, end(), {**end(), "t0": 1804}]),
    ("006", "PASS", [PRIVATE, read(ROW)]),
    ("006", "FAIL", [PRIVATE, read(ROW, agent="beacon-agent")]),
    ("006", "NOT-APPLICABLE", [PRIVATE, read({"error": "not found"}, 404, "beacon-agent")]),
    ("006", "NOT-APPLICABLE", [hook("remember", SAVED, content="x"), read(ROW, agent="beacon-agent")]),
    ("006", "FAIL", [PRIVATE, RECALLED]),
    ("007", "PASS", [read(ROW)]),
    ("007", "FAIL", [read({**ROW, "id": "m-2"})]),
    ("007", "NOT-APPLICABLE", [read({"error": "not found"}, 404)]),
    ("008", "PASS", [call("GET", "/health", None, 200, HEALTH)]),
    ("008", "FAIL", [call("GET", "/health", None, 200, {"status": "healthy"})]),
    ("008", "FAIL", [call("GET", "/health", None, 200, {**HEALTH, "version": "latest"})]),
    ("008", "FAIL", [call("GET", "/health", None, 200, "ok")]),
    ("008", "NOT-APPLICABLE", [call("GET", "/health", None, 503, {"error": "shutting down"})]),
    ("009", "PASS", [ran("[REDACTED]")]),
    ("009", "FAIL", [ran("<redacted:1>")]),
    ("010", "PASS", [STEP, EXEC, poll(JOB)]),
    ("010", "FAIL", [STEP, EXEC, poll({"error": "secret exec job not found"}, 404)]),
    ("010", "FAIL", [STEP, EXEC, poll({**JOB, "id": "job-2"})]),
    ("010", "INCONCLUSIVE", [EXEC, poll({"error": "secret exec job not found"}, 404)]),
    ("010", "INCONCLUSIVE", [STEP, EXEC, RESTART, poll({"error": "secret exec job not found"}, 404)]),
    ("010", "NOT-APPLICABLE", [STEP, poll({"error": "secret exec job not found"}, 404)]),
    ("011", "PASS", [STEP, start(), prompt()]),
    ("011", "FAIL", [STEP, start(), prompt({**PROMPTED, "sessionKnown": False})]),
    ("011", "INCONCLUSIVE", [start(), prompt({**PROMPTED, "sessionKnown": False})]),
    ("011", "NOT-APPLICABLE", [STEP, start(), end(), prompt({**PROMPTED, "sessionKnown": False})]),
    ("011", "NOT-APPLICABLE", [STEP, start(), RESTART, prompt({**PROMPTED, "sessionKnown": False})]),
    ("011", "NOT-APPLICABLE", [STEP, prompt({**PROMPTED, "sessionKnown": False})]),
    ("011", "NOT-APPLICABLE", [STEP, start(runtimePath=""), prompt({**PROMPTED, "sessionKnown": False})]),
    ("012", "PASS", [modify(BOTH)]),
    ("012", "FAIL", [modify(BOTH[:1])]),
    ("012", "FAIL", [modify(BOTH[::-1])]),
    ("012", "FAIL", [modify([])]),
    ("012", "PASS", [modify([{"id": None, "status": "invalid_request"}, BOTH[1]])]),
]  # fmt: skip


@pytest.mark.parametrize(("number", "verdict", "items"), CASES)
def test_a_case_has_its_verdict(number: str, verdict: str, items: Sequence[Item], tmp_path: Path) -> None:
    """The requirement has the verdict of its case, and a breach names the answer on the daemon's side."""
    name = f"SIG-DAEMON-{number}"
    judgement = judged(tmp_path, items, **CANARY).daemon[name]
    assert (judgement.verdict, judgement.message) == (Verdict(verdict), judgement.message)
    if verdict == "FAIL":
        assert {finding.side for finding in judgement.findings} == {Side.DAEMON}
        assert judgement.findings[0].exchanges[0] == len(items)


PLACES: Sequence[tuple[str, Sequence[Item], str, str]] = [
    ("001", [prompt({"inject": "", "sessionKnown": True})], "/json/memoryCount", "memoryCount is absent"),
    ("001", [prompt({**PROMPTED, "inject": 42})], "/json/inject", "inject is not as the contract requires"),
    ("001", [prompt(PROMPTED, 201)], "/response/status", "status is not as the contract requires"),
    ("001", [start(["no"])], "/response/body/json", "the answer is not as the contract requires"),
    ("002", [prompt("no", 400)], "/response/body", "a refusal with 400"),
    ("002", [prompt({"message": "no"}, 400)], "/json/error", "a refusal with 400"),
    ("003", [STEP, start(), prompt(**LEGACY)], "/response", "user-prompt-submit on legacy"),
    ("004", [STEP, start(), start()], "/json/inject", "the whole context again"),
    ("005", [STEP, end(), end()], "/json/duplicateSessionEnd", "accepted again"),
    ("006", [PRIVATE, read(ROW, agent="beacon-agent")], "/json/id", "to 'beacon-agent'"),
    ("006", [PRIVATE, RECALLED], "/json/results", "of 'atlas-agent'"),
    ("007", [read({**ROW, "id": "m-2"})], "/json/id", "another memory"),
    ("008", [call("GET", "/health", None, 200, "ok")], "/response/body", "no version"),
    ("008", [call("GET", "/health", None, 200, {**HEALTH, "version": "latest"})], "/json/version", "no version"),
    ("009", [ran("<redacted:1>")], "/response/body", "'ACME'"),
    ("010", [STEP, EXEC, poll({**JOB, "id": "job-2"})], "/response/status", "cannot be queried"),
    ("011", [STEP, start(), prompt({**PROMPTED, "sessionKnown": False})], "/json/sessionKnown", "was started"),
    ("012", [modify(BOTH[::-1])], "/json/results", "one by one"),
]


@pytest.mark.parametrize(("number", "items", "place", "words"), PLACES)
def test_a_breach_says_where_it_stands(
    number: str, items: Sequence[Item], place: str, words: str, tmp_path: Path
) -> None:
    """A breach points at the member of the answer that breaks the contract, and says what is wrong with it."""
    judgement = judged(tmp_path, items, **CANARY).daemon[f"SIG-DAEMON-{number}"]
    assert judgement.findings[0].pointer.endswith(place)
    assert words in judgement.message


def test_every_requirement_has_both_cases() -> None:
    """Each stands with an answer that keeps it and one that breaches it."""
    for name in daemon_rules():
        assert {"PASS", "FAIL"} <= {verdict for number, verdict, _ in CASES if name.endswith(number)}


def test_a_daemon_between_two_contracts_has_no_known_shape(tmp_path: Path) -> None:
    """Where nobody wrote down when a member came, its absence is no breach."""
    judgement = judged(tmp_path, [prompt({"inject": ""})], daemon_version="0.170.0").daemon["SIG-DAEMON-001"]
    assert judgement.verdict is Verdict.NOT_APPLICABLE
    assert version_key("0.145") < version_key("0.170.0") < version_key("0.205")


def test_a_conflict_was_409_before(tmp_path: Path) -> None:
    """Daemon 0.58 refuses a prompt of the other path; skipping it with 200 is not among its answers."""
    refused = [STEP, start(), prompt(CLAIMED, 409, **LEGACY)]
    skipped = [STEP, start(), prompt(SKIPPED, **LEGACY)]
    assert judged(tmp_path, refused, daemon_version="0.58.1").daemon["SIG-DAEMON-003"].verdict is Verdict.PASS
    assert judged(tmp_path, skipped, daemon_version="0.58.1").daemon["SIG-DAEMON-003"].verdict is Verdict.FAIL


def test_the_connector_is_not_blamed_for_what_rests_on_a_broken_answer(tmp_path: Path) -> None:
    """A prompt after a wrong sessionKnown:false is undecided, and says whose breach it is."""
    forgotten = prompt({**PROMPTED, "sessionKnown": False})
    whole = judged(tmp_path, [STEP, start(), forgotten, prompt()])
    assert whole.judgements["SIG-PROMPT-006"].verdict is Verdict.INCONCLUSIVE
    assert "SIG-DAEMON-011" in whole.judgements["SIG-PROMPT-006"].message
    known = judged(tmp_path, [STEP, start(), RESTART, forgotten, prompt()])
    assert known.judgements["SIG-PROMPT-006"].verdict is Verdict.WARN


def test_a_preview_without_its_token_excuses_the_forget(tmp_path: Path) -> None:
    """Who was given no token has none to repeat."""
    candidates = [{"id": f"m-{number}"} for number in range(30)]
    preview = {"mode": "preview", "count": 30, "requiresConfirm": True, "confirmToken": "t-1", "candidates": candidates}
    ids = [row["id"] for row in candidates]
    order = call(
        "POST", "/api/memory/forget", {"mode": "execute", "ids": ids, "reason": "r"}, 400, {"error": "confirm"}
    )
    whole = call("POST", "/api/memory/forget", {"mode": "preview", "ids": ids}, 200, preview)
    broken = copy.deepcopy(whole)
    del broken["response"]["body"]["confirmToken"]
    assert judged(tmp_path, [STEP, whole, order]).judgements["SIG-MEM-005"].verdict is Verdict.FAIL
    assert judged(tmp_path, [STEP, broken, order]).judgements["SIG-MEM-005"].verdict is Verdict.INCONCLUSIVE


def test_a_recording_without_step_marks_is_judged_by_the_letter(tmp_path: Path) -> None:
    """An answer that was shortened by hand excuses nothing there."""
    assert judged(tmp_path, [start({}), end({}), end({})]).judgements["SIG-END-006"].verdict is Verdict.WARN


def test_no_exit_status_changes(tmp_path: Path) -> None:
    """The daemon's breaches stand apart from the verdicts that the exit status follows from."""
    whole = judged(tmp_path, [start({}), prompt({}), end({})])
    assert whole.daemon["SIG-DAEMON-001"].verdict is Verdict.FAIL
    verdicts = [judgement.verdict for judgement in whole.judgements.values()]
    assert Verdict.FAIL not in verdicts
    assert exit_status(verdicts) == 0
