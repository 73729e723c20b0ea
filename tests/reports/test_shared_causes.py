"""Mistakes that break several requirements: told once where a whole run shows them, and apart where it does not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.outcome.conclusion import Conclusion, Judging, Terms
from signet_conformance.reports.cause_text import CauseText
from signet_conformance.reports.causes import CalledOperations, Cause, Causes, shared_causes
from signet_conformance.reports.evidence import Evidence
from signet_conformance.reports.problems import Problem
from signet_conformance.reports.run_text import ClosingText, cause_blocks
from signet_conformance.trace import read
from tests.support.trace_files import HEADER, Line, end, health, post, start, write

ENDED: Line = {"kind": "mark", "t": 90.0, "name": "scenario_end", "data": {"name": "one", "error": None}}
DECLARED = ["health", "session-start", "user-prompt-submit", "session-end"]


def prompt(text: str = "Which database?", key: str = "s-41c7") -> Line:
    """A prompt that conforms."""
    body = {"harness": "openclaw", "sessionKey": key, "agentId": "atlas-agent", "userMessage": text}
    return post("/api/hooks/user-prompt-submit", body, answer={"inject": "", "memoryCount": 0, "sessionKnown": True})


def read_of(path: str, status: int) -> Line:
    """A GET that the daemon answers with an error."""
    line = post(path, None, status=status, answer={"error": "not found"})
    line["request"] |= {"method": "GET", "body": None}
    return line


def again() -> Line:
    """A start of the open session, which the daemon answers with its stub."""
    line = start()
    told = {"identity": {"name": "Agent"}, "memories": [], "inject": "[memory active | /remember]\nToday."}
    line["response"]["body"]["json"] = told
    return line


def concluded(folder: Path, *scenarios: Sequence[Line], capabilities: Sequence[str] = DECLARED) -> Conclusion:
    """The conclusion of a run of these scenarios."""
    header = {**HEADER, "declared": {**HEADER["declared"], "capabilities": capabilities}}
    judging = Judging(Terms(), whole=True)
    paths = [write(folder / f"{n}.jsonl", [*lines, ENDED], header) for n, lines in enumerate(scenarios)]
    for judged in judging.judge_traces([read(path) for path in paths]):
        judging.add(judged)
    return judging.conclude()


def causes(folder: Path, *scenarios: Sequence[Line], capabilities: Sequence[str] = DECLARED) -> Sequence[Cause]:
    """The causes of a run of these scenarios."""
    return Causes.of(concluded(folder, *scenarios, capabilities=capabilities)).connector()


ENDLESS = (
    [health(), start(), prompt()],
    [health(), start(), prompt(), again()],
    [health(), start(), prompt()],
)


def test_connector_that_never_ends_a_session_is_one_cause(tmp_path: Path) -> None:
    """What is declared and never called, what stays open, and what is started again in it: one thing to mend."""
    (cause,) = causes(tmp_path, *ENDLESS)
    assert cause.says == "the connector never ends a session"
    assert cause.requirements == ["SIG-END-005", "SIG-COV-001", "SIG-START-005"]
    # The worst of them decides, the one that shows it best leads, and its level is not that of all.
    assert (cause.verdict, cause.first.what, cause.level) == ("FAIL", "started and never ended", "")


def test_one_end_anywhere_keeps_the_breaches_apart(tmp_path: Path) -> None:
    """A connector that ends some sessions has another mistake, or several."""
    listed = causes(tmp_path, *ENDLESS, [health(), start(), prompt(), end()])
    assert [(cause.requirement, cause.says) for cause in listed] == [("SIG-START-005", ""), ("SIG-END-005", "")]


def test_what_else_is_never_called_keeps_its_block(tmp_path: Path) -> None:
    """That a connector never ends a session does not explain why it never recalls."""
    listed = causes(tmp_path, *ENDLESS, capabilities=[*DECLARED, "memory-recall"])
    assert [cause.requirements for cause in listed] == [["SIG-COV-001"], ["SIG-END-005", "SIG-START-005"]]


def test_hooks_that_fire_twice_are_one_cause(tmp_path: Path) -> None:
    """A connector that is registered twice doubles each hook, and is mended once."""
    twice = [health(), start(), again(), prompt(), prompt(), end(), end()]
    (cause,) = causes(tmp_path, twice, twice, twice)
    assert cause.says == "its hooks fire twice: user-prompt-submit, session-end, session-start"
    assert cause.requirements == ["SIG-PROMPT-003", "SIG-START-005", "SIG-END-006"]


def test_hook_that_fires_twice_now_and_then_is_no_hook_that_always_does(tmp_path: Path) -> None:
    """In a small part of the run, or in too small a run, repeats of two hooks stay two causes."""
    twice, once = [health(), start(), prompt(), prompt(), end(), end()], [health(), start(), prompt(), end()]
    for scenarios in ([twice], [twice] * 3 + [once] * 4):
        listed = causes(tmp_path, *scenarios)
        assert [(cause.requirement, cause.says) for cause in listed] == [("SIG-PROMPT-003", ""), ("SIG-END-006", "")]


@pytest.mark.parametrize("verbose", [False, True])
def test_warning_beside_a_failure_is_one_line(tmp_path: Path, verbose: bool) -> None:
    """Beside a FAIL a WARN only says that it is there, unless everything is asked for."""
    bad = start(harness="", project="relative")
    conclusion = concluded(tmp_path, [health(), bad, prompt(), end()])
    text = ClosingText(conclusion, conclusion.status, 80, verbose=verbose)
    shown = "\n\n".join(cause_blocks(Causes.of(conclusion), text, tmp_path))
    assert shown.startswith("FAIL SIG-START-001 MUST\n")
    (row,) = [line for line in shown.splitlines() if line.startswith("WARN SIG-START-003")]
    assert row.endswith(" SHOULD") is verbose
    assert ("  in full   signet-conformance check" in shown) is not verbose


def test_mistake_is_told_by_its_sentence(tmp_path: Path) -> None:
    """The block begins with the mistake, names every requirement that it breaks, and shows one example."""
    (cause,) = causes(tmp_path, *ENDLESS)
    lines = CauseText(80).lines(cause)
    assert lines[0] == "FAIL the connector never ends a session (SIG-END-005 and 2 more)"
    assert "  also      FAIL SIG-COV-001" in lines
    assert "  also      WARN SIG-START-005" in lines
    assert sum(line.startswith("  what ") for line in lines) == 1


def mark(name: str, **data: Any) -> Line:
    """A mark of the kit."""
    return {"kind": "mark", "t": 1.0, "name": name, "data": data}


def turn(index: int, *calls: Line, fault: str | None = None) -> list[Line]:
    """A turn of the only session, in which a fault may be on."""
    said = mark("step", index=index, step="prompt", session="s1", text=f"Question {index}?", reply="Yes.")
    on, off = ([mark("fault", kind=fault, on=each)] if fault else [] for each in (True, False))
    return [*on, said, *calls, *off]


def opened(*calls: Line) -> list[Line]:
    """A session that begins with these calls."""
    return [mark("step", index=0, step="start", session="s1"), *calls, mark("session_key", session="s1", key="s-41c7")]


def test_handler_that_throws_whatever_the_daemon_does_is_one_cause(tmp_path: Path) -> None:
    """A turn that is lost under a fault too is lost for the reason for which it is lost without one."""

    def lost(index: int) -> Line:
        told = {"event": "prompt", "outcome": "thrown", "text": "TypeError: inject", "lost": True}
        return mark("handler", index=index, **told)

    lines = [*opened(health(), start()), *turn(1, prompt(), lost(1)), *turn(2, lost(2), fault="refuse")]
    listed = causes(tmp_path, [*lines, end()])
    (cause,) = [cause for cause in listed if "SIG-LOAD-001" in cause.requirements]
    assert cause.says == "the user's turn is lost in prompt"
    assert cause.requirements == ["SIG-LOAD-001", "SIG-FAIL-001"]
    assert listed[0] is cause


def problem(name: str, kind: str, *traces: int) -> Problem:
    """One kind of breach of one requirement, in some traces."""
    return Problem(("breach", name, kind), {name: Evidence("what")}, traces=set(traces))


def test_silence_after_an_outage_is_one_cause_with_what_it_leaves_out() -> None:
    """What is never ended or submitted in the same traces is the same silence; what is so elsewhere too is not."""
    silent = [problem("SIG-FAIL-001", "silent", 0, 1), problem("SIG-FAIL-007", "not again", 2)]
    beside, elsewhere = problem("SIG-END-005", "no end", 0, 2), problem("SIG-PROMPT-011", "never submitted", 1, 5)
    (cause,) = shared_causes([*silent, beside, elsewhere], CalledOperations(Counter(), ()))
    assert (cause.says, cause.requirement) == (
        "after trouble with the daemon the connector falls silent",
        "SIG-FAIL-001",
    )
    assert list(cause.problems) == [*silent, beside]


def sub_agent(key: str, *, own: bool) -> list[Line]:
    """A turn in which a sub-agent works in a session of the host's, under a key; `own` tells that it has it alone."""
    opened_again = start(sessionKey=key) if own else again()
    return [
        mark("step", index=2, step="start", session="s2", parent="s1"),
        opened_again,
        mark("session_key", session="s2", key="k-sub"),
        mark("step", index=3, step="prompt", session="s2", text="List the imports.", reply="Four."),
        prompt("List the imports.", key),
        mark("step", index=4, step="end", session="s2"),
        end(sessionKey=key),
    ]


def test_sub_agent_under_the_key_of_its_caller_is_one_cause(tmp_path: Path) -> None:
    """What is started again, mixed and used after its end is one thing to mend; a key of its own is none."""
    first, last = (
        opened(health(), start()),
        [*turn(5, prompt("Question 5?")), mark("step", index=6, step="end", session="s1")],
    )
    lines = [*first, *turn(1, prompt("Question 1?")), *sub_agent("s-41c7", own=False), *last]
    mixed = causes(tmp_path, lines)
    (cause,) = [cause for cause in mixed if "SIG-SESS-005" in cause.requirements]
    assert cause.says == "a sub-agent's start and end are sent for the session that called it"
    assert cause.first.what.startswith(
        "a session and its sub-agent's session, s1 (s-41c7) and s2 (k-sub), have the same key"
    )
    assert {"SIG-SESS-001", "SIG-START-005", "SIG-END-005"} <= set(cause.requirements)
    apart = [*first, *turn(1, prompt("Question 1?")), *sub_agent("k-sub", own=True), *last, end()]
    assert "SIG-SESS-005" not in {name for each in causes(tmp_path, apart) for name in each.requirements}


def test_id_that_splits_the_path_is_one_cause(tmp_path: Path) -> None:
    """No route has a segment more than its own: the id is to be encoded. Another unknown route stands apart."""
    split = read_of("/api/memory/notes/refunds.md", status=404)
    (cause,) = [each for each in causes(tmp_path, [health(), start(), split, end()]) if each.verdict == "FAIL"]
    assert cause.says == "a memory's id is put into the path unencoded"
    assert cause.requirements == ["SIG-MEM-001", "SIG-HTTP-003", "SIG-COV-001"]
    listed = causes(tmp_path, [health(), start(), split, read_of("/api/memoir", status=404), end()])
    apart = [(each.requirement, list(each.calls)) for each in listed if "SIG-HTTP-003" in each.requirements]
    assert apart == [
        ("SIG-MEM-001", ["/api/memory/notes/refunds.md"]),
        ("SIG-HTTP-003", ["/api/memoir"]),
    ]


def test_one_requirement_alone_is_no_mistake_of_several() -> None:
    """Its own sentence says it better."""
    assert list(shared_causes([problem("SIG-FAIL-001", "silent", 0)], CalledOperations(Counter(), ()))) == []


def test_sub_agent_s_id_explains_the_agents_that_it_makes() -> None:
    """The scope that is opened for a sub-agent breaks the requirements on agents in its own way."""
    mine = [problem("SIG-START-007", "native", 0, 1), problem("SIG-AGENT-002", "undeclared", 0)]
    (cause,) = shared_causes([*mine, problem("SIG-AGENT-003", "snake", 0)], CalledOperations(Counter(), ()))
    assert cause.says == "a sub-agent is taken for an agent of its own"
    assert list(cause.problems) == mine
