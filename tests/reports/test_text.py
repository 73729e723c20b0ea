"""Facts about the report for people: how verdicts are counted, and what the closing line says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from signet_conformance.engine import JudgedTrace, fold_run, judge
from signet_conformance.finding import Verdict
from signet_conformance.outcome.conclusion import Conclusion, Judging, Terms
from signet_conformance.reports.terminal import MIN_WIDTH
from signet_conformance.reports.text import MAX_ROWS, closing_line, settled_by, settled_lines, summary_lines
from signet_conformance.trace import Header, Trace, read
from tests.support.trace_files import CONFORMING, post, write


def test_counts_stand_in_columns_or_in_sentences() -> None:
    """A wide terminal gets a table, a narrow one a sentence a trace."""
    rows = [("a.jsonl", {"X": Verdict.FAIL, "Y": Verdict.PASS}), ("b.jsonl", {"X": Verdict.INCONCLUSIVE})]
    assert summary_lines(rows) == [
        "         ERROR  FAIL  WARN  PASS   INC   N/A",
        "a.jsonl      0     1     0     1     0     0",
        "b.jsonl      0     0     0     0     1     0",
    ]
    assert summary_lines(rows, None, MIN_WIDTH) == ["a.jsonl: 1 FAIL, 1 PASS", "b.jsonl: 1 INC"]


def concluded(verdicts: Mapping[Any, Verdict], traces: int = 1, in_every_session: Sequence[str] = ()) -> Conclusion:
    """The conclusion of a run with these verdicts, by requirement."""
    judged = (JudgedTrace(Trace(Header(), (), ()), "0.145.7", {}),) * traces
    tested = {str(name): verdict for name, verdict in verdicts.items()}
    return replace(Judging(Terms()).conclude(tested=tested), judged=judged, in_every_session=in_every_session)


def test_conforming_is_said_with_its_price() -> None:
    """What should be and is not is counted; what touches every session is named, three of it."""
    verdicts = dict.fromkeys(("A", "B", "C", "D", "E"), Verdict.WARN) | {"F": Verdict.FAIL, "G": Verdict.PASS}
    told = closing_line(concluded(verdicts, in_every_session=("E", "B", "F")), 0)
    assert told.startswith(
        "conforming, with 1 FAIL; 5 SHOULD broken, 2 of them in every session (B, E); 7 requirements"
    )
    told = closing_line(concluded(verdicts, in_every_session="ABCDE"), 0)
    assert "5 of them in every session (A, B, C and 2 more)" in told


def test_a_must_that_only_warns_is_no_should() -> None:
    """SIG-CKPT-001 is a MUST whose entry has a part that warns; HEALTH-001 is a SHOULD."""
    must, should = {"SIG-CKPT-001": Verdict.WARN}, {"SIG-HEALTH-001": Verdict.WARN}
    told = closing_line(concluded({**must, **should}, in_every_session=[*must]), 0)
    assert told.startswith(
        "conforming; 1 SHOULD and 1 MUST (in a part that only warns) broken, 1 of them in every session (SIG-CKPT-001);"
    )
    assert closing_line(concluded(must), 0).startswith("conforming; 1 MUST (in a part that only warns) broken; 1 req")


@pytest.mark.parametrize(
    ("verdicts", "status", "line"),
    [
        ((Verdict.PASS,), 0, "conforming; 1 requirement tested in 2 traces (exit 0)"),
        ((Verdict.PASS, Verdict.WARN), 0, "conforming; 1 SHOULD broken; 2 requirements tested in 2 traces (exit 0)"),
        (
            (Verdict.FAIL, Verdict.WARN, Verdict.WARN),
            0,
            "conforming, with 1 FAIL; 2 SHOULD broken; 3 requirements tested in 2 traces (exit 0)",
        ),
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
    assert closing_line(concluded(dict(enumerate(verdicts)), traces=2), status) == line


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
        ((Verdict.PASS,), 4, "incomplete: 1 stale entry; 1 requirement tested in 1 trace (exit 4)"),
        (
            (Verdict.PASS, Verdict.FAIL),
            4,
            "incomplete: 1 stale entry, with 1 FAIL; 2 requirements tested in 1 trace (exit 4)",
        ),
        ((Verdict.INCONCLUSIVE,), 1, "nothing was tested in 1 trace, failed by 1 stale entry (exit 1)"),
    ],
)
def test_the_closing_line_tells_what_else_fails_the_run(verdicts: tuple[Verdict, ...], status: int, line: str) -> None:
    """What fails a run beside its verdicts stands in front of them."""
    conclusion = concluded(dict(enumerate(verdicts)))
    conclusion.__dict__["because"] = "1 stale entry"
    assert closing_line(conclusion, status) == line


def test_many_traces_are_counted_together() -> None:
    """Up to five traces have a line each above that of all; more have only that one."""
    rows = [(f"{number}.jsonl", {"X": Verdict.PASS}) for number in range(MAX_ROWS)]
    assert len(summary_lines(rows, {"X": Verdict.PASS})) == MAX_ROWS + 2
    _, line = summary_lines([*rows, ("last.jsonl", {"X": Verdict.FAIL})], {"X": Verdict.FAIL})
    assert line.split() == [str(MAX_ROWS + 1), "traces", "together", "0", "1", "0", "0", "0", "0"]


def test_every_sentence_that_holds_can_be_listed(tmp_path: Path) -> None:
    """What is met, or has no subject, is a paragraph each."""
    judged = judge(read(write(tmp_path / "a.jsonl", CONFORMING)))
    lines = settled_lines(fold_run([judged]), 80, False)
    assert any(line.startswith("PASS SIG-AGENT-002") for line in lines)


def test_nobody_is_told_to_drive_what_was_driven(tmp_path: Path) -> None:
    """Where step marks are there and a prompt has no text, the request is to be mended."""
    wordless = post("/api/hooks/user-prompt-submit", {"harness": "openclaw", "sessionKey": "s-41c7"})
    mark = {"kind": "mark", "t": 0.5, "name": "step", "data": {"index": 0, "step": "prompt", "text": "Where?"}}
    for lines, words in (
        ([mark, wordless], "fix what else the request breaches"),
        ([wordless], "drive the connector"),
    ):
        judged = judge(read(write(tmp_path / "a.jsonl", lines)))
        assert settled_by(judged, judged.judgements["SIG-PROMPT-010"]).startswith(words)


def test_a_driven_run_is_not_told_to_record(tmp_path: Path) -> None:
    """Advice on how to record, or to drive, is for recordings without step marks; advice behind it is for all."""
    step = {"kind": "mark", "t": 0.5, "name": "step", "data": {"index": 0, "step": "prompt", "text": "Where?"}}
    for lines, after_outage, at_tools in (
        (
            [],
            "continue the recording until the next user turn",
            "let the kit drive the connector; let a driver program",
        ),
        ([step], "", "let a driver program report what it passes on"),
    ):
        judged = judge(read(write(tmp_path / "a.jsonl", [*lines, *CONFORMING])))
        told = {name: settled_by(judged, judgement) for name, judgement in judged.judgements.items()}
        assert told["SIG-FAIL-001"] == after_outage
        assert told["SIG-MEM-006"].startswith(at_tools)


def test_a_run_that_lacks_scenarios_is_to_be_completed(tmp_path: Path) -> None:
    """Whoever ran the kit already is not told to run it."""
    judged = judge(read(write(tmp_path / "a.jsonl", CONFORMING)))
    coverage = judged.judgements["SIG-COV-001"]
    assert settled_by(judged, coverage).endswith("judge a whole run of the kit")
    part = replace(judged, trace=replace(judged.trace, part=True))
    assert settled_by(part, coverage) == "let every scenario be performed to its end, without -k"
