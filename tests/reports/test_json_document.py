"""Facts about the report for programs: it is what its schema says, whatever the trace holds."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from signet_conformance.contract import document
from signet_conformance.engine import JudgedTrace, judge
from signet_conformance.finding import Finding, Judgement, Reason, Verdict
from signet_conformance.outcome.several_traces import essence
from signet_conformance.reports.json_document import JsonReport
from signet_conformance.trace import Header, Trace, read
from tests.support.json_reports import json_report
from tests.support.run_endings import ending_of
from tests.support.trace_files import BREACHING, CONFORMING, HEADER, health, start, write


def checked(text: str) -> Any:
    """The document of a text, after its schema was held against it."""
    parsed = json.loads(text, parse_constant=lambda constant: pytest.fail(f"{constant} is no JSON"))
    Draft202012Validator(document("report/signet-report-1.schema.json")).validate(parsed)
    return parsed


@pytest.fixture
def traces(tmp_path: Path) -> list[JudgedTrace]:
    """Two judged traces, one that breaches and one that conforms."""
    return [
        judge(read(write(tmp_path / name, lines))) for name, lines in (("a.jsonl", BREACHING), ("b.jsonl", CONFORMING))
    ]


def test_the_document_is_as_its_schema_says(traces: list[JudgedTrace]) -> None:
    """Files, declarations, daemon versions, verdicts with findings, the verdicts over all, the exit status."""
    parsed = checked(json.dumps(json_report(traces)))
    first = parsed["traces"][0]
    assert (parsed["contract"], parsed["exit"]) == ("0.145", 1)
    assert first["declared"] == HEADER["declared"]
    assert first["daemon_version"] == "0.145.7"
    verdict = first["verdicts"]["SIG-AGENT-002"]
    assert (verdict["verdict"], verdict["reason"], verdict["level"]) == ("FAIL", "breach", "MUST")
    assert [finding["exchanges"] for finding in verdict["findings"]] == [[3], [4]]
    assert verdict["findings"][0]["pointer"] == "/request/body/json/agentId"
    together = parsed["together"]["SIG-AGENT-002"]
    assert (together["verdict"], together["findings"][0]["file"]) == ("FAIL", traces[0].trace.path)


def test_writing_trace_by_trace_gives_the_same_document(traces: list[JudgedTrace]) -> None:
    """The writer's text, with only the essence of each trace kept, equals the document made at once."""
    stream = io.StringIO()
    writer = JsonReport(stream)
    for recording in traces:
        writer.add(recording, {})
    writer.close(ending_of([essence(recording) for recording in traces], 1))
    assert checked(stream.getvalue()) == json_report(traces)


def test_a_run_without_traces_is_a_document_too() -> None:
    """No trace at all still closes to a valid document."""
    stream = io.StringIO()
    JsonReport(stream).close(ending_of([], 3, remarks=["nothing was given"]))
    parsed = checked(stream.getvalue())
    assert (parsed["traces"], parsed["warnings"], parsed["exit"]) == ([], ["nothing was given"], 3)


def test_strict_reaches_the_exit_status(tmp_path: Path) -> None:
    """A WARN alone is 0, with strict 1."""
    judged = [judge(read(write(tmp_path / "a.jsonl", CONFORMING[1:])))]
    assert (json_report(judged)["exit"], json_report(judged, strict=True)["exit"]) == (0, 1)


def test_a_run_that_recorded_no_request_tested_nothing(tmp_path: Path) -> None:
    """What silence meets passes, and the run ends with 3 all the same."""
    silent = write(tmp_path / "a.jsonl", [])
    marks = [("bypass", {"on": True}), ("step", {"index": 0, "step": "start", "session": "s1"})]
    marks += [("scenario_end", {"name": "bypass", "error": None})]
    with silent.open("a") as stream:
        for seq, (name, data) in enumerate(marks, start=1):
            stream.write(json.dumps({"kind": "mark", "seq": seq, "name": name, "data": data}) + "\n")
    document = checked(json.dumps(json_report([judge(read(silent))])))
    assert document["together"]["SIG-FAIL-004"]["verdict"] == "PASS"
    assert document["exit"] == 3


@pytest.mark.parametrize(("version", "contract"), [("0.58.1", "0.58"), ("0.145.7", "0.145"), ("0.205.3", "0.205")])
def test_the_contract_is_that_of_the_daemon_unless_given(tmp_path: Path, version: str, contract: str) -> None:
    """The daemon of a trace decides the contract version; a given one stands as it is."""
    judged = [judge(read(write(tmp_path / "a.jsonl", CONFORMING, {**HEADER, "daemon_version": version})))]
    assert json_report(judged)["contract"] == contract
    assert json_report(judged, "0.58")["contract"] == "0.58"


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("-inf"),
        10**5000,
        "x" * 10_000,
        list(range(10_000)),
        {str(n): n for n in range(10_000)},
        {"a\x7f": ["\u202e", "\ud800", "\x1b[31m"]},
        json.loads("[" * 150 + "]" * 150),
    ],
    ids=["nan", "infinite", "huge-integer", "long-text", "long-list", "large-object", "odd-text", "deep"],
)
def test_any_received_value_is_bounded_printable_json(value: object) -> None:
    """Whatever a trace held, the document stays small, valid and free of what a terminal obeys."""
    finding = Finding(Verdict.FAIL, (1,), "off", "/request/body", "less", value)
    judgement = Judgement("SIG-HTTP-001", Verdict.FAIL, Reason.BREACH, "off", (finding,), 1)
    stream = io.StringIO()
    judged = JudgedTrace(Trace(Header(), (), ()), "0.145.7", {"SIG-HTTP-001": judgement})
    writer = JsonReport(stream)
    writer.add(judged, {})
    writer.close(ending_of([judged], 1))
    text = stream.getvalue()
    checked(text)
    assert len(text) < 8000
    assert text.isascii()
    assert all(character.isprintable() or character == "\n" for character in text)


def test_the_essence_of_a_trace_still_tells_the_whole_run(tmp_path: Path) -> None:
    """Coverage over a driven run is the same whether the exchanges or only their essence was kept."""
    ended = {"kind": "mark", "t": 9.0, "name": "scenario_end", "data": {}}
    declared = {**HEADER["declared"], "capabilities": ["health", "session-start", "session-end"]}
    judged = [
        judge(
            read(
                write(
                    tmp_path / name,
                    [health(), start(), ended],
                    {**HEADER, "declared": declared},
                )
            )
        )
        for name in ("a.jsonl", "b.jsonl")
    ]
    whole, kept = (
        json_report(run)["together"]["SIG-COV-001"] for run in (judged, [essence(trace) for trace in judged])
    )
    assert whole == kept
    assert whole["verdict"] == "FAIL"
