"""Facts about calls that look right by themselves: only steps tell that they are of another session, or once more."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from signet_conformance.engine import judge
from tests.rules.step_items import CLOSED, OPENED, PROBE, Item, end, mark, step
from tests.rules.told_items import (
    ATLAS,
    BEACON,
    IN_ONE_LINE,
    INJECT,
    INJECTING,
    MODEL,
    NATIVE,
    NO_RECALL,
    NO_SEARCH,
    REFUSED,
    TWO,
    answered,
    call,
    get,
    injecting,
    prompt,
    recall,
    refused,
    said,
    save,
    start,
    told_at_the_end,
    tool,
)
from tests.support.case_traces import build

STARTED = "/api/hooks/session-start"


def sent(*paths: str) -> Item:
    """What the driver saw the connector send in a step."""
    requests = [["GET" if path == "/health" else "POST", path, "index.mjs:1:1"] for path in paths]
    return mark("sent", index=0, requests=requests)


HELD = {**start("k1", status=409), "fault": {"kind": "status"}}
BUSY, LIMITED = (
    {**start("k1"), "response": {"status": status, "body": {"error": "no"}, "headers": {"retry-after": "30"}}}
    for status in (503, 429)
)
ALOUD = "How do exports run, and when?"
FACTS: Mapping[str, tuple[str, str, Sequence[Item], list[tuple[int, ...]]]] = {
    "a tool runs as the agent of the session that was opened last": (
        "SIG-AGENT-002", "FAIL", [*TWO, tool("s1", "memory_store"), save("k2", BEACON)], [(6,)],
    ),
    "a hook sent in the same step does not answer the tool call": (
        "SIG-AGENT-002", "FAIL",
        [*TWO, tool("s1", "memory_store"), prompt("k1", ALOUD), save("k2", BEACON)], [(7,)],
    ),
    "a look-up beside it may be what the tool began with": (
        "SIG-AGENT-002", "PASS", [*TWO, tool("s1", "memory_store"), get(200), save("k2", BEACON)], [],
    ),
    "a tool that sends nothing is not what another session does late": (
        "SIG-AGENT-002", "PASS", [*TWO, tool("s2", "memory_store"), tool("s1", "memory_store"), save("k2", BEACON)], [],
    ),
    "a tool that is skipped asks for nothing": (
        "SIG-AGENT-002", "PASS",
        [*TWO, step("tool", "s1", tool="memory_store", index=7), save("k2", BEACON),
         {"mark": "skipped", "data": {"index": 7, "reason": "no such tool"}}], [],
    ),
    "a save is not what a search asks for": (
        "SIG-AGENT-002", "PASS", [*TWO, tool("s1", "memory_search"), save("k2", BEACON)], [],
    ),
    "a late save of another session comes beside what the tool asks for": (
        "SIG-AGENT-002", "PASS", [*TWO, tool("s1", "memory_search"), save("k2", BEACON), recall("k1", ATLAS)], [],
    ),
    "a tool's call without a key may be what it asks for": (
        "SIG-AGENT-002", "PASS", [*TWO, tool("s1", "memory_store"), save("k2", BEACON), save(None, ATLAS)], [],
    ),
    "a turn without a session runs as the agent of the session that is open": (
        "SIG-AGENT-002", "FAIL",
        [*TWO[:2], step("sessionless_prompt", "aside", agent=BEACON, text=ALOUD), prompt("k1", ALOUD)], [(4,)],
    ),
    "another text in a turn without a session is of the session whose key it has": (
        "SIG-AGENT-002", "PASS",
        [*TWO[:2], step("sessionless_prompt", "aside", agent=BEACON, text=ALOUD), prompt("k1", "Something else")], [],
    ),
    "a look-up that was refused comes again while another tool is called": (
        "SIG-HTTP-010", "WARN", [tool("s1", "memory_get"), get(404), tool("s1", "memory_search"), get(404)], [(4, 2)],
    ),
    "who changes a memory may look it up once more": (
        "SIG-HTTP-010", "PASS", [tool("s1", "memory_get"), get(404), tool("s1", "memory_modify"), get(404)], [],
    ),
    "the same tool called again asks for it again": (
        "SIG-HTTP-010", "PASS", [tool("s1", "memory_get"), get(404), tool("s1", "memory_get"), get(404)], [],
    ),
    "a search that was refused is asked for by the tool again": (
        "SIG-HTTP-010", "PASS",
        [tool("s1", "memory_search"), NO_RECALL, tool("s1", "memory_search"), NO_RECALL], [],
    ),
    "so is a hook's own search": (
        "SIG-HTTP-010", "PASS",
        [tool("s1", "memory_search"), NO_SEARCH, tool("s1", "memory_search"), NO_SEARCH], [],
    ),
    "a start that a fault refused comes again where the model calls a tool": (
        "SIG-HTTP-010", "WARN", [step("start", "s1"), REFUSED, tool("s1", "memory_search"), INJECTING], [(4, 2)],
    ),
    "a start that a fault refused comes again where the user compacts": (
        "SIG-HTTP-010", "WARN", [step("start", "s1"), REFUSED, step("compact", "s1"), INJECTING], [(4, 2)],
    ),
    "a prompt that a fault refused comes again at the next turn": (
        "SIG-HTTP-010", "WARN",
        [step("start", "s1"), refused(prompt("k1", ALOUD)), step("prompt", "s1"),
         answered(prompt("k1", ALOUD), inject="", memoryCount=0)], [(4, 2)],
    ),
    "an end that a fault refused comes again at the next turn": (
        "SIG-HTTP-010", "WARN",
        [step("end", "s1"), refused(call("session-end", "k1", ATLAS)), step("prompt", "s1"),
         call("session-end", "k1", ATLAS)], [(4, 2)],
    ),
    "a start that a fault refused comes again at the next turn, when the fault is over": (
        "SIG-HTTP-010", "PASS", [step("start", "s1"), REFUSED, step("prompt", "s1"), INJECTING], [],
    ),
    "a start that the daemon refused while it was slow comes again at the next turn": (
        "SIG-HTTP-010", "WARN",
        [step("start", "s1"), {**REFUSED, "fault": {"kind": "delay"}}, step("prompt", "s1"), INJECTING], [(4, 2)],
    ),
    "a start that a fault refuses at each turn is asked for by each": (
        "SIG-HTTP-010", "PASS",
        [step("start", "s1"), REFUSED, step("prompt", "s1"), REFUSED, step("prompt", "s1"), REFUSED], [],
    ),
    "a start that a fault refuses comes twice in a later turn": (
        "SIG-HTTP-010", "WARN", [step("prompt", "s1"), REFUSED, step("prompt", "s1"), REFUSED, REFUSED], [(5, 4)],
    ),
    "a session that another path holds is asked for at each turn": (
        "SIG-HTTP-010", "WARN", [step("prompt", "s1"), HELD, step("prompt", "s1"), HELD], [(4, 2)],
    ),
    "a start that the daemon itself refuses comes again at each turn": (
        "SIG-HTTP-010", "WARN",
        [step("prompt", "s1"), start("k1", status=401), step("prompt", "s1"), start("k1", status=401)], [(4, 2)],
    ),
    "a start that a busy daemon refused comes again at the next turn, before its time": (
        "SIG-HTTP-011", "FAIL", [step("prompt", "s1"), BUSY, step("prompt", "s1"), INJECTING], [(4, 2)],
    ),
    "a start comes again at the next turn, before the time of a limit": (
        "SIG-HTTP-015", "WARN", [step("prompt", "s1"), LIMITED, step("prompt", "s1"), INJECTING], [(4, 2)],
    ),
    "a start that a fault refused comes again at once": (
        "SIG-HTTP-010", "WARN", [step("prompt", "s1"), REFUSED, INJECTING], [(3, 2)],
    ),
    "a start that the daemon itself refused comes again at the next turn": (
        "SIG-HTTP-010", "WARN",
        [step("start", "s1"), start("k1", status=401), step("prompt", "s1"), INJECTING], [(4, 2)],
    ),
    "a probe that was sent first and did not arrive may be the machine's": (
        "SIG-HEALTH-001", "INCONCLUSIVE", [step("start", "s1"), INJECTING, sent("/health", STARTED)], [],
    ),
    "a probe that the connector gave up though nothing disturbed it may be the machine's": (
        "SIG-HEALTH-001", "INCONCLUSIVE",
        [step("start", "s1"), {**PROBE, "error": {"kind": "client_closed"}}, INJECTING, sent("/health", STARTED)], [],
    ),
    "a probe that the connector gave up in a fault": (
        "SIG-HEALTH-001", "WARN",
        [step("start", "s1"), {**PROBE, "error": {"kind": "client_closed"}, "fault": {"kind": "delay"}}, INJECTING,
         sent("/health", STARTED)], [(3,)],
    ),
    "a probe that no daemon answered": (
        "SIG-HEALTH-001", "WARN",
        [step("start", "s1"), {**PROBE, "response": None, "error": {"kind": "upstream_refused"}}, INJECTING,
         sent("/health", STARTED)], [(3,)],
    ),
    "a probe that was sent first and arrived late": (
        "SIG-HEALTH-001", "WARN", [step("start", "s1"), INJECTING, PROBE, sent("/health", STARTED)], [(2,)],
    ),
    "a probe that was sent second and did not arrive": (
        "SIG-HEALTH-001", "WARN", [step("start", "s1"), INJECTING, sent(STARTED, "/health")], [(2,)],
    ),
    "a probe that was sent in a later step": (
        "SIG-HEALTH-001", "WARN", [step("start", "s1"), INJECTING, step("prompt", "s1"), sent("/health")],
        [(2,)],
    ),
    "a turn is submitted in another session too": (
        "SIG-PROMPT-003", "WARN",
        [*TWO, said("s1", ALOUD), prompt("k1", ALOUD), prompt("k2", ALOUD, BEACON), MODEL], [(7, 6)],
    ),
    "the user says the same again": (
        "SIG-PROMPT-003", "PASS",
        [*TWO[:2], said("s1", ALOUD), prompt("k1", ALOUD), MODEL, said("s1", ALOUD), prompt("k1", ALOUD), MODEL], [],
    ),
    "a turn is submitted again in the turn that follows it": (
        "SIG-PROMPT-003", "WARN",
        [*TWO[:2], said("s1", ALOUD), prompt("k1", ALOUD), MODEL, said("s1", "And when?"), prompt("k1", ALOUD), MODEL],
        [(7, 4)],
    ),
    "a sub-agent's turn is submitted in the session that it works in too": (
        "SIG-PROMPT-003", "PASS",
        [*TWO[:2], step("start", "s2", agent=ATLAS, parent="s1"), start("k2"), said("s2", ALOUD), prompt("k1", ALOUD),
         prompt("k2", ALOUD), MODEL], [],
    ),
    "what nobody said is submitted in two turns": (
        "SIG-PROMPT-003", "WARN",
        [*TWO[:2], said("s1", "Where are they?"), prompt("k1", "Are they?"), MODEL, said("s1", "Whose are they?"),
         prompt("k1", "Are they?"), MODEL], [(7, 4)],
    ),
    "a turn is submitted in an earlier session alone": (
        "SIG-PROMPT-003", "INCONCLUSIVE", [*TWO, said("s2", ALOUD), prompt("k1", ALOUD)], [],
    ),
    "a turn is submitted in a later session alone": (
        "SIG-PROMPT-003", "INCONCLUSIVE", [*TWO, said("s1", ALOUD), prompt("k2", ALOUD, BEACON)], [],
    ),
    "the words of a third session excuse nothing, nor do others of the second": (
        "SIG-PROMPT-003", "WARN",
        [*TWO, said("s3", ALOUD), said("s2", "Where is it?"), said("s1", ALOUD), prompt("k1", ALOUD),
         prompt("k2", ALOUD, BEACON), MODEL], [(9, 8)],
    ),
    "a text that the user did not say is sent in two sessions": (
        "SIG-PROMPT-003", "PASS",
        [*TWO, said("s1", ALOUD), prompt("k1", "Where?"), prompt("k2", "Where?", BEACON), MODEL], [],
    ),
    "the same with a text that sorts before what the user said": (
        "SIG-PROMPT-003", "PASS",
        [*TWO, said("s1", ALOUD), prompt("k1", "Are they?"), prompt("k2", "Are they?", BEACON), MODEL], [],
    ),
    "the same words of two sessions are a turn of each": (
        "SIG-PROMPT-003", "INCONCLUSIVE",
        [*TWO, said("s1", ALOUD), said("s2", ALOUD), prompt("k1", ALOUD), prompt("k2", ALOUD, BEACON)], [],
    ),
    "what another session says in the same step is its own": (
        "SIG-PROMPT-003", "PASS",
        [*TWO, said("s1", ALOUD), prompt("k1", ALOUD), prompt("k2", "And the ledger?", BEACON), MODEL], [],
    ),
    "the model's answer is submitted as a prompt": (
        "SIG-PROMPT-010", "WARN",
        [*TWO[:2], said("s1", ALOUD, "At night."), prompt("k1", ALOUD), prompt("k1", "At night.")], [(5,)],
    ),
    "some other text beside the turn may be the harness's own": (
        "SIG-PROMPT-010", "PASS",
        [*TWO[:2], said("s1", ALOUD, "At night."), prompt("k1", ALOUD), prompt("k1", "A title for it")], [],
    ),
    "what was injected comes back in a transcript of JSON lines": (
        "SIG-PROMPT-007", "WARN", [step("start"), INJECTING, told_at_the_end(f"{INJECT}\n\nWho is paged?")], [(3, 2)],
    ),
    "it comes back as the words of the system": (
        "SIG-PROMPT-007", "WARN", [step("start"), INJECTING, told_at_the_end(INJECT, role="system")], [(3, 2)],
    ),
    "lines of it in another order are not the whole": (
        "SIG-PROMPT-007", "PASS",
        [step("start"), INJECTING, told_at_the_end("\n\n".join(INJECT.split("\n\n")[::-1]))], [],
    ),
    "what no turn says is not looked through": (
        "SIG-PROMPT-007", "PASS",
        [step("start"), INJECTING, call("session-end", "k1", ATLAS, transcript=json.dumps({"attachment": INJECT}))], [],
    ),
    "a part of it is not the whole": (
        "SIG-PROMPT-007", "PASS", [step("start"), INJECTING, told_at_the_end(INJECT[:60])], [],
    ),
    "it comes back in a transcript that writes each turn in one line": (
        "SIG-PROMPT-007", "WARN",
        [step("start"), INJECTING, call("session-end", "k1", ATLAS, transcript=f"Custom: {IN_ONE_LINE}\nUser: Who?")],
        [(3, 2)],
    ),
    "a part of it in one line is not the whole": (
        "SIG-PROMPT-007", "PASS",
        [step("start"), INJECTING, call("session-end", "k1", ATLAS, transcript=f"Custom: {IN_ONE_LINE[:-8]}")], [],
    ),
    "forty letters in one line tell that they were injected": (
        "SIG-PROMPT-007", "WARN",
        [step("start"), injecting("Deploys  go out on a Tuesday morning, all"),
         call("session-end", "k1", ATLAS, transcript="User: Deploys go out on a Tuesday morning, all of them.")],
        [(3, 2)],
    ),
    "fewer letters in one line do not": (
        "SIG-PROMPT-007", "PASS",
        [step("start"), injecting("Deploys  go out on a Monday morning, all"),
         call("session-end", "k1", ATLAS, transcript="User: Deploys go out on a Monday morning, all of them.")], [],
    ),
    "words of it that run into each other are not it": (
        "SIG-PROMPT-007", "PASS",
        [step("start"), INJECTING, call("session-end", "k1", ATLAS, transcript=IN_ONE_LINE.replace(" ", ""))], [],
    ),
    "without marks it comes back in one line unseen": (
        "SIG-PROMPT-007", "PASS",
        [INJECTING, call("session-end", "k1", ATLAS, transcript=f"Custom: {IN_ONE_LINE}")], [],
    ),
    "without marks its line breaks are escaped": (
        "SIG-PROMPT-007", "PASS", [INJECTING, told_at_the_end(INJECT)], [],
    ),
    "a session that was cleared is opened anew at the next prompt, and nobody says why": (
        "SIG-START-006", "WARN",
        [*TWO[:2], step("clear"), call("session-end", "k1", ATLAS, reason="session_switch"), said("s1", ALOUD),
         start("k1", source="startup")], [(6, 4)],
    ),
    "the last of several openings counts": (
        "SIG-START-006", "WARN",
        [*TWO[:2], step("end"), end("k1"), step("resume"), start("k1", source="resume"), step("clear", index=5),
         call("session-end", "k1", ATLAS, reason="session_switch"), said("s1", ALOUD), start("k1", source="startup")],
        [(10, 8)],
    ),
    "one that was ended where it was opened": (
        "SIG-START-006", "PASS", [*TWO[:2], end("k1"), said("s1", ALOUD), start("k1", source="startup")], [],
    ),
    "one that was ended before, and is opened where it is cleared": (
        "SIG-START-006", "WARN",
        [*TWO[:2], step("end"), end("k1"), step("clear"), start("k1", source="startup")], [(6, 4)],
    ),
    "one that is opened where it is cleared, though nothing listened for a moment": (
        "SIG-START-006", "WARN",
        [*TWO[:2], step("clear"), call("session-end", "k1", ATLAS, reason="session_switch"), CLOSED, OPENED,
         start("k1", source="startup")], [(7, 4)],
    ),
    "one whose start may be lost": (
        "SIG-START-006", "INCONCLUSIVE",
        [*TWO[:2], step("clear"), call("session-end", "k1", ATLAS, reason="session_switch"), CLOSED, OPENED,
         said("s1", ALOUD), start("k1", source="startup")], [],
    ),
    "one that was not cleared after all": (
        "SIG-START-006", "PASS",
        [*TWO[:2], step("clear", index=3), call("session-end", "k1", ATLAS, reason="session_switch"),
         {"mark": "skipped", "data": {"index": 3, "reason": "it has no such command"}}, said("s1", ALOUD),
         start("k1", source="startup")], [],
    ),
    "one that was ended before it was cleared": (
        "SIG-START-006", "PASS",
        [*TWO[:2], step("end"), end("k1"), step("clear"), said("s1", ALOUD), start("k1", source="startup")], [],
    ),
    "one whose end says that it was cleared": (
        "SIG-START-006", "PASS",
        [*TWO[:2], step("clear"), call("session-end", "k1", ATLAS, reason="clear"), said("s1", ALOUD),
         start("k1", source="startup")], [],
    ),
    "one whose start comes late, in the step in which another session is cleared": (
        "SIG-START-006", "PASS",
        [*NATIVE, *TWO, step("end"), end("k1"), step("resume"), step("clear", "s2"), start("k1", source="startup")], [],
    ),
    "one that was cleared, and whose start comes late in the step of another": (
        "SIG-START-006", "WARN",
        [*NATIVE, *TWO, step("clear"), step("end", "s2"), end("k1"), start("k1", source="startup")], [(10, 9)],
    ),
    "one that was not cleared, and whose start comes late in the step of another": (
        "SIG-START-006", "PASS",
        [*NATIVE, *TWO, step("clear", index=3), {"mark": "skipped", "data": {"index": 3, "reason": "no such command"}},
         step("end", "s2"), end("k1"), start("k1", source="startup")], [],
    ),
    "one that was not cleared, and whose start comes then": (
        "SIG-START-006", "PASS",
        [*TWO[:2], step("end"), end("k1"), step("clear", index=3), start("k1", source="startup"),
         {"mark": "skipped", "data": {"index": 3, "reason": "no such command"}}], [],
    ),
    "one that was resumed and cleared at once, and whose start comes late": (
        "SIG-START-006", "PASS",
        [*TWO[:2], step("end"), end("k1"), step("resume"), step("clear"), start("k1", source="resume"),
         call("session-end", "k1", ATLAS, reason="clear"), start("k1", source="startup")], [],
    ),
    "one that was resumed and cleared at once, whose end before comes late": (
        "SIG-START-006", "PASS",
        [*TWO[:2], step("end"), step("resume"), prompt("k3", ALOUD), end("k1"), step("clear"),
         start("k1", source="resume"), call("session-end", "k1", ATLAS, reason="clear"), start("k1", source="startup")],
        [],
    ),
    "one that was resumed and cleared at once, which is said when the user goes on elsewhere": (
        "SIG-START-006", "PASS",
        [*TWO[:2], step("end"), end("k1"), step("resume"), step("clear"), start("k1", source="resume"),
         said("s0", ALOUD), said("s2", ALOUD), call("session-end", "k1", ATLAS, reason="clear"),
         start("k1", source="startup")], [],
    ),
    "one that was resumed and cleared at once, and that had been cleared before": (
        "SIG-START-006", "WARN",
        [TWO[0], start("k1", source="clear"), step("end"), end("k1"), step("resume"), step("clear"),
         start("k1", source="resume")], [(2,), (7, 4)],
    ),
    "one that another kit's step asked to be opened anew": (
        "SIG-START-006", "PASS",
        [*TWO[:2], end("k1"), step("checkpoint"), start("k1", source="startup")], [],
    ),
    "one that was resumed and cleared at once, of which nothing says so": (
        "SIG-START-006", "WARN",
        [*TWO[:2], step("end"), end("k1"), step("resume"), step("clear"), start("k1", source="resume"),
         end("k1"), start("k1", source="startup")], [(7, 4), (9, 8)],
    ),
    "one that was resumed and cleared at once, which only the next step says": (
        "SIG-START-006", "WARN",
        [*TWO[:2], step("end"), end("k1"), step("resume"), step("clear"), start("k1", source="resume"), step("end"),
         call("session-end", "k1", ATLAS, reason="clear")], [(7, 4)],
    ),
    "one that was resumed and cleared at once, while another session says so": (
        "SIG-START-006", "WARN",
        [*TWO, step("end"), end("k1"), step("resume"), step("clear"), start("k1", source="resume"),
         start("k2", BEACON, source="clear")], [(9, 6), (10,)],
    ),
    "a key that was never let in is left for a new one": (
        "SIG-END-010", "NOT-APPLICABLE",
        [step("start", "s1"), start("k1", status=409), said("s1", ALOUD), start("k2")], [],
    ),
    "though a turn of it was let in": (
        "SIG-END-010", "NOT-APPLICABLE",
        [step("start", "s1"), start("k1", status=409), said("s1", ALOUD), prompt("k1", ALOUD), start("k2")], [],
    ),
    "though a compaction of it was let in": (
        "SIG-END-010", "NOT-APPLICABLE",
        [step("start", "s1"), start("k1", status=409), step("compact"), call("pre-compaction", "k1", ATLAS),
         start("k2")], [],
    ),
    "a key whose start failed is left for a new one": (
        "SIG-END-010", "WARN",
        [step("start", "s1"), start("k1", status=500), said("s1", ALOUD), start("k2")], [(2, 4)],
    ),
    "a key that was let in is left for a new one": (
        "SIG-END-010", "WARN", [step("start", "s1"), start("k1"), said("s1", ALOUD), start("k2")], [(2, 4)],
    ),
    "without marks a start that was refused asks for no end": (
        "SIG-END-010", "INCONCLUSIVE", [start("k1", status=409), start("k2")], [],
    ),
}  # fmt: skip


@pytest.mark.parametrize("fact", FACTS)
def test_step_marks_decide_about_calls_that_look_right(fact: str, tmp_path: Path) -> None:
    """The verdict, and of a breach the exchanges that are named."""
    requirement, verdict, items, exchanges = FACTS[fact]
    header = {"declared": {"agents": [ATLAS, BEACON], "harness": "openclaw"}}
    trace = build(tmp_path / "trace.jsonl", items, header, shared=False)
    judgement = judge(trace, frozenset({requirement})).judgements[requirement]
    assert judgement.verdict == verdict, judgement.message
    assert verdict not in ("WARN", "FAIL") or [finding.exchanges for finding in judgement.findings] == exchanges
