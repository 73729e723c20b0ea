"""Facts about agents: whose call is the wrong one, and what of a call names its agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.engine import judge
from signet_conformance.finding import Judgement, Verdict
from tests.support.case_traces import DECLARED, KEYED, build

Item = Mapping[str, Any]


def hook(operation: str, agent: Any, key: str = "k1", **request: Any) -> Item:
    """A hook of a key that runs as an agent."""
    body = {**KEYED, "sessionKey": key, "agentId": agent, "userMessage": "one"}
    return {"request": {"method": "POST", "path": f"/api/hooks/{operation}", "body": body, **request}}


def start(agent: Any, key: str = "k1") -> Item:
    """A session-start as an agent."""
    return hook("session-start", agent, key)


def prompt(agent: Any, key: str = "k1", **request: Any) -> Item:
    """A user-prompt-submit as an agent."""
    return hook("user-prompt-submit", agent, key, **request)


def memory(name: str, agent: str | None) -> Item:
    """GET of a memory as an agent."""
    request = {"method": "GET", "path": f"/api/memory/{name}", "query": {"agentId": agent}}
    return {"request": request, "response": {"status": 200, "body": {"id": name}}}


def step(agent: str | None, kind: str = "start", session: str | None = "s1") -> Item:
    """A step of a session that was opened with an agent."""
    return {"mark": "step", "data": {"step": kind, "session": session, "agent": agent}}


def judged(folder: Path, requirement: str, items: Sequence[Item], **declared: Any) -> Judgement:
    """One requirement over these items."""
    header = {"declared": {**DECLARED, **declared}, "daemon_version": "0.205.0"}
    trace = build(folder / "trace.jsonl", items, header, shared=False)
    return judge(trace, frozenset({requirement})).judgements[requirement]


@pytest.mark.parametrize(
    ("items", "exchanges"),
    [
        ([start("m"), prompt("m")], []),
        ([start("m"), prompt("a"), prompt("z")], [(2, 1), (3, 1)]),
        ([prompt("a"), start("m")], [(1, 2)]),
        ([prompt("m"), prompt("a")], [(2, 1)]),
        ([step("m"), start("a"), prompt("m")], [(2,)]),
        ([step("m"), start("z"), prompt("m")], [(2,)]),
        ([step("m"), start("m"), prompt("z")], [(3, 2)]),
        ([step("beacon"), start("beacon"), prompt("z")], [(3, 2)]),
        ([start("m", "k2"), start("m"), prompt("a")], [(3, 2)]),
        ([start("m"), prompt("m", "k2"), prompt("a")], [(3, 1)]),
    ],
)
def test_the_call_that_runs_as_another_agent(
    items: Sequence[Item], exchanges: Sequence[tuple[int, ...]], tmp_path: Path
) -> None:
    """It is the one that differs from the start, or from what the kit asked for; the start is named if it is right."""
    judgement = judged(tmp_path, "SIG-AGENT-001", items)
    assert [finding.exchanges for finding in judgement.findings] == exchanges
    assert exchanges or judgement.verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("body", "header", "received"),
    [
        ("a", None, "a"),
        (None, "z", "only the header x-signet-agent-id: z"),
        ("a", "z", "a"),
        (None, None, None),
    ],
)
def test_what_was_sent_as_agent(body: str | None, header: str | None, received: str | None, tmp_path: Path) -> None:
    """The member, or that there was only a header, which the daemon does not read there."""
    items = [start("m"), prompt(body, headers={"x-signet-agent-id": header})]
    assert judged(tmp_path, "SIG-AGENT-001", items).findings[0].received == received


@pytest.mark.parametrize(
    ("items", "agents", "verdict", "exchanges"),
    [
        ([start("m"), prompt("a")], [], "INCONCLUSIVE", [(1,), (2,)]),
        ([start("m"), step("m"), start("a", "k2")], [], "FAIL", [(3,)]),
        ([start("m"), prompt("a")], ["m", "a"], "FAIL", [(2,)]),
        ([start("m"), start("a"), prompt("m")], ["m", "a"], "FAIL", [(2,)]),
        ([prompt("m"), prompt("a", "k2")], ["m", "a"], "PASS", []),
        ([prompt("x")], ["m", "a"], "FAIL", [(1,)]),
    ],
)
def test_the_declared_agent(
    items: Sequence[Item], agents: Sequence[str], verdict: str, exchanges: Sequence[Any], tmp_path: Path
) -> None:
    """A call without anything to compare it with leaves the next to be judged; the first start settles a key."""
    judgement = judged(tmp_path, "SIG-AGENT-002", items, agents=agents)
    assert (judgement.verdict, judgement.message) == (Verdict(verdict), judgement.message)
    assert [finding.exchanges for finding in judgement.findings] == exchanges


@pytest.mark.parametrize(
    ("key", "agent", "verdict"),
    [
        ("agent:m:1", "m", "PASS"),
        ("agent:m:1", " ", "PASS"),
        ("agent:m:1", "a", "WARN"),
        ("agent:m:1", "z", "WARN"),
        ("agent:m", "a", "NOT-APPLICABLE"),
        ("m:1", "a", "NOT-APPLICABLE"),
    ],
)
def test_the_agent_that_a_key_names(key: str, agent: str, verdict: str, tmp_path: Path) -> None:
    """A key with an agent in it and one that has none before it."""
    items = [start("a", "k9"), start(agent, key)]
    assert judged(tmp_path, "SIG-AGENT-004", items).verdict is Verdict(verdict)


BLANK, HARNESS = "a blank agent id", "the harness name is used as agent id"


@pytest.mark.parametrize(
    ("items", "pointer", "message"),
    [
        ([prompt("openclaw")], "/request/body/json/agentId", HARNESS),
        ([prompt(" ")], "/request/body/json/agentId", BLANK),
        ([prompt(None), prompt(" ")], "/request/body/json/agentId", BLANK),
        ([prompt("m", headers={"x-signet-agent-id": "openclaw"})], "/request/headers", HARNESS),
        ([prompt("z", headers={"x-signet-agent-id": "openclaw"})], "/request/headers", HARNESS),
        ([prompt(7, headers={"x-signet-agent-id": " "})], "/request/headers", BLANK),
    ],
)
def test_a_harness_is_no_agent(items: Sequence[Item], pointer: str, message: str, tmp_path: Path) -> None:
    """The finding points at what names the agent so, and tells a blank one from the name of the harness."""
    finding = judged(tmp_path, "SIG-AGENT-005", items).findings[0]
    assert (finding.pointer, finding.message) == (pointer, message)


@pytest.mark.parametrize(
    ("items", "agents", "verdict"),
    [
        ([memory("stats", "x"), memory("m-1", "x")], ["m"], "WARN"),
        ([memory("stats", "x")], ["m"], "NOT-APPLICABLE"),
        ([memory("m-1", "m")], ["m"], "PASS"),
        ([memory("m-1", "x")], ["default"], "NOT-APPLICABLE"),
        ([memory("m-1", "x")], [], "INCONCLUSIVE"),
        ([memory("m-1", "x"), step("m", "tool"), memory("m-1", "x")], [], "WARN"),
        ([step("m", "tool"), memory("m-1", "a")], ["m", "a"], "WARN"),
    ],
)
def test_the_agent_that_reads_a_memory(
    items: Sequence[Item], agents: Sequence[str], verdict: str, tmp_path: Path
) -> None:
    """Statistics are no memory; what cannot be compared leaves the next to be judged."""
    assert judged(tmp_path, "SIG-AGENT-006", items, agents=agents).verdict is Verdict(verdict)


@pytest.mark.parametrize(
    ("sent", "old", "later"),
    [
        ([start("a", "agent:a:1"), prompt(None, "agent:a:1")], [(2, 1)], []),
        ([start(None, "agent:a:1"), prompt("default", "agent:a:1")], [], [(2, 1)]),
        ([start(" a ", "agent:a:1"), prompt("a", "agent:a:1")], [], []),
        ([start(None, "agent:a:1"), prompt(None, "agent:a:1")], [], []),
    ],
)
def test_key_names_no_agent_to_an_old_daemon(
    sent: Sequence[Item], old: Sequence[tuple[int, ...]], later: Sequence[tuple[int, ...]], tmp_path: Path
) -> None:
    """A 0.58 reads it from the body alone, and takes the default agent where that names none."""
    for version, exchanges in (("0.58.1", old), ("0.109.15", later)):
        trace = build(tmp_path / "trace.jsonl", sent, {"daemon_version": version}, shared=False)
        judgement = judge(trace, frozenset({"SIG-AGENT-001"})).judgements["SIG-AGENT-001"]
        assert [finding.exchanges for finding in judgement.findings] == exchanges


@pytest.mark.parametrize(
    ("projects", "named"),
    [(["a", "b"], "'a' and 'b':"), (["a", "b", "c"], "'a' and 'b' …:"), (["a", "a", "b"], "'a' and 'b':")],
)
def test_projects_that_share_a_key(projects: Sequence[str], named: str, tmp_path: Path) -> None:
    """The first two are named, and that there are more only where there are."""
    started: Any = start("m")["request"]
    items = [{"request": {**started, "body": {**started["body"], "project": project}}} for project in projects]
    judgement = judged(tmp_path, "SIG-SESS-001", items)
    assert judgement.verdict is Verdict.WARN
    assert named in judgement.message


@pytest.mark.parametrize(
    ("other", "late", "verdict"),
    [
        (step(None, "prompt", "s2"), start("m"), Verdict.WARN),
        (step(None, "prompt", "s2"), prompt("m"), Verdict.INCONCLUSIVE),
        (step(None, "prompt", "s2"), hook("session-end", "m"), Verdict.INCONCLUSIVE),
        (step(None, "tool", "s2"), start("m"), Verdict.INCONCLUSIVE),
        (step(None, "prompt", None), start("m"), Verdict.INCONCLUSIVE),
    ],
)
def test_sessions_that_share_a_key(other: Item, late: Item, verdict: Verdict, tmp_path: Path) -> None:
    """Those that were opened or spoken in, and started with it: what else comes in another's step may be late."""
    assert judged(tmp_path, "SIG-SESS-001", [step("m"), start("m"), other, late]).verdict is verdict


def native(session: str, key: str) -> Item:
    """What the driver told of the native id of a session."""
    return {"mark": "session_key", "data": {"session": session, "key": key}}


@pytest.mark.parametrize(("one", "other"), [("s1", "s2"), ("s2", "s1")])
@pytest.mark.parametrize(
    ("told", "of_the_other", "verdict"),
    [
        ("one k1, other k2", "session-start", Verdict.PASS),
        ("one k1, other k3", "session-start", Verdict.WARN),
        ("other k1, one k2", "session-start", Verdict.WARN),
        ("other k2", "session-start", Verdict.WARN),
        ("one k1", "session-start", Verdict.WARN),
        ("one k1, other k2, other k1", "session-start", Verdict.WARN),
        ("one k1, other k2", "user-prompt-submit", Verdict.WARN),
        ("one k1, other k2", "session-end", Verdict.WARN),
    ],
)
def test_session_that_is_started_again_late(
    one: str, other: str, told: str, of_the_other: str, verdict: Verdict, tmp_path: Path
) -> None:
    """In a turn of another, which was started with a key of its own already: no session shares a key with it."""
    sessions = {"one": one, "other": other}
    known = [native(sessions[each.split()[0]], each.split()[1]) for each in told.split(", ")]
    beside = [step(None, session=other), hook(of_the_other, "m", "k2"), step(None, "prompt", other)]
    items = [*known, step("m", session=one), start("m"), *beside, start("m")]
    assert judged(tmp_path, "SIG-SESS-001", items).verdict is verdict
