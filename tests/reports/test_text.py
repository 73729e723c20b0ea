"""Facts about the report for people: what a block holds, how it is laid out, how it is counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from signet_conformance.contract import requirements
from signet_conformance.engine import Judged, judge
from signet_conformance.finding import Finding, Judgement, Reason, Verdict
from signet_conformance.reports.terminal import MIN_WIDTH
from signet_conformance.reports.text import (
    breach_names,
    closing_line,
    failure_text,
    heading_lines,
    settled_lines,
    summary_lines,
    undecided_lines,
)
from signet_conformance.trace import Header, Trace, read
from tests.support.trace_files import BREACHING, CONFORMING, HEADER, health, recall, start, write

AGENT = "SIG-AGENT-002"


@pytest.fixture
def judged(tmp_path: Path) -> Judged:
    """A session whose two recalls run as another agent than the declared one."""
    return judge(read(write(tmp_path / "a.jsonl", BREACHING)))


def test_a_block_can_be_acted_on_alone(judged: Judged) -> None:
    """It tells requirement, exchange, side, pointer, expected, received, reason, remedy, and two commands."""
    block = failure_text(judged, AGENT)
    flat = " ".join(block.split())
    requirement = requirements()[AGENT]
    assert block.startswith(f"FAIL {AGENT} MUST\n  A call runs")
    assert "where #3 POST /api/memory/recall, on the connector's side" in flat
    assert "at /request/body/json/agentId" in flat
    assert "expected atlas-agent" in flat
    assert "received nothing: the member is absent" in flat
    assert f"why {requirement.why}" in flat
    assert f"change {requirement.fix}" in flat
    assert f"replay signet-conformance check {judged.trace.path} -k {AGENT}" in flat
    assert f"page signet-conformance explain {AGENT}" in flat


def test_the_breaching_exchange_stands_marked_among_its_neighbours(judged: Judged) -> None:
    """Two exchanges before and two after are shown, one line each, the breaching one with `>`."""
    lines = [line[12:] for line in failure_text(judged, AGENT, 120).splitlines() if "#" in line and " -> " in line]
    assert lines == [
        "  #1 GET /health -> 200",
        "  #2 POST /api/hooks/session-start key=s-41c7 agent=atlas-agent -> 200",
        "> #3 POST /api/memory/recall key=s-41c7 agent=default -> 200",
        "  #4 POST /api/memory/recall key=s-41c7 agent=default -> 200",
        "  #5 POST /api/hooks/session-end key=s-41c7 agent=atlas-agent -> 200",
    ]


def test_repeats_are_folded_and_named(judged: Judged) -> None:
    """A second breach of the same kind is counted with its number, not shown again."""
    block = failure_text(judged, AGENT)
    assert "again     1 more like it: #4" in block
    assert block.count("  what ") == 1


def test_other_exchanges_of_a_finding_are_shown(judged: Judged) -> None:
    """A breach that lies between two exchanges names the other one too."""
    assert "with      #2 POST /api/hooks/session-start" in failure_text(judged, "SIG-AGENT-001", 120)


def test_many_kinds_are_counted(judged: Judged) -> None:
    """Beyond four kinds of breach of one requirement the rest is a number and the way to the list."""
    findings = tuple(Finding(Verdict.FAIL, (3,), f"kind {number // 2}", fold=str(number // 2)) for number in range(14))
    many = Judgement(AGENT, Verdict.FAIL, Reason.BREACH, "many", findings)
    block = failure_text(Judged(judged.trace, "0.145.7", {AGENT: many}), AGENT)
    assert block.count("  what ") == 4
    assert "more      3 other kinds, 6 findings: --json lists them" in block


def test_null_and_absent_are_told_apart(tmp_path: Path) -> None:
    """A member that is null was received as null; one that is not there was not received."""
    trace = write(tmp_path / "a.jsonl", [health(), start(project=None)])
    judged = judge(read(trace))
    finding = Finding(Verdict.FAIL, (2,), "off", "/request/body/json/project", "text")
    absent = Finding(Verdict.FAIL, (2,), "off", "/request/body/json/cwd", "text", fold="other")
    broken = Judgement("SIG-START-003", Verdict.FAIL, Reason.BREACH, "off", (finding, absent))
    block = failure_text(Judged(judged.trace, "0.145.7", {"SIG-START-003": broken}), "SIG-START-003")
    assert "received  null" in block
    assert "received  nothing: the member is absent" in block


def test_marks_and_faults_stand_among_the_neighbours(tmp_path: Path) -> None:
    """A mark between the exchanges is shown, and so are a fault and the lack of an answer."""
    mark = {"kind": "mark", "t": 2.5, "name": "step", "data": {"step": "prompt"}}
    refused = {**recall(), "response": None, "error": {"kind": "upstream_reset"}, "fault": {"kind": "reset"}}
    trace = write(tmp_path / "a.jsonl", [health(), start(), mark, recall(), refused])
    block = failure_text(judge(read(trace)), AGENT, 120)
    assert '#3 mark step {"step": "prompt"}' in block
    assert "-> no answer (upstream_reset) [fault: reset]" in block


def test_a_failure_of_the_kit_needs_no_evidence() -> None:
    """A rule that crashed, even one that is not in the catalogue, has a block with the message."""
    crashed = Judgement("ACME-X-001", Verdict.ERROR, Reason.CRASHED, "the kit's rule raised KeyError: 'x'")
    block = failure_text(Judged(Trace(Header(), (), ()), "0.145.7", {"ACME-X-001": crashed}), "ACME-X-001")
    assert block.startswith("ERROR ACME-X-001\n")
    assert "the kit's rule raised KeyError" in block
    assert "signet-conformance check TRACE -k ACME-X-001" in block


def test_what_was_said_before_is_not_repeated(judged: Judged) -> None:
    """A block that is not to explain leaves out why and change, and keeps the commands."""
    block = failure_text(judged, AGENT, explained=False)
    assert "  why " not in block
    assert "  change " not in block
    assert "  replay " in block


@pytest.mark.parametrize("width", [1, MIN_WIDTH, 60, 100])
def test_lines_keep_to_the_width(judged: Judged, width: int) -> None:
    """No line but a command or a title of a file is wider than the terminal, of 40 columns at least."""
    blocks = [failure_text(judged, name, width) for name in breach_names(judged)]
    lines = [line for block in blocks for line in block.splitlines()]
    lines += undecided_lines(judged, width, False) + settled_lines(judged, width, False)
    lines += summary_lines([("a.jsonl", {AGENT: Verdict.FAIL})], width)
    assert lines
    wide = [line for line in lines if len(line) > max(width, MIN_WIDTH) and "signet-conformance " not in line]
    assert wide == []


def test_colours_come_only_on_request(judged: Judged) -> None:
    """Escape sequences are in the text with colour, and nowhere without."""
    plain = [failure_text(judged, AGENT), *heading_lines(judged, 80, False), *undecided_lines(judged, 80, False)]
    assert not any("\x1b" in text for text in plain)
    assert "\x1b[1;31m" in failure_text(judged, AGENT, colour=True)


def test_breaches_come_in_the_order_of_their_weight(tmp_path: Path) -> None:
    """Errors of the kit first, then FAIL, then WARN."""
    judged = judge(read(write(tmp_path / "a.jsonl", [start(project="relative"), recall()])))
    verdicts = [judged.judgements[name].verdict for name in breach_names(judged)]
    assert verdicts == sorted(verdicts, key=[Verdict.ERROR, Verdict.FAIL, Verdict.WARN].index)
    assert {Verdict.FAIL, Verdict.WARN} <= set(verdicts)


def test_what_stays_open_says_what_would_settle_it(tmp_path: Path) -> None:
    """Each INCONCLUSIVE is one paragraph with its reason and a way out."""
    bare = {name: value for name, value in HEADER.items() if name != "declared"}
    cut = start()
    cut["request"]["body"] = {"cut": True, "size": 9, "sha256": "0" * 64, "text": "{"}
    cut["response"]["status"] = 500
    judged = judge(read(write(tmp_path / "a.jsonl", [cut, recall()], bare)))
    text = " ".join(" ".join(undecided_lines(judged, 80, False)).split())
    assert "INCONCLUSIVE SIG-AGENT-002 no agent is declared for the trace. To settle it: declare the agent" in text
    assert "SIG-START-001 the body was recorded in part only. To settle it: record with a larger --body-limit" in text


def test_the_heading_tells_what_was_judged(judged: Judged) -> None:
    """File, daemon version, number of exchanges, harness and agents."""
    assert heading_lines(judged, 120, False) == [
        judged.trace.path,
        "  daemon 0.145.7, 5 exchanges, harness openclaw, agents atlas-agent",
    ]


def test_counts_stand_in_columns_or_in_sentences() -> None:
    """A wide terminal gets a table, a narrow one a sentence a trace."""
    rows = [("a.jsonl", {"X": Verdict.FAIL, "Y": Verdict.PASS}), ("b.jsonl", {"X": Verdict.INCONCLUSIVE})]
    assert summary_lines(rows, 80) == [
        "         ERROR  FAIL  WARN  PASS   INC   N/A",
        "a.jsonl      0     1     0     1     0     0",
        "b.jsonl      0     0     0     0     1     0",
    ]
    assert summary_lines(rows, MIN_WIDTH) == ["a.jsonl: 1 FAIL, 1 PASS", "b.jsonl: 1 INC"]


@pytest.mark.parametrize(
    ("verdicts", "status", "line"),
    [
        ((Verdict.PASS,), 0, "conforming; 1 requirement tested in 2 traces (exit 0)"),
        ((Verdict.PASS, Verdict.WARN), 0, "conforming, with 1 WARN; 2 requirements tested in 2 traces (exit 0)"),
        ((Verdict.PASS, Verdict.WARN), 1, "1 WARN; 2 requirements tested in 2 traces (exit 1)"),
        ((Verdict.FAIL, Verdict.WARN), 1, "1 FAIL, 1 WARN; 2 requirements tested in 2 traces (exit 1)"),
        ((Verdict.ERROR, Verdict.FAIL), 4, "1 ERROR, 1 FAIL; 2 requirements tested in 2 traces (exit 4)"),
        ((Verdict.INCONCLUSIVE,), 3, "nothing was tested in 2 traces (exit 3)"),
        ((Verdict.PASS,), 3, "nothing was tested: no hook or memory request was accepted in 2 traces (exit 3)"),
        ((Verdict.PASS,), 4, "nothing is breached; 1 requirement tested in 2 traces (exit 4)"),
        ((), 3, "nothing was tested in 2 traces (exit 3)"),
    ],
)
def test_the_closing_line_tells_the_verdict(verdicts: tuple[Verdict, ...], status: int, line: str) -> None:
    """What was found, how much was tested, in how many traces, and the exit status."""
    assert closing_line({str(n): verdict for n, verdict in enumerate(verdicts)}, 2, status) == line


@pytest.mark.parametrize(
    ("verdicts", "status", "line"),
    [
        ((Verdict.PASS,), 1, "failed by 1 stale entry; 1 requirement tested in 1 trace (exit 1)"),
        (
            (Verdict.PASS, Verdict.WARN),
            1,
            "failed by 1 stale entry, with 1 WARN; 2 requirements tested in 1 trace (exit 1)",
        ),
        ((Verdict.ERROR,), 4, "1 ERROR; 1 requirement tested in 1 trace (exit 4)"),
        ((Verdict.INCONCLUSIVE,), 1, "nothing was tested in 1 trace, failed by 1 stale entry (exit 1)"),
    ],
)
def test_the_closing_line_tells_what_else_fails_the_run(verdicts: tuple[Verdict, ...], status: int, line: str) -> None:
    """What fails a run beside its verdicts stands in front of them."""
    named = {str(n): verdict for n, verdict in enumerate(verdicts)}
    assert closing_line(named, 1, status, because="1 stale entry") == line


def test_a_conforming_trace_has_no_block(tmp_path: Path) -> None:
    """Nothing is shown in full when nothing is breached; every sentence that holds can be listed."""
    judged = judge(read(write(tmp_path / "a.jsonl", CONFORMING)))
    assert breach_names(judged) == []
    assert any(line.startswith("PASS SIG-AGENT-002") for line in settled_lines(judged, 80, False))
