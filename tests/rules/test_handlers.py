"""Facts about the handlers of a connector as its host saw them: which lost a turn, and what was in their way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.engine import judge
from signet_conformance.facts import Recording
from signet_conformance.finding import Judgement
from signet_conformance.rules.handlers import lost_turns
from tests.support.case_traces import DECLARED, KEYED, build

Item = Mapping[str, Any]
CALL = {"request": {"method": "POST", "path": "/api/hooks/user-prompt-submit", "body": dict(KEYED)}}


def mark(name: str, **data: Any) -> Item:
    """A mark of the kit."""
    return {"mark": name, "data": data}


def step(index: int, kind: str = "prompt") -> Item:
    """A step that was given to the connector."""
    return mark("step", step=kind, session="s1", index=index, text="one")


def handler(index: int | None, outcome: str = "blocked", **more: Any) -> Item:
    """A handler that did not end well."""
    return mark("handler", index=index, event="before_prompt", outcome=outcome, **more)


def fault(kind: str, on: bool = True, **more: Any) -> Item:
    """A fault that is switched on or off."""
    return mark("fault", kind=kind, on=on, **more)


SPOILT: Item = {**CALL, "response": {"status": 500, "body": {}}, "fault": {"kind": "status"}}
END_ONLY = {"path": "/api/hooks/session-end"}
LOST: Mapping[str, tuple[Sequence[Item], list[tuple[int, list[str], bool, list[int]]]]] = {
    "blocked": ([step(0), handler(0)], [(0, [], False, [])]),
    "lost": ([step(0), handler(0, "thrown", lost=True)], [(0, [], False, [])]),
    "caught": ([step(0), handler(0, "thrown", lost=False)], []),
    "out of time": ([step(0), handler(0, "timed_out")], []),
    "without an index": ([step(0), handler(None)], [(0, [], False, [])]),
    "of another step": ([step(0), handler(1)], []),
    "without a step": ([handler(0)], []),
    "in a step that is no prompt": ([step(0, "start"), handler(0)], []),
    "in a step that ends": ([step(0, "end"), handler(0)], []),
    "in a step of an unknown kind": ([step(0, "undo"), handler(0)], []),
    "twice in a step": ([step(0), handler(0), handler(0)], [(0, [], False, [])]),
    "twice in a step, beside one that is caught": (
        [step(0), handler(0), handler(0, "thrown", lost=False), handler(0), step(1), handler(1)],
        [(0, [], False, []), (1, [], False, [])],
    ),
    "with calls between": ([CALL, step(0), CALL, handler(0), CALL], [(0, [], False, [3])]),
    "while the daemon resets": ([fault("reset"), step(0), handler(0)], [(0, ["reset"], True, [])]),
    "while it is slow": ([fault("delay"), step(0), handler(0)], [(0, ["delay"], True, [])]),
    "while it answers badly": ([fault("not_json"), step(0), handler(0)], [(0, ["not_json"], False, [])]),
    "after it did": ([fault("reset"), fault("reset", False), step(0), handler(0)], [(0, [], False, [])]),
    "by the one request that met a fault": (
        [fault("status"), step(0), SPOILT, fault("status", False), handler(0)],
        [(0, ["status"], False, [3])],
    ),
    "while other hooks fail": ([fault("reset", match=END_ONLY), step(0), handler(0)], [(0, [], False, [])]),
    "in an end, while the daemon resets": (
        [fault("reset"), step(0, "end"), handler(0, "thrown", lost=True)],
        [(0, ["reset"], True, [])],
    ),
    "in a tool call whose answer was spoilt": (
        [step(0, "tool"), SPOILT, handler(0, "thrown", lost=True)],
        [(0, ["status"], False, [2])],
    ),
    "while it is away": ([mark("outage"), step(0), handler(0)], [(0, ["outage"], True, [])]),
    "after it was away": ([mark("outage"), mark("outage", on=False), step(0), handler(0)], [(0, [], False, [])]),
    "while it is restarted": ([fault("restart"), step(0), handler(0)], [(0, ["outage"], True, [])]),
    "after a bypass was set": ([mark("bypass"), step(0), handler(0)], [(0, [], False, [])]),
    "in two steps": ([step(0), handler(0), step(1), handler(1)], [(0, [], False, []), (1, [], False, [])]),
}


@pytest.mark.parametrize("name", LOST)
def test_a_turn_that_a_handler_lost(name: str, tmp_path: Path) -> None:
    """Its step, the faults that were on, whether the daemon was away, and the calls that were made meanwhile."""
    items, turns = LOST[name]
    recording = Recording(build(tmp_path / "trace.jsonl", items, shared=False))
    told = [(t.step.index, sorted(t.faults), t.away, [c.seq for c in t.calls]) for t in lost_turns(recording)]
    assert told == turns


def loads(folder: Path, *items: Item) -> Judgement:
    """SIG-LOAD-001 over these items."""
    return judge(build(folder / "trace.jsonl", items, shared=False), frozenset({"SIG-LOAD-001"})).judgements[
        "SIG-LOAD-001"
    ]


CAUGHT = "the host caught it and went on"


@pytest.mark.parametrize(
    ("items", "verdict", "message", "exchanges"),
    [
        ([step(0), CALL, handler(0)], "FAIL", "step 0: before_prompt cancelled the user's turn", (2,)),
        ([CALL, handler(None)], "FAIL", "before_prompt cancelled the user's turn", (1,)),
        ([step(0), CALL, handler(0, "thrown", lost=False)], "WARN", f"before_prompt threw: {CAUGHT}", (2,)),
        ([step(0), handler(0, "failed", lost=False)], "WARN", f"before_prompt failed: {CAUGHT}", ()),
        ([fault("reset"), step(0), handler(0, "thrown", lost=False)], "WARN", "before_prompt threw", ()),
        ([fault("reset"), step(0), handler(0, "failed", lost=False)], "NOT-APPLICABLE", "", None),
        ([fault("reset"), step(0), handler(0)], "NOT-APPLICABLE", "", None),
        ([step(0, "end"), SPOILT, handler(0, "thrown", lost=True)], "NOT-APPLICABLE", "", None),
        ([fault("status"), step(0, "end"), SPOILT, handler(0, "thrown", lost=True)], "NOT-APPLICABLE", "", None),
        ([step(0), handler(0, "slow", lost=False)], "NOT-APPLICABLE", "", None),
        ([step(0), handler(0, "thrown")], "NOT-APPLICABLE", "", None),
        ([step(0), handler(0, "slow"), handler(0)], "FAIL", "step 0: before_prompt cancelled", ()),
        ([step(0), handler(0, "thrown", lost=True)], "FAIL", "before_prompt cancelled the user's turn", ()),
        ([step(0, "start"), handler(0)], "FAIL", "before_prompt cancelled the user's turn", ()),
        *(
            ([step(0, kind), handler(0, "thrown", lost=True)], "FAIL", "before_prompt ended the harness, although", ())
            for kind in ("start", "resume", "clear", "end")
        ),
        ([mark("loaded", ok=True), mark("loaded", ok=False)], "FAIL", "the connector cannot be loaded by its host", ()),
        ([mark("loaded", ok=None)], "PASS", "1 subject", None),
        (
            [mark("loaded", ok=False, host="pi", release="0.75.3", words="no export")], "FAIL",
            "the connector cannot be loaded by pi 0.75.3: no export", (),
        ),
    ],
)  # fmt: skip
def test_what_a_handler_did(
    items: Sequence[Item], verdict: str, message: str, exchanges: tuple[int, ...] | None, tmp_path: Path
) -> None:
    """A turn that is taken away with nothing in its way, and an error that only the host kept from doing harm."""
    judgement = loads(tmp_path, *items)
    assert judgement.verdict == verdict
    assert message in judgement.message
    assert exchanges is None or judgement.findings[0].exchanges == exchanges


ASKED = [
    {"side": "model", "request": {"method": "POST", "path": "/v1/messages", "body": {"messages": []}}},
    mark("model", session="s1"),
]
LOADED = mark("loaded", ok=True, host="codex", release="0.169.0")
CUT = {"request": {"method": "POST", "path": "/api/hooks/session-end",
                   "raw_body": {"cut": True, "size": 900, "sha256": "0" * 64}}}  # fmt: skip
FORMER = mark(
    "installed", accepted=False, file="a handler of before_agent_start", event="before_agent_start", formerly=True
)
UNHEARD = mark("remark", text="it registers nothing in the mode discovery", unheard=True)
PROBED = {"request": {"method": "GET", "path": "/health"}}


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([LOADED, *ASKED], "codex 0.169.0 asked its model in 1 turn, and no hook of the connector reached the daemon"),
        ([*ASKED, *ASKED], "its host asked its model in 2 turns, and no hook of the connector reached the daemon"),
        ([mark("installed", accepted=True), *ASKED, PROBED], "its host asked its model in 1 turn, and no hook"),
        ([fault("reset", on=False), *ASKED], "its host asked its model in 1 turn, and no hook"),
        (
            [mark("installed", accepted=False, file="hooks.json", host="codex"), *ASKED],
            "codex does not accept hooks.json",
        ),
        (
            [FORMER, UNHEARD, *ASKED],
            "its host asked its model in 1 turn, and no hook of the connector reached the daemon: it registers nothing",
        ),
    ],
    ids=["silent", "silent in two turns", "probed", "after a fault", "refused", "registered for nothing"],
)
def test_a_program_that_passes_over_what_was_installed(items: Sequence[Item], message: str, tmp_path: Path) -> None:
    """It asked its model and told the daemon nothing; where its file was refused, that alone is said."""
    judged = judge(build(tmp_path / "trace.jsonl", items, shared=False), frozenset({"SIG-LOAD-002"}))
    (finding,) = judged.judgements["SIG-LOAD-002"].findings
    assert finding.message.startswith(message)


@pytest.mark.parametrize(
    "items",
    [
        [*ASKED, CALL],
        [*ASKED, mark("stray", method="POST", path="/api/hooks/session-start")],
        [mark("bypass"), *ASKED],
        [fault("reset"), *ASKED],
        ASKED[1:],
        ASKED[:1],
        [mark("outage"), *ASKED],
        [*ASKED, CUT],
    ],
    ids=["spoke", "spoke elsewhere", "bypassed", "a fault", "no model recorded", "no turn", "an outage", "at length"],
)
def test_silence_with_a_reason(items: Sequence[Item], tmp_path: Path) -> None:
    """Who spoke, was told not to, could not, or was perhaps never asked to, is not blamed for silence."""
    judged = judge(build(tmp_path / "trace.jsonl", items, shared=False), frozenset({"SIG-LOAD-002"}))
    assert not judged.judgements["SIG-LOAD-002"].findings


@pytest.mark.parametrize(
    ("capabilities", "verdict"),
    [
        (["health", "memory-recall"], "NOT-APPLICABLE"),
        (["health", "session-end"], "FAIL"),
        (None, "FAIL"),
    ],
)
def test_a_memory_server_has_no_hooks(capabilities: Sequence[str] | None, verdict: str, tmp_path: Path) -> None:
    """A connector that declares none is not passed over because none came."""
    header = {"declared": {**DECLARED, **({} if capabilities is None else {"capabilities": capabilities})}}
    trace = build(tmp_path / "trace.jsonl", [LOADED, *ASKED, PROBED], header, shared=False)
    assert judge(trace, frozenset({"SIG-LOAD-002"})).judgements["SIG-LOAD-002"].verdict == verdict


@pytest.mark.parametrize(
    ("end", "message"),
    [
        ({"outcome": "blocked"}, "step 4: the daemon was unreachable, and before_prompt blocked the user's turn"),
        (
            {"outcome": "thrown", "lost": True},
            "step 4: the daemon was unreachable, and the user's turn was lost in before_prompt",
        ),
    ],
)
def test_how_a_turn_was_lost_is_told(end: Mapping[str, Any], message: str, tmp_path: Path) -> None:
    """A handler may block a turn, or take it along when it fails."""
    items = [fault("reset"), step(4), CALL, handler(4, **end)]
    judged = judge(build(tmp_path / "trace.jsonl", items, shared=False), frozenset({"SIG-FAIL-001"}))
    (finding,) = judged.judgements["SIG-FAIL-001"].findings
    assert (finding.message, finding.exchanges) == (message, (3,))


def test_call_that_met_the_fault_is_named_first(tmp_path: Path) -> None:
    """A connector asks for the daemon's health before, or for something else after."""
    items = [fault("status"), step(4), CALL, SPOILT, CALL, handler(4)]
    judged = judge(build(tmp_path / "trace.jsonl", items, shared=False), frozenset({"SIG-FAIL-003"}))
    (finding,) = (each for each in judged.judgements["SIG-FAIL-003"].findings if "step 4" in each.message)
    assert finding.exchanges == (4, 5, 3)


def test_a_harness_that_ended_with_a_step_is_told(tmp_path: Path) -> None:
    """A session's end that a handler takes along while the daemon is away leaves no harness behind."""
    items = [fault("reset"), step(4, "end"), CALL, handler(4, "thrown", lost=True)]
    judged = judge(build(tmp_path / "trace.jsonl", items, shared=False), frozenset({"SIG-FAIL-001"}))
    (finding,) = judged.judgements["SIG-FAIL-001"].findings
    assert finding.message == "step 4: the daemon was unreachable, and before_prompt ended the harness"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"accepted": None}, "whether its host accepts what was installed is not known"),
        (
            {"accepted": None, "file": "hooks.json", "host": "codex", "release": "0.169.0"},
            "whether codex 0.169.0 accepts hooks.json is not known",
        ),
        ({"accepted": False}, "its host does not accept what was installed"),
        ({"accepted": False, "file": "hooks.json", "words": "no"}, "its host does not accept hooks.json: no"),
    ],
)
def test_what_is_told_of_an_installed_file(data: Mapping[str, Any], message: str, tmp_path: Path) -> None:
    """Which file, which host, and what that said."""
    items = [mark("installed", **data)]
    judged = judge(build(tmp_path / "trace.jsonl", items, shared=False), frozenset({"SIG-LOAD-002"}))
    assert judged.judgements["SIG-LOAD-002"].message == message


ELSEWHERE = "not to the daemon address that the connector was given"


@pytest.mark.parametrize(
    ("items", "message"),
    [
        (
            [step(0), CALL, mark("stray", method="POST", path="/api/hooks/session-end", address="[::1]:3850")],
            f"POST /api/hooks/session-end went to [::1]:3850, {ELSEWHERE}",
        ),
        ([mark("stray")], f"a request  went to the default port, {ELSEWHERE}"),
        ([step(0), CALL, CALL, CALL], "3 subjects"),
        ([CALL, CALL], "nothing in the trace is subject to it"),
        ([step(0)], "nothing in the trace is subject to it"),
    ],
    ids=["away", "away without a word", "all came", "nobody watched", "nothing came"],
)
def test_where_requests_went(items: Sequence[Item], message: str, tmp_path: Path) -> None:
    """Each request that came counts where the kit drove, and each that went elsewhere is told."""
    judged = judge(build(tmp_path / "trace.jsonl", items, shared=False), frozenset({"SIG-LOAD-003"}))
    assert judged.judgements["SIG-LOAD-003"].message == message


def test_few_exchanges_are_named_beside_a_handler(tmp_path: Path) -> None:
    """The latest twenty of its step; of requests that went elsewhere, twenty are told."""
    (finding,) = loads(tmp_path, CALL, step(0), *[CALL] * 30, handler(0)).findings
    assert finding.exchanges == tuple(range(32, 12, -1))
    strays = build(tmp_path / "strays.jsonl", [mark("stray")] * 30, shared=False)
    assert len(judge(strays, frozenset({"SIG-LOAD-003"})).judgements["SIG-LOAD-003"].findings) == 20
