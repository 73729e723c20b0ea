"""Facts about single answers of the daemon: which are looked at, and what of them counts.

What comes before an answer that breaks the contract never hides it: many of these recordings hold both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.finding import Verdict
from tests.support.daemon_items import (
    BOTH,
    HEALTH,
    PRIVATE,
    PROMPTED,
    RECALLED,
    ROW,
    SAVED,
    STEP,
    Item,
    call,
    end,
    hook,
    judged,
    modify,
    prompt,
    ran,
    read,
    start,
)  # fmt: skip

NONE = "NOT-APPLICABLE"
BROKEN = prompt({**PROMPTED, "inject": 42})
REFUSED = prompt({"error": "userMessage is required"}, 400)
COMPACTED = hook("compaction-complete", {"success": True}, summary="x")
UNKNOWN_ROUTE = call("GET", "/api/no-such", None, 200, {})
FAILED = prompt({}, 503)
OF_BEACON = hook("remember", SAVED, content="x", visibility="private", agentId="beacon-agent")
PUBLIC = hook("remember", {**SAVED, "id": "m-2"}, content="x", visibility="global")
SHARED = hook("remember", {**SAVED, "id": "m-2"}, content="x", visibility="shared")
TOLD_TWICE = hook("remember", {**SAVED, "deduped": True}, content="x", visibility="private")
BY_BEACON = {"agentId": "beacon-agent"}


def row(memory: str, answered: str, agent: str = "atlas-agent") -> Item:
    """GET of a memory, answered with one of some id."""
    return call("GET", f"/api/memory/{memory}", None, 200, {**ROW, "id": answered}, query={"agentId": agent})


def patched(patches: Any, results: Any, status: int = 200) -> Item:
    """Patches, and the answer to them."""
    return call("POST", "/api/memory/modify", {"patches": patches}, status, {"results": results, "error": "no"})


FACTS: Mapping[str, Mapping[str, tuple[str, Sequence[Item]]]] = {
    "001": {
        "after a refusal": ("FAIL", [REFUSED, BROKEN]),
        "after an answer without a contract": ("FAIL", [UNKNOWN_ROUTE, BROKEN]),
        "after an answer as it should be": ("FAIL", [prompt(), BROKEN]),
        "after /health": ("FAIL", [call("GET", "/health", None, 200, "ok"), BROKEN]),
        "half an emoji is text": ("PASS", [prompt({**PROMPTED, "inject": "cut \ud83d"})]),
    },
    "002": {
        "after a success": ("FAIL", [prompt(), prompt({}, 400)]),
        "a failure is no refusal": (NONE, [FAILED, prompt({}, 500)]),
        "an object says why over JSON-RPC only": ("FAIL", [prompt({"error": {"message": "no"}}, 400)]),
        "whatever hook it is": ("FAIL", [hook("compaction-complete", {"error": {"message": "no"}}, 400)]),
        "a status says why of a memory only": ("FAIL", [prompt({"status": "not_found"}, 400)]),
        "of a memory an error does too": (
            "PASS", [call("DELETE", "/api/memory/m-1", {}, 400, {"error": "reason is required"})],
        ),
        "a HEAD has no body": (NONE, [call("HEAD", "/health", None, 404, None)]),
    },
    "006": {
        "after a refusal": ("FAIL", [REFUSED, PRIVATE, read(ROW, agent="beacon-agent")]),
        "a memory that is not private": (NONE, [PRIVATE, PUBLIC, row("m-2", "m-2", "beacon-agent")]),
        "a memory with another visibility": (NONE, [PRIVATE, SHARED, row("m-2", "m-2", "beacon-agent")]),
        "a memory that another had saved before": (NONE, [TOLD_TWICE, read(ROW, agent="beacon-agent")]),
        "a memory without an id": (
            NONE,
            [hook("remember", {**SAVED, "id": 7}, content="x", visibility="private"), row("7", "7", "beacon-agent")],
        ),
        "to an agent that sorts before": ("FAIL", [OF_BEACON, read(ROW)]),
        "beside another memory": (
            "FAIL", [PRIVATE, hook("recall", {"results": [{"id": "m-9"}, {"id": 7}, ROW]}, query="x", **BY_BEACON)],
        ),
        "to an agent that asks for private ones": (
            "FAIL", [PRIVATE, hook("recall", {"results": [ROW]}, query="x", visibility="private", **BY_BEACON)],
        ),
        "a refusal that repeats the id": (
            NONE,
            [PRIVATE, call("GET", "/api/memory/m-1", None, 404, {"error": "not found", "id": "m-1"}, query=BY_BEACON)],
        ),
        "in results that are not rows": (NONE, [PRIVATE, hook("recall", {"results": "m-1"}, query="x", **BY_BEACON)]),
        "a hook that is no recall": (NONE, [PRIVATE, end({"results": [ROW]}, **BY_BEACON)]),
    },
    "007": {
        "after another request": ("FAIL", [prompt(), row("m-1", "m-2")]),
        "whatever it is called": ("FAIL", [row("tau-1", "m-2")]),
        "statistics are no memory": (NONE, [row("stats", "m-2")]),
        "a beginning of the id is enough": ("PASS", [row("M-1", "m-1-and-more")]),
        "an id in capitals": ("PASS", [row("m-1", "M-1")]),
        "an id with white space": ("PASS", [row("%20m-1", "m-1")]),
        "a memory without an id": ("FAIL", [call("GET", "/api/memory/m-1", None, 200, {"content": "x"})]),
    },
    "008": {
        "after another request": ("FAIL", [prompt(), call("GET", "/health", None, 200, {})]),
        "another request has no version": (NONE, [COMPACTED, prompt()]),
        "a version that was named once": ("PASS", [prompt(), call("GET", "/health", None, 200, HEALTH)]),
    },
    "009": {
        "after an answer without a body": ("FAIL", [prompt(None), ran("<redacted:1>")]),
        "after an answer that shows none": ("FAIL", [prompt(), ran("<redacted:1>")]),
        "a secret with letters beyond ASCII": ("FAIL", [ran("Schlüssel")]),
        "a secret in an answer that is text": ("FAIL", [call("GET", "/health", None, 200, "it is Schlüssel")]),
    },
    "012": {
        "after another request": ("FAIL", [prompt(), modify(BOTH[:1])]),
        "another request has no patches": (NONE, [start(patches=[{"id": "m-1"}])]),
        "whatever hook it is": (NONE, [hook("compaction-complete", {"success": True}, patches=[{"id": "m-1"}])]),
        "refused patches": (NONE, [patched([{"id": "m-1"}], [], 400)]),
        "patches that are no list": (NONE, [patched("m-1", [])]),
        "one too many": ("FAIL", [modify([*BOTH, {"id": "m-3"}])]),
        "a later one in place of one": ("FAIL", [modify([BOTH[0], {"id": "m-3"}])]),
        "an earlier one in place of one": ("FAIL", [modify([BOTH[0], {"id": "m-0"}])]),
        "a patch that is no object": ("PASS", [patched(["m-1"], [{"id": None}])]),
    },
}  # fmt: skip
ALL = [(number, fact) for number, facts in FACTS.items() for fact in facts]
CANARIES = {"declared": {"canaries": {"<redacted:1>": "ACME", "Schlüssel": "ACME"}}}


@pytest.mark.parametrize(("number", "fact"), ALL, ids=[f"{number}: {fact}" for number, fact in ALL])
def test_a_fact_has_its_verdict(number: str, fact: str, tmp_path: Path) -> None:
    """The requirement has the verdict of the fact."""
    verdict, items = FACTS[number][fact]
    judgement = judged(tmp_path, items, **CANARIES).daemon[f"SIG-DAEMON-{number}"]
    assert (judgement.verdict, judgement.message) == (Verdict(verdict), judgement.message)


def test_a_daemon_before_the_first_contract_is_held_to_it(tmp_path: Path) -> None:
    """What the first contract asks for was asked for before."""
    judgement = judged(tmp_path, [STEP, BROKEN], daemon_version="0.40.0").daemon["SIG-DAEMON-001"]
    assert judgement.verdict is Verdict.FAIL


@pytest.mark.parametrize(
    ("number", "items", "pointer", "says", "expected", "received"),
    [
        ("001", [prompt({"inject": ""})], "/memoryCount", "memoryCount is absent", "the absent member", None),
        ("001", [BROKEN], "/inject", "not as the contract requires", '42 is not of type "string"', 42),
        ("001", [prompt({**PROMPTED, "inject": {}})], "/inject", "not as", '{} is not of type "string"', {}),
        ("001", [start(["no"])], "/json", "the answer is not as", '["no"] is not of type "object"', ["no"]),
        ("006", [PRIVATE, RECALLED], "/results", "to 'beacon-agent'", "404, or a result without it", "m-1"),
        (
            "006", [PRIVATE, hook("recall", {"results": [ROW]}, query="x", **BY_BEACON)], "/results", "hooks-recall",
            "404, or a result without it", "m-1",
        ),
        ("012", [modify(BOTH[:1])], "/results", "one by one", "2 results, in the order of the patches", ["m-1"]),
    ],
)  # fmt: skip
def test_what_a_breach_tells(
    number: str, items: Sequence[Item], pointer: str, says: str, expected: str, received: Any, tmp_path: Path
) -> None:
    """Where it stands, what was expected there and what was received."""
    judgement = judged(tmp_path, items).daemon[f"SIG-DAEMON-{number}"]
    finding = judgement.findings[0]
    assert (finding.pointer[-len(pointer) :], finding.expected, finding.received) == (pointer, expected, received)
    assert says in judgement.message
