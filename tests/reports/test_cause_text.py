"""Facts about a cause in a terminal: what its block holds, how it is laid out, what fits where there are many."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from signet_conformance.contract import requirements
from signet_conformance.engine import JudgedTrace, fold_run, judge
from signet_conformance.finding import Finding, Judgement, Reason, Verdict
from signet_conformance.reports.cause_text import CauseText, Detail, kind_lines
from signet_conformance.reports.causes import Cause, Causes
from signet_conformance.reports.terminal import MIN_WIDTH
from signet_conformance.reports.text import Headings, OpenRequirements, settled_lines, summary_lines
from signet_conformance.trace import Header, Trace, read
from tests.support.trace_files import BREACHING, HEADER, end, health, recall, start, write

AGENT = "SIG-AGENT-002"


@pytest.fixture
def judged(tmp_path: Path) -> JudgedTrace:
    """A session whose two recalls run as another agent than the declared one."""
    return judge(read(write(tmp_path / "a.jsonl", BREACHING)))


def causes(*judged: JudgedTrace) -> list[Cause]:
    """The causes of some traces."""
    gathered = Causes()
    for each in judged:
        gathered.add(each, {})
    return list(gathered.connector())


def block(judged: JudgedTrace, name: str, width: int = 80, *, colour: bool = False) -> str:
    """One requirement's breach, alone."""
    only = JudgedTrace(judged.trace, judged.daemon_version, {name: judged.judgements[name]})
    (cause,) = causes(only)
    return "\n".join(CauseText(width, colour).lines(cause))


def undecided(judged: JudgedTrace, width: int = 80) -> list[str]:
    """What a trace leaves open."""
    gathered = OpenRequirements()
    gathered.add(judged)
    return gathered.lines(fold_run([judged]), width)


def heading(judged: JudgedTrace, width: int = 80) -> list[str]:
    """What stands above the blocks."""
    gathered = Headings()
    gathered.add(judged)
    return gathered.lines(width)


def test_a_block_can_be_acted_on_alone(judged: JudgedTrace) -> None:
    """It tells requirement, exchange, side, pointer, expected, received, reason, remedy, and two commands."""
    text = block(judged, AGENT)
    flat = " ".join(text.split())
    requirement = requirements()[AGENT]
    assert text.startswith(f"FAIL {AGENT} MUST\n  A call runs")
    assert "where #3 POST /api/memory/recall, on the connector's side" in flat
    assert "at /request/body/json/agentId" in flat
    assert "expected atlas-agent" in flat
    assert "received nothing: the member is absent" in flat
    assert f"why {requirement.why}" in flat
    assert f"change {requirement.fix}" in flat
    assert f"replay signet-conformance check {judged.trace.path} -k {AGENT}" in flat
    assert f"page signet-conformance explain {AGENT}" in flat


def test_a_must_that_warns_says_why_it_does(judged: JudgedTrace, tmp_path: Path) -> None:
    """Beside the level stands what of it only warns; a failure needs no such word."""
    strange = health()
    strange["request"]["path"] = "/api/strange"
    warned = judge(read(write(tmp_path / "b.jsonl", [health(), strange, start(), end()])))
    text = block(warned, "SIG-COV-001")
    assert text.startswith("WARN SIG-COV-001 MUST\n")
    assert "level     a MUST, but its entry says: WARN for a path outside the contract" in text
    assert "its entry says" not in block(judged, AGENT)


def test_the_breaching_exchange_stands_marked_among_its_neighbours(judged: JudgedTrace) -> None:
    """Two exchanges before and two after are shown, one line each, the breaching one with `>`."""
    lines = [line[12:] for line in block(judged, AGENT, 120).splitlines() if "#" in line and " -> " in line]
    assert lines == [
        "  #1 GET /health -> 200",
        "  #2 POST /api/hooks/session-start key=s-41c7 agent=atlas-agent -> 200",
        "> #3 POST /api/memory/recall key=s-41c7 agent=default -> 200",
        "  #4 POST /api/memory/recall key=s-41c7 agent=default -> 200",
        "  #5 POST /api/hooks/session-end key=s-41c7 agent=atlas-agent -> 200",
    ]


def test_repeats_are_folded_and_named(judged: JudgedTrace) -> None:
    """A second breach of the same kind is counted with its number, not shown again."""
    text = block(judged, AGENT)
    assert "again     1 more like it: #4" in text
    assert "seen      in 1 session, 2 calls (memory-recall)" in text
    assert text.count("  what ") == 1


def test_other_exchanges_of_a_finding_are_shown(judged: JudgedTrace) -> None:
    """A breach that lies between two exchanges names the other one too."""
    assert "with      #2 POST /api/hooks/session-start" in block(judged, "SIG-AGENT-001", 120)


def test_many_kinds_are_counted(judged: JudgedTrace) -> None:
    """Beyond three kinds of breach of one requirement the rest is a number and the way to the list."""
    findings = tuple(Finding(Verdict.FAIL, (3,), f"kind {number // 2}", fold=str(number // 2)) for number in range(14))
    many = Judgement(AGENT, Verdict.FAIL, Reason.BREACH, "many", findings)
    text = block(JudgedTrace(judged.trace, "0.145.7", {AGENT: many}), AGENT)
    assert text.count("  what ") == 3
    assert "more      4 other kinds, 8 findings: --json lists them" in text


def test_null_and_absent_are_told_apart(tmp_path: Path) -> None:
    """A member that is null was received as null; one that is not there was not received."""
    trace = write(tmp_path / "a.jsonl", [health(), start(project=None)])
    judged = judge(read(trace))
    finding = Finding(Verdict.FAIL, (2,), "off", "/request/body/json/project", "text")
    absent = Finding(Verdict.FAIL, (2,), "off", "/request/body/json/cwd", "text", fold="other")
    broken = Judgement("SIG-START-003", Verdict.FAIL, Reason.BREACH, "off", (finding, absent))
    text = block(JudgedTrace(judged.trace, "0.145.7", {"SIG-START-003": broken}), "SIG-START-003")
    assert "received  null" in text
    assert "received  nothing: the member is absent" in text


def test_marks_and_faults_stand_among_the_neighbours(tmp_path: Path) -> None:
    """A mark between the exchanges is shown, and so are a fault and the lack of an answer."""
    mark = {"kind": "mark", "t": 2.5, "name": "step", "data": {"step": "prompt"}}
    refused = {**recall(), "response": None, "error": {"kind": "upstream_reset"}, "fault": {"kind": "reset"}}
    trace = write(tmp_path / "a.jsonl", [health(), start(), mark, recall(), refused])
    text = block(judge(read(trace)), AGENT, 120)
    assert "#3 step: prompt" in text
    assert "-> no answer (upstream_reset) [fault: reset]" in text


def test_a_failure_of_the_kit_needs_no_evidence() -> None:
    """A rule that crashed, even one that is not in the catalogue, has a block with the message."""
    crashed = Judgement("ACME-X-001", Verdict.ERROR, Reason.CRASHED, "the kit's rule raised KeyError: 'x'")
    text = block(JudgedTrace(Trace(Header(), (), ()), "0.145.7", {"ACME-X-001": crashed}), "ACME-X-001")
    assert text.startswith("ERROR ACME-X-001\n")
    assert "the kit's rule raised KeyError" in text
    assert "signet-conformance check TRACE -k ACME-X-001" in text


def test_causes_beyond_the_room_are_shown_in_short(judged: JudgedTrace) -> None:
    """The last ones lose their neighbours first, then all but one paragraph, what to change and the replay."""
    (first, *others) = causes(judged)
    whole = CauseText().blocks([first, *others])
    short = CauseText().blocks([first, *others], most_lines=0)
    assert [block[0].split()[:2] for block in short] == [block[0].split()[:2] for block in whole]
    assert all(len(less) < len(more) for less, more in zip(short, whole, strict=True))
    assert all("  change " in "\n".join(block) for block in short)
    brief = CauseText().lines(first, Detail.BRIEF)
    assert len(short[0]) < len(brief) < len(whole[0])
    assert CauseText().blocks([first, *others], most_lines=sum(map(len, whole)) + len(whole)) == whole


@pytest.mark.parametrize("width", [1, MIN_WIDTH, 60, 100])
def test_lines_keep_to_the_width(judged: JudgedTrace, width: int) -> None:
    """No line but a command or a title of a file is wider than the terminal, of 40 columns at least."""
    drawing = CauseText(width)
    lines = [line for cause in causes(judged) for detail in Detail for line in drawing.lines(cause, detail)]
    lines += undecided(judged, width) + settled_lines(fold_run([judged]), width, False)
    lines += summary_lines([("a.jsonl", {AGENT: Verdict.FAIL})], None, width)
    assert lines
    wide = [line for line in lines if len(line) > max(width, MIN_WIDTH) and "signet-conformance " not in line]
    assert wide == []


def test_quiet_line_names_the_operations_that_its_count_is_of(tmp_path: Path) -> None:
    """The example is one call of several operations: its name alone would claim all of them for one."""
    ended = end()
    del ended["request"]["body"]["json"]["agentId"]
    judged = judge(read(write(tmp_path / "a.jsonl", [health(), start(), recall(), recall(), ended])))
    alone = {AGENT: judged.judgements[AGENT]}
    (line,) = kind_lines(causes(JudgedTrace(judged.trace, judged.daemon_version, alone)), alone, (), None)
    assert line.endswith(", 3 times (memory-recall 2, session-end 1)")


def failed(event: str, index: int, text: str) -> dict[str, Any]:
    """The mark of a handler that failed, where the host went on."""
    told = {"index": index, "event": event, "outcome": "failed", "status": 1, "text": text, "lost": False}
    return {"kind": "mark", "t": index + 0.5, "name": "handler", "data": told}


def step(name: str, index: int) -> dict[str, Any]:
    """The mark of a step of the only session."""
    told = {"index": index, "step": name, "session": "s1", "text": "Which one?", "reply": "This one."}
    return {"kind": "mark", "t": index + 0.1, "name": "step", "data": told}


def test_a_summary_shows_each_kind_of_breach_the_worst_first(tmp_path: Path) -> None:
    """The hook that fails at every prompt stands above the one that fails once at the end, with its exception."""
    prompts = [mark for n in (1, 2) for mark in (step("prompt", n), failed("UserPromptSubmit", n, "TypeError: a"))]
    lines = [health(), start(), step("end", 0), failed("SessionEnd", 0, "RangeError: b"), *prompts, end()]
    judged = judge(read(write(tmp_path / "a.jsonl", lines)))
    alone = {"SIG-LOAD-001": judged.judgements["SIG-LOAD-001"]}
    told = kind_lines(causes(JudgedTrace(judged.trace, judged.daemon_version, alone)), alone, (), None)
    assert told == [
        'WARN SIG-LOAD-001 UserPromptSubmit failed: the host caught it and went on ("TypeError: a"), 2 times',
        'WARN SIG-LOAD-001 SessionEnd failed: the host caught it and went on ("RangeError: b")',
    ]


def test_a_summary_says_nothing_twice(tmp_path: Path) -> None:
    """Words that stand in the message do not stand in brackets behind it too."""
    row = {
        "host": "pi",
        "file": "the tool memory_store",
        "accepted": False,
        "minor": True,
        "words": "it declares no fields",
    }
    lines = [health(), {"kind": "mark", "t": 0.1, "name": "installed", "data": row}, start(), end()]
    judged = judge(read(write(tmp_path / "a.jsonl", lines)))
    alone = {"SIG-LOAD-002": judged.judgements["SIG-LOAD-002"]}
    (line,) = kind_lines(causes(JudgedTrace(judged.trace, judged.daemon_version, alone)), alone, (), None)
    assert line == "WARN SIG-LOAD-002 pi accepts the tool memory_store, with a flaw: it declares no fields"


def test_a_summary_cuts_no_finding(judged: JudgedTrace) -> None:
    """A terminal gets the whole line, wrapped; a pipe gets it unbroken."""
    (wide,) = kind_lines(causes(judged)[:1], {AGENT: judged.judgements[AGENT]}, (), None)
    narrow = kind_lines(causes(judged)[:1], {AGENT: judged.judgements[AGENT]}, (), MIN_WIDTH)
    assert len(narrow) > 1
    assert max(map(len, narrow)) <= MIN_WIDTH
    assert " ".join(line.strip() for line in narrow) == wide


def test_a_summary_leaves_no_kind_out(tmp_path: Path) -> None:
    """Of very many kinds of one requirement each has a line, however long."""
    long = "TypeError: " + "a" * 150
    prompts = [mark for n in range(12) for mark in (step("prompt", n), failed(f"Hook{n}", n, long))]
    judged = judge(read(write(tmp_path / "a.jsonl", [health(), start(), *prompts, end()])))
    alone = {"SIG-LOAD-001": judged.judgements["SIG-LOAD-001"]}
    told = kind_lines(causes(JudgedTrace(judged.trace, judged.daemon_version, alone)), alone, (), None)
    assert len(told) == 12
    assert all(line.endswith(f'("{long}")') for line in told)


def test_a_cause_in_one_line_keeps_to_the_width(judged: JudgedTrace) -> None:
    """Beside a FAIL a WARN is one line, which may be cut: the page has the rest."""
    listed = causes(judged)
    rows = [CauseText(60).row(cause) for cause in listed]
    assert [row.split()[:2] for row in rows] == [[cause.verdict.value, cause.requirement] for cause in listed]
    assert max(map(len, rows)) <= 60
    assert "\n" not in "".join(rows)


def test_colours_come_only_on_request(judged: JudgedTrace) -> None:
    """Escape sequences are in the text with colour, and nowhere without."""
    plain = [block(judged, AGENT), *heading(judged), *undecided(judged)]
    assert not any("\x1b" in text for text in plain)
    assert "\x1b[1;31m" in block(judged, AGENT, colour=True)


def test_breaches_come_in_the_order_of_their_weight(tmp_path: Path) -> None:
    """Errors of the kit first, then FAIL, then WARN."""
    judged = judge(read(write(tmp_path / "a.jsonl", [start(project="relative"), recall()])))
    verdicts = [cause.verdict for cause in causes(judged)]
    assert verdicts == sorted(verdicts, key=[Verdict.ERROR, Verdict.FAIL, Verdict.WARN].index)
    assert {Verdict.FAIL, Verdict.WARN} <= set(verdicts)


def test_what_stays_open_says_what_would_settle_it(tmp_path: Path) -> None:
    """What is INCONCLUSIVE for one reason is one paragraph with the reason and a way out."""
    bare = {name: value for name, value in HEADER.items() if name != "declared"}
    cut = start()
    cut["request"]["body"] = {"cut": True, "size": 9, "sha256": "0" * 64, "text": "{"}
    cut["response"]["status"] = 500
    judged = judge(read(write(tmp_path / "a.jsonl", [cut, recall()], bare)))
    text = " ".join(" ".join(undecided(judged)).split())
    assert "SIG-AGENT-002 no agent is declared for the trace. To settle it: declare the agent" in text
    assert "INCONCLUSIVE SIG-START-001" in text
    assert text.count("only a part of the body was recorded. To settle it: record with a larger --body-limit") == 1


def test_what_another_trace_decides_is_only_named(judged: JudgedTrace, tmp_path: Path) -> None:
    """A requirement that one trace leaves open and another decides is one of a list."""
    bare = {name: value for name, value in HEADER.items() if name != "declared"}
    other = judge(read(write(tmp_path / "b.jsonl", BREACHING, bare)))
    gathered = OpenRequirements()
    gathered.add(judged)
    gathered.add(other)
    lines = " ".join(" ".join(gathered.lines(fold_run([judged, other]), 80)).split())
    assert "undecided, and decided by other traces: SIG-AGENT-002 in 1 trace" in lines


def test_the_heading_tells_what_was_judged(judged: JudgedTrace) -> None:
    """File, daemon version, number of exchanges, harness and agents."""
    assert heading(judged, 120) == [
        judged.trace.path,
        "  daemon 0.145.7, 5 exchanges, harness openclaw, agents atlas-agent",
    ]


def test_a_scenario_that_broke_off_is_told_once(tmp_path: Path) -> None:
    """Why it did, and the command that shows how far it came."""
    end = {"kind": "mark", "t": 9.0, "name": "scenario_end", "data": {"error": "acme ended\ntry: again"}}
    cut_short = judge(read(write(tmp_path / "a.jsonl", [*BREACHING, end])))
    assert heading(cut_short, 120)[2:] == [
        "  the scenario was broken off, so its trace decides nothing: acme ended; try: again",
        f"  so far    signet-conformance show {cut_short.trace.path}",
    ]


def test_the_heading_of_many_traces_adds_them_up(judged: JudgedTrace) -> None:
    """Their number stands in place of the file."""
    gathered = Headings()
    gathered.add(judged)
    gathered.add(judged)
    assert gathered.lines(120) == [
        "2 traces",
        "  daemon 0.145.7, 10 exchanges, harness openclaw, agents atlas-agent",
    ]
