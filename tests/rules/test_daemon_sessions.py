"""Facts about what the daemon keeps between calls: how long a claim, an answered start, an end and a job surely hold.

Where something may have ended it that the recording does not show, nothing is asked of the daemon.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.finding import Verdict
from tests.support.daemon_items import (
    CLAIMED,
    DROPPED,
    ENDED,
    EXEC,
    EXEC_BODY,
    FULL,
    JOB,
    LEGACY,
    PROMPTED,
    RESTART,
    SAVED,
    SKIPPED,
    STEP,
    STUB,
    Item,
    call,
    end,
    hook,
    judged,
    poll,
    prompt,
    start,
)  # fmt: skip

OTHER = {"agentId": "beacon-agent"}
PRE = hook("pre-compaction", {"summaryPrompt": "x", "guidelines": ""})
CUT = {"cut": True, "size": 900000, "sha256": "9f" * 32, "text": "{"}
UNKNOWN = {**PROMPTED, "sessionKnown": False}
GONE = poll({"error": "secret exec job not found"}, 404)
REFUSED = prompt({"error": "userMessage is required"}, 400)
HEALTH_500 = call("GET", "/health", None, 500, {"error": "no"})
HEALTH_503 = call("GET", "/health", None, 503, {"error": "no"})
RESET = {**prompt(), "response": None, "error": {"kind": "upstream_reset"}}
GAVE_UP = {**call("GET", "/health", None, 200, {}), "response": None, "error": {"kind": "client_closed"}}
MADE_500 = {**HEALTH_500, "fault": {"kind": "status"}}
NO_HOOKS = {"headers": {"x-signet-no-hooks": "1"}}


def with_request(item: Item, **members: Any) -> Item:
    """An exchange with other members of its request."""
    return {**item, "request": {**item["request"], **members}}


CLAIMS: Mapping[str, tuple[str, Sequence[Item]]] = {
    "a prompt claims a session too": ("FAIL", [prompt(), prompt(**LEGACY)]),
    "what names no path claims nothing": ("NOT-APPLICABLE", [start(runtimePath=""), prompt(**LEGACY)]),
    "a refused start claims nothing": ("NOT-APPLICABLE", [start({"error": "no"}, 400), prompt(**LEGACY)]),
    "a skipped start claims nothing": ("NOT-APPLICABLE", [start({**SKIPPED}), prompt(**LEGACY)]),
    "a bypassed start claims nothing": ("NOT-APPLICABLE", [start({**FULL, "bypassed": True}), prompt(**LEGACY)]),
    "a bypass ends what was claimed": (
        "NOT-APPLICABLE", [start(), prompt({**PROMPTED, "bypassed": True}), prompt(**LEGACY)],
    ),
    "a hook whose answer was spoilt may have ended it": (
        "NOT-APPLICABLE", [start(), {**prompt(), "fault": {"kind": "not_json"}}, prompt(**LEGACY)],
    ),
    "a lost answer may be that of a restarted daemon": ("NOT-APPLICABLE", [start(), RESET, prompt(**LEGACY)]),
    "a failure may be that of a restarted daemon": ("NOT-APPLICABLE", [start(), HEALTH_500, prompt(**LEGACY)]),
    "so may any other failure": ("NOT-APPLICABLE", [start(), HEALTH_503, prompt(**LEGACY)]),
    "a failure that the kit made shows no restart": ("FAIL", [start(), MADE_500, prompt(**LEGACY)]),
    "a client that hangs up shows no restart": ("FAIL", [start(), GAVE_UP, prompt(**LEGACY)]),
    "a restart before the claim ends nothing": ("FAIL", [RESTART, start(), prompt(**LEGACY)]),
    "a restart after the answer excuses nothing": ("FAIL", [start(), prompt(**LEGACY), RESTART]),
    "another agent has claims of its own": ("NOT-APPLICABLE", [start(), prompt(**LEGACY, **OTHER)]),
    "a claim of another agent leaves the first": ("FAIL", [start(), start(**OTHER), prompt(**LEGACY)]),
    "an end takes the claims of all agents away": (
        "NOT-APPLICABLE", [start(), start(**OTHER), end(**OTHER), prompt(**LEGACY)],
    ),
    "another session has claims of its own": ("NOT-APPLICABLE", [start(), prompt(**LEGACY, sessionKey="s-2")]),
    "a hook without a key belongs to no session": (
        "NOT-APPLICABLE", [start(sessionKey="None"), prompt(**LEGACY, sessionKey="")],
    ),
    "other hooks leave a claim": ("FAIL", [start(), PRE, prompt(**LEGACY)]),
    "a claim is kept by each hook on its path": (
        "FAIL", [start(), {**prompt(), "t0": 14000}, {**prompt(**LEGACY), "t0": 28000}],
    ),
    "a refused hook is asked nothing": (
        "NOT-APPLICABLE", [start(), prompt({"error": "userMessage is required"}, 400, **LEGACY)],
    ),
    "a bypassed hook is asked nothing": (
        "NOT-APPLICABLE", [start(), prompt({"inject": "", "memoryCount": 0, "bypassed": True}, **LEGACY)],
    ),
    "a hook that asks for no hooks is asked nothing": (
        "NOT-APPLICABLE", [start(), with_request(prompt(**LEGACY), **NO_HOOKS)],
    ),
    "a hook without a path is asked nothing": ("NOT-APPLICABLE", [start(), prompt(runtimePath="")]),
    "a hook that failed is asked nothing": ("NOT-APPLICABLE", [start(), prompt({"error": "no"}, 500, **LEGACY)]),
    "a hook that comes too often is asked nothing": (
        "NOT-APPLICABLE", [start(), prompt({"error": "no"}, 429, **LEGACY)],
    ),
    "a skip names who holds it": ("FAIL", [start(**LEGACY), prompt(SKIPPED)]),
    "an end on the other path is skipped": ("PASS", [start(), end(SKIPPED, **LEGACY)]),
    "an end on the other path is not let in": ("FAIL", [start(), end(**LEGACY)]),
    "a memory is saved on one path": ("FAIL", [start(), hook("remember", SAVED, content="x", **LEGACY)]),
    "a memory on the other path is refused": ("PASS", [start(), hook("remember", CLAIMED, 409, content="x", **LEGACY)]),
    "a start on the other path is refused, not skipped": ("FAIL", [start(), start(SKIPPED, **LEGACY)]),
    "a prompt on the other path is skipped, not refused": ("FAIL", [start(), prompt(CLAIMED, 409, **LEGACY)]),
    "a skip has status 200": ("FAIL", [start(), prompt(SKIPPED, 201, **LEGACY)]),
    "a skip says so": ("FAIL", [start(), prompt({**SKIPPED, "skipped": 1}, **LEGACY)]),
    "a skip says why": ("FAIL", [start(), prompt({**SKIPPED, "duplicateRuntimePath": 1}, **LEGACY)]),
}  # fmt: skip

STARTS: Mapping[str, tuple[str, Sequence[Item]]] = {
    "a refused hook between them leaves it open": ("NOT-APPLICABLE", [start(), REFUSED, start()]),
    "a hook that asks for no hooks leaves it open": (
        "NOT-APPLICABLE", [start(), with_request(prompt(), **NO_HOOKS), start()],
    ),
    "a compaction begins a new context": (
        "NOT-APPLICABLE", [start(), hook("compaction-complete", {"success": True}, summary="x"), start()],
    ),
    "what is no start repeats nothing": ("NOT-APPLICABLE", [start(), PRE]),
    "a start without a source repeats": ("FAIL", [start(), start(source=None)]),
    "a project that sorts before is another one": ("NOT-APPLICABLE", [start(), start(project="/srv/a")]),
    "a prompt between them changes nothing": ("FAIL", [start(), prompt(), start()]),
    "a session that ended before is another one": ("FAIL", [start(), end(), start(), start()]),
    "a skipped start answers nothing": ("FAIL", [start(), start(SKIPPED), start()]),
    "a skipped start is no repeat": ("NOT-APPLICABLE", [start(), start(SKIPPED)]),
    "a bypassed start is repeated by none": ("NOT-APPLICABLE", [start({**FULL, "bypassed": True}), start()]),
    "a start that was refused for its path is no repeat": (
        "NOT-APPLICABLE", [start(), start(CLAIMED, 409, **LEGACY)],
    ),
    "a stub alone is repeated by whatever comes": ("NOT-APPLICABLE", [start(STUB), start()]),
    "a stub leaves the first answer in force": ("FAIL", [start(), start(STUB), start()]),
    "after a restart the next answer counts": ("FAIL", [start(), RESTART, start(), start()]),
    "another project is answered anew": ("FAIL", [start(), start(project="/srv/b"), start(project="/srv/b")]),
    "a cleared context is answered anew, and then counts": ("FAIL", [start(), start(source="clear"), start()]),
}  # fmt: skip

ENDS: Mapping[str, tuple[str, Sequence[Item]]] = {
    "on the other path": ("NOT-APPLICABLE", [end(), end(**LEGACY)]),
    "on the other path than legacy": ("NOT-APPLICABLE", [end(**LEGACY), end()]),
    "of an agent that sorts before": ("NOT-APPLICABLE", [end(**OTHER), end()]),
    "after a hook that is no end": ("NOT-APPLICABLE", [PRE, end()]),
    "hooks that are no ends": ("NOT-APPLICABLE", [PRE, PRE]),
    "on no path": ("NOT-APPLICABLE", [end(runtimePath=""), end(runtimePath="")]),
    "of another agent": ("NOT-APPLICABLE", [end(), end(**OTHER)]),
    "after a bypassed one": ("NOT-APPLICABLE", [end({"memoriesSaved": 0, "bypassed": True}), end()]),
    "bypassed itself": ("NOT-APPLICABLE", [end(), end({"memoriesSaved": 0, "bypassed": True})]),
    "after a restart": ("NOT-APPLICABLE", [end(), RESTART, end()]),
    "after a start": ("FAIL", [start(), end(), end()]),
    "after a refused one": ("NOT-APPLICABLE", [hook("session-end", {"error": "no"}, 400), end()]),
    "refused itself": ("NOT-APPLICABLE", [end(), hook("session-end", {"error": "no"}, 400)]),
    "after a dropped one": ("NOT-APPLICABLE", [end(DROPPED), end()]),
    "after a dropped one, and then again": ("FAIL", [end(DROPPED), end(), end()]),
    "of another agent, and then again": ("FAIL", [end(**OTHER), end(), end()]),
    "after a restart, and then again": ("FAIL", [end(), RESTART, end(), end()]),
    "skipped without saying why": ("FAIL", [end(), end({"memoriesSaved": 0, "skipped": True})]),
    "skipped with a number": ("FAIL", [end(), end({**DROPPED, "skipped": 1})]),
    "dropped with a number": ("FAIL", [end(), end({**DROPPED, "duplicateSessionEnd": 1})]),
    "dropped without being skipped": ("FAIL", [end(), end({"memoriesSaved": 0, "duplicateSessionEnd": True})]),
}  # fmt: skip

OK_200 = call("POST", "/api/secrets/exec", EXEC_BODY, 200, JOB)
SECOND = {**JOB, "id": "job-2"}
JOBS: Mapping[str, tuple[str, Sequence[Item]]] = {
    "an order that was not accepted with 202 is no job": ("NOT-APPLICABLE", [OK_200, GONE]),
    "an order whose answer was spoilt is no job": ("NOT-APPLICABLE", [{**EXEC, "fault": {"kind": "shape"}}, GONE]),
    "a job without an id cannot be looked at": (
        "NOT-APPLICABLE", [call("POST", "/api/secrets/exec", EXEC_BODY, 202, {"id": 1}), GONE],
    ),
    "who may not look is told 401": ("NOT-APPLICABLE", [EXEC, poll({"error": "no"}, 401)]),
    "who may not look is told 403": ("NOT-APPLICABLE", [EXEC, poll({"error": "no"}, 403)]),
    "who looks too often is told 429": ("NOT-APPLICABLE", [EXEC, poll({"error": "no"}, 429)]),
    "a look that was refused leaves the next": ("FAIL", [EXEC, poll({"error": "no"}, 429), GONE]),
    "a look at a job of before leaves the next": ("PASS", [GONE, EXEC, poll(JOB)]),
    "each job is looked at by its id": (
        "PASS", [call("POST", "/api/secrets/exec", EXEC_BODY, 202, SECOND), EXEC, poll(JOB)],
    ),
    "another status than 200 shows nothing": ("FAIL", [EXEC, poll(JOB, 201)]),
    "a look that fails shows no job that is lost": ("INCONCLUSIVE", [EXEC, poll({"error": "no"}, 500)]),
    "a look without an answer's body shows nothing": ("FAIL", [EXEC, poll(None, 404)]),
    "an answer that was recorded in part decides nothing": (
        "NOT-APPLICABLE", [EXEC, {**GONE, "response": {"status": 200, "raw_body": CUT}}],
    ),
    "an order that was recorded in part is a job": ("FAIL", [with_request(EXEC, raw_body=CUT), GONE]),
    "a memory with the id of a job is no look at it": (
        "NOT-APPLICABLE", [EXEC, call("GET", "/api/memory/job-1", None, 404, {"error": "not found"})],
    ),
    "another id shows another job": ("FAIL", [EXEC, poll({**JOB, "id": "job-0"})]),
    "an answer that is no object shows nothing": ("FAIL", [EXEC, poll([], 200)]),
    "a look that is answered 202 orders nothing": ("FAIL", [EXEC, poll(JOB, 202)]),
    "a refused order is no job": ("NOT-APPLICABLE", [call("POST", "/api/secrets/exec", EXEC_BODY, 403, JOB), GONE]),
    "another request that is accepted with 202 is no job": (
        "NOT-APPLICABLE",
        [call("POST", "/api/secrets/exec", EXEC_BODY, 202, SECOND), hook("remember", {"id": "job-1"}, 202), GONE],
    ),
}  # fmt: skip

KNOWN: Mapping[str, tuple[str, Sequence[Item]]] = {
    "an answer without the member does not deny it": ("PASS", [start(), prompt({"inject": "", "memoryCount": 0})]),
    "a skipped prompt says nothing of it": ("NOT-APPLICABLE", [start(), prompt({**UNKNOWN, "skipped": True})]),
    "a prompt on the other path is of no session of its own": ("NOT-APPLICABLE", [start(), prompt(UNKNOWN, **LEGACY)]),
    "a prompt beside a session of legacy is neither": ("NOT-APPLICABLE", [start(**LEGACY), prompt(UNKNOWN)]),
    "a prompt without a path is asked nothing": ("NOT-APPLICABLE", [start(), prompt(UNKNOWN, runtimePath="")]),
    "a prompt without a key is of no session": (
        "NOT-APPLICABLE",
        [start(sessionKey="None"), prompt(UNKNOWN, sessionKey="")],
    ),
    "a hook that asks for no hooks is asked nothing": (
        "NOT-APPLICABLE",
        [start(), with_request(prompt(UNKNOWN), **NO_HOOKS)],
    ),
    "the second prompt is known by the first": ("FAIL", [prompt(), prompt(UNKNOWN)]),
}

ALL = {"003": CLAIMS, "004": STARTS, "005": ENDS, "010": JOBS, "011": KNOWN}


@pytest.mark.parametrize(
    ("number", "fact"), [pytest.param(number, fact, id=f"{number}: {fact}") for number in ALL for fact in ALL[number]]
)
def test_a_fact_has_its_verdict(number: str, fact: str, tmp_path: Path) -> None:
    """What the daemon keeps holds as long as the fact says."""
    verdict, items = ALL[number][fact]
    judgement = judged(tmp_path, [STEP, *items]).daemon[f"SIG-DAEMON-{number}"]
    assert (judgement.verdict, judgement.message) == (Verdict(verdict), judgement.message)


@pytest.mark.parametrize(
    ("version", "claims_only", "verdict"),
    [("0.145.7", True, "FAIL"), ("0.205.0", True, "NOT-APPLICABLE"), ("0.205.0", False, "FAIL")],
)
def test_a_claim_alone_is_answered_without_the_stub(
    version: str, claims_only: bool, verdict: str, tmp_path: Path
) -> None:
    """A release that knows claimOnly says that it knows the session; an earlier one takes it for any other start."""
    items = [STEP, start(), start({"sessionKnown": True}, claimOnly=claims_only)]
    assert judged(tmp_path, items, daemon_version=version).daemon["SIG-DAEMON-004"].verdict == verdict


@pytest.mark.parametrize(
    ("items", "verdict"),
    [
        ([prompt(), prompt(**LEGACY)], "NOT-APPLICABLE"),
        ([start(), prompt(**LEGACY)], "FAIL"),
        ([start(), end(**LEGACY)], "NOT-APPLICABLE"),
        ([start(), hook("pre-compaction", CLAIMED, 409, **LEGACY)], "PASS"),
    ],
    ids=["a prompt claims nothing", "a start does", "an end asks nobody", "other hooks are refused"],
)
def test_claims_before_0_109(items: Sequence[Item], verdict: str, tmp_path: Path) -> None:
    """Only a start claims a session there, and an end is let in by whoever holds it."""
    judgement = judged(tmp_path, [STEP, *items], daemon_version="0.58.1").daemon["SIG-DAEMON-003"]
    assert (judgement.verdict, judgement.message) == (Verdict(verdict), judgement.message)


@pytest.mark.parametrize("owner", ["plugin", "legacy"])
def test_a_claim_is_not_kept_by_the_other_path(owner: str, tmp_path: Path) -> None:
    """A hook that was let in on the other path is a breach, and prolongs the claim no more than a skipped one."""
    other = {"plugin": "legacy", "legacy": "plugin"}[owner]
    let_in = [{**prompt(runtimePath=other), "t0": at} for at in (14000, 28000)]
    judgement = judged(tmp_path, [STEP, start(runtimePath=owner), *let_in]).daemon["SIG-DAEMON-003"]
    assert [finding.exchanges for finding in judgement.findings] == [(3, 2)]


@pytest.mark.parametrize(("seconds", "subjects"), [(14400, 1), (14401, 0)])
def test_a_claim_lasts_four_hours(seconds: float, subjects: int, tmp_path: Path) -> None:
    """They are counted from the answer to the last hook."""
    items = [STEP, {**start(), "t0": 1, "t1": 10}, {**prompt(SKIPPED, **LEGACY), "t0": 10 + seconds}]
    assert judged(tmp_path, items).daemon["SIG-DAEMON-003"].subjects == subjects


@pytest.mark.parametrize(("seconds", "subjects"), [(1800, 1), (1801, 0)])
def test_an_end_is_remembered_for_thirty_minutes(seconds: float, subjects: int, tmp_path: Path) -> None:
    """They are counted from the answer to the first end."""
    items = [STEP, {**end(), "t0": 1, "t1": 10}, {**end(DROPPED), "t0": 10 + seconds}]
    assert judged(tmp_path, items).daemon["SIG-DAEMON-005"].subjects == subjects


@pytest.mark.parametrize(
    ("number", "items", "expected", "received"),
    [
        ("003", [start(), prompt(**LEGACY)], "200 skipped, claimedBy plugin", 200),
        ("003", [start(), start(**LEGACY)], "409", 200),
        ("004", [start(), start()], "the stub: no memories, inject beginning with [memory active", "[memory] Friday"),
        ("005", [end(), end()], "skipped and duplicateSessionEnd", ENDED),
        ("010", [EXEC, GONE], "200 with id job-1", 404),
        ("011", [start(), prompt(UNKNOWN)], "true", False),
    ],
)
def test_a_breach_shows_what_was_answered(
    number: str, items: Sequence[Item], expected: str, received: object, tmp_path: Path
) -> None:
    """Beside what the contract has."""
    finding = judged(tmp_path, [STEP, *items]).daemon[f"SIG-DAEMON-{number}"].findings[0]
    assert (finding.expected, finding.received) == (expected, received)
