"""Facts about the reports that are files: Markdown, SARIF and the page say what the text report says, and where."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Mapping
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from signet_conformance.contract import daemon_requirements, requirements
from signet_conformance.engine import JudgedTrace, exit_status, fold_run, judge
from signet_conformance.finding import Finding, Judgement, Reason, Verdict
from signet_conformance.outcome.conclusion import Terms
from signet_conformance.outcome.coverage import Meter
from signet_conformance.outcome.options import Declarations
from signet_conformance.outcome.several_traces import essence
from signet_conformance.reports.ending import ReportWriter
from signet_conformance.reports.html.exchange_data import MAX_BODY, Budget, exchange_data
from signet_conformance.reports.html.kill_matrix import RequirementMutants
from signet_conformance.reports.html.report import HtmlReport
from signet_conformance.reports.junit import JunitReport
from signet_conformance.reports.markdown import MAX_BYTES, MarkdownReport, code, inline
from signet_conformance.reports.sarif import SarifReport, literal
from signet_conformance.trace import Declared, Header, Mark, Trace, read
from tests.support.run_endings import ending_of
from tests.support.trace_files import BREACHING, CONFORMING, health, post, recall, start, write

AGENT, ALSO = "SIG-AGENT-001", "SIG-AGENT-002"
COVERAGE = "SIG-COV-001"
KNOWN = dict.fromkeys((AGENT, ALSO), "ada, until 2027-01-31: next release")


@pytest.fixture
def judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[JudgedTrace]:
    """Two traces of the folder that the run was started in: one that breaches, one that conforms."""
    monkeypatch.chdir(tmp_path)
    traces = (("a b.jsonl", BREACHING), ("b.jsonl", CONFORMING))
    return [judge(read(write(tmp_path / name, lines))) for name, lines in traces]


def written(kind: type[Any], judged: list[JudgedTrace], known: Mapping[str, str] | None = None, **more: Any) -> str:
    """A report of these traces, which it gets in essence when it ends; what is known is known of the whole run too."""
    stream = io.StringIO()
    made: ReportWriter = kind(stream)
    for recording in judged:
        made.add(recording, known or {})
    status = exit_status([whole.verdict for whole in fold_run(judged).values()])
    made.close(ending_of([essence(recording) for recording in judged], status, known=known or {}, **more))
    return stream.getvalue()


def results(judged: list[JudgedTrace], **more: Any) -> list[dict[str, Any]]:
    """The results of the SARIF report."""
    (run,) = json.loads(written(SarifReport, judged, **more))["runs"]
    return list(run["results"])


@pytest.mark.parametrize("kind", [MarkdownReport, JunitReport, HtmlReport])
def test_a_file_below_the_current_folder_is_named_from_there(
    kind: type[Any], judged: list[JudgedTrace], tmp_path: Path
) -> None:
    """The row that says in which trace a breach shows has no path of this machine; elsewhere that is all there is."""
    place = f"{judged[0].trace.path}:"
    assert place == f"{tmp_path}/a b.jsonl:"
    assert place not in unescape(written(kind, judged))
    assert "a b.jsonl:" in unescape(written(kind, judged))
    (tmp_path / "elsewhere").mkdir()
    os.chdir(tmp_path / "elsewhere")
    assert place in unescape(written(kind, judged))


def test_markdown_tells_what_where_and_what_to_change(judged: list[JudgedTrace]) -> None:
    """Counts, then each breach with its exchange, the line of its trace, the change, and the way to its page."""
    text = written(MarkdownReport, judged)
    assert "| ERROR | FAIL | WARN | PASS | INCONCLUSIVE | NOT-APPLICABLE |" in text
    block = text.split(f"### FAIL {AGENT} (MUST)", 1)[1].split("###", 1)[0]
    assert "- **what**: the session runs as 'atlas-agent', its memory-recall as 'default'" in block
    assert "`#3 POST /api/memory/recall, on the connector's side`, in `" in block
    assert "a b.jsonl:4`" in block
    assert requirements()[AGENT].fix.split(";")[0] in block
    assert f"- **page**: `signet-conformance explain {AGENT}`" in block
    assert "    > #3 POST /api/memory/recall key=s-41c7 agent=default -> 200" in block
    assert "- **seen**: in 1 of 2 traces, 1 session, 2 calls (memory-recall)" in block.replace("`", "")
    assert f"- **also**: FAIL {ALSO}: memory-recall runs as 'default'" in block.replace("`", "")


def test_markdown_says_what_could_not_be_decided_and_what_is_known(judged: list[JudgedTrace]) -> None:
    """Each undecided requirement stands with the way to its page; a known failure says so, and why it stands."""
    text = written(MarkdownReport, judged, KNOWN)
    undecided = [name for name, whole in fold_run(judged).items() if whole.verdict is Verdict.INCONCLUSIVE]
    assert undecided
    assert all(f"- {name}: `signet-conformance explain {name}`" in text for name in undecided)
    assert f"### FAIL, known {AGENT} (MUST)" in text
    assert "- **known**: ada, until 2027-01-31: next release" in text.replace("`", "")


@pytest.mark.parametrize("kind", [MarkdownReport, JunitReport, HtmlReport])
def test_what_is_known_in_a_part_of_the_traces_is_not_said_to_be_known_in_all(
    kind: type[Any], judged: list[JudgedTrace], tmp_path: Path
) -> None:
    """The reason of a known failure says so if the failure also shows where nobody accepted it."""
    other = judge(read(write(tmp_path / "c.jsonl", BREACHING)))
    texts = []
    for beside in (KNOWN, {}):
        made: ReportWriter = kind(stream := io.StringIO())
        made.add(judged[0], KNOWN)
        made.add(other, beside)
        made.close(ending_of([judged[0], other], 1))
        texts.append(unescape(stream.getvalue()).replace("`", ""))
    in_all, in_a_part = texts
    assert f"in a part of them: {KNOWN[AGENT]}" in in_a_part
    assert KNOWN[AGENT] in in_all
    assert "in a part of them" not in in_all


@pytest.mark.parametrize("kind", [MarkdownReport, JunitReport, HtmlReport])
def test_what_one_cause_breaches_beside_is_marked_if_it_is_known(kind: type[Any], judged: list[JudgedTrace]) -> None:
    """The requirements below a leading one have their mark too."""
    for known, marked in ((KNOWN, True), ({}, False)):
        assert (f"{ALSO}, known: " in unescape(written(kind, judged, known)).replace("`", "")) is marked


def test_markdown_fits_a_step_summary() -> None:
    """However much is breached, the document stays below a mebibyte, and says what it leaves out."""
    trace = Trace(Header(), (), (), "t.jsonl")
    findings = {
        name: tuple(
            Finding(Verdict.FAIL, (1,), f"{name}{kind}" + "<é" * 400, "/a", f"{name}{kind}" + "<" * 400, "<" * 400)
            for kind in range(9)
        )
        for name in requirements()
    }
    every = {name: Judgement(name, Verdict.FAIL, Reason.BREACH, "all", findings[name]) for name in requirements()}
    many = [JudgedTrace(trace, "0.145.7", every) for _ in range(3)]
    stream = io.StringIO()
    made = MarkdownReport(stream)
    for recording in many * 3:
        made.add(recording, {})
    made.close(ending_of(many, 1, remarks=[f"{number} a note" * 60 for number in range(3000)]))
    assert MAX_BYTES // 3 < len(stream.getvalue().encode()) < 1 << 20
    assert "more blocks do not fit here" in stream.getvalue()


@pytest.mark.parametrize(
    "text", ["`", "``a`", " `a", "a|b", "", " ", "<b>", "a\\", "*a*", "@ada", "#1", "www.x.invalid", ":x:"]
)
def test_text_that_markdown_would_read_is_code(text: str) -> None:
    """What is not plain stands in a code span, with a fence that it does not hold itself."""
    span = code(text)
    fence = span[: len(span) - len(span.lstrip("`"))]
    assert span.startswith(fence)
    assert span.endswith(fence)
    assert fence not in span[len(fence) : -len(fence)].replace(fence + "`", "")
    assert inline(text) == (text if text.strip() == "" else span)


def test_sarif_points_at_the_line_of_the_trace(judged: list[JudgedTrace]) -> None:
    """A result a kind of breach: its rule, level and line; repeats are counted; the address is a relative one."""
    (result,) = [result for result in results(judged) if result["ruleId"] == AGENT]
    place = result["locations"][0]["physicalLocation"]
    assert (result["level"], result["occurrenceCount"]) == ("error", 2)
    assert place == {"artifactLocation": {"uri": "a%20b.jsonl"}, "region": {"startLine": 4}}
    assert f"signet-conformance explain {AGENT}" in result["message"]["text"]
    (other,) = [result for result in results(judged) if result["ruleId"] == "SIG-AGENT-001"]
    assert other["relatedLocations"][0]["physicalLocation"]["region"] == {"startLine": 3}


def test_sarif_holds_what_the_standard_asks_for(judged: list[JudgedTrace]) -> None:
    """Version, one run, a rule for each requirement, indexes that fit, an invocation, stable fingerprints."""
    document = json.loads(written(SarifReport, judged))
    assert (document["version"], list(document)) == ("2.1.0", ["$schema", "version", "runs"])
    (run,) = document["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules][: len(requirements())] == list(requirements())
    assert {rule["id"] for rule in rules} >= set(daemon_requirements())
    assert all(rule["help"]["text"] and rule["shortDescription"]["text"] for rule in rules)
    assert all(rules[result["ruleIndex"]]["id"] == result["ruleId"] for result in run["results"])
    assert {result["level"] for result in run["results"]} <= {"error", "warning", "note"}
    (invocation,) = run["invocations"]
    assert invocation.pop("exitCodeDescription").endswith(" (exit 1)")
    assert invocation == {"executionSuccessful": True, "exitCode": 1, "toolExecutionNotifications": []}
    again = [result["partialFingerprints"] for result in results(judged)]
    assert again == [result["partialFingerprints"] for result in run["results"]]


def test_sarif_tells_known_failures_and_the_kits_own(judged: list[JudgedTrace]) -> None:
    """A known failure is suppressed with its reason; a crash of the kit is a notification, no result."""
    (result,) = [result for result in results(judged, known=KNOWN) if result["ruleId"] == AGENT]
    assert result["suppressions"] == [{"kind": "external", "status": "accepted", "justification": KNOWN[AGENT]}]
    crash = Judgement(AGENT, Verdict.ERROR, Reason.CRASHED, "the kit's rule raised ValueError")
    crashed = JudgedTrace(judged[0].trace, "0.145.7", {AGENT: crash})
    (run,) = json.loads(written(SarifReport, [crashed]))["runs"]
    assert run["results"] == []
    assert run["invocations"][0]["executionSuccessful"] is False
    assert "ValueError" in run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"]


def test_a_sarif_message_holds_no_link_and_no_placeholder() -> None:
    """Brackets before a parenthesis are parted and braces doubled, as the standard has it."""
    assert literal('[x](1) {0} {"a": 1}') == '[x] (1) {{0}} {{"a": 1}}'


def test_a_whole_runs_breach_is_in_every_report(tmp_path: Path) -> None:
    """What only the run as a whole breaches stands in Markdown, SARIF and page, beside the first trace."""
    mark: dict[str, Any] = {"kind": "mark", "t": 9.0, "name": "scenario_end", "data": {}}
    header = json.loads((write(tmp_path / "h.jsonl", CONFORMING)).read_text().split("\n")[0])
    header["declared"]["capabilities"] = ["session-start", "secrets-exec"]
    judged = [judge(read(write(tmp_path / name, [*CONFORMING, mark], header))) for name in ("a.jsonl", "b.jsonl")]
    said = "declared but never seen: secrets-exec"
    assert said in written(MarkdownReport, judged)
    assert said in written(HtmlReport, judged)
    (result,) = [result for result in results(judged) if result["ruleId"] == "SIG-COV-001"]
    assert result["message"]["text"].startswith(said)
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].endswith("a.jsonl")


def test_the_page_shows_coverage_and_a_kill_matrix(judged: list[JudgedTrace]) -> None:
    """Coverage that was measured and a selftest that was given each have a section."""
    meter = Meter()
    for recording in judged:
        meter.add(recording)
    page = written(HtmlReport, judged, coverage=meter.coverage())
    assert "of the contract was exercised" in page
    stream = io.StringIO()
    made = HtmlReport(stream)
    made.close(ending_of([], 3, selftest={AGENT: RequirementMutants(killed_by=("m-1", "m-2"), survived=("m-3",))}))
    assert "2 mutants killed, 1 survived." in stream.getvalue()
    assert "Kill matrix" not in page


def test_a_page_keeps_the_breaching_exchanges_when_there_is_no_room(tmp_path: Path) -> None:
    """Rows and bodies beyond the budget are left out and counted; those that a finding names are there all the same."""
    lines = [health(), start(), *(recall(agentId="atlas-agent") for _ in range(40)), recall()]
    judged = judge(read(write(tmp_path / "a.jsonl", lines)))
    data = json.loads(exchange_data(judged, Budget(rows=100, breaching=10_000, bodies=0)))
    rows = {row[0] for row in data["rows"]}
    assert 43 in rows
    assert data["left_out"]["rows"] == 43 - len(rows) > 20
    assert "43" in data["bodies"]
    whole = json.loads(exchange_data(judged, Budget()))
    assert len(whole["rows"]) == len(whole["bodies"]) == 43


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
def test_a_number_that_json_lacks_is_shown_as_text(tmp_path: Path, value: float) -> None:
    """In a mark of the kit too, at any depth: a page holds nothing that a browser cannot read."""
    marks = [{"kind": "mark", "t": 0.1, "name": "scenario_end", "data": {"more": [{"deep": value}]}}]
    judged = judge(read(write(tmp_path / "a.jsonl", [health(), *marks])))
    data = json.loads(exchange_data(judged, Budget()), parse_constant=pytest.fail)
    assert data["marks"][0][-1]["more"] == [{"deep": str(value)}]


def test_a_long_body_is_cut_and_says_so(tmp_path: Path) -> None:
    """A body of any length costs the page a bounded room, whatever it is recorded as."""
    lines = [post("/api/x", {"text": "x" * 200_000}), post("/api/x", None), post("/api/x", None)]
    lines[1]["request"]["body"] = {"text": "y" * 200_000}
    lines[2]["request"]["body"] = {"cut": True, "size": 99, "sha256": "0", "text": "z"}
    judged = JudgedTrace(read(write(tmp_path / "a.jsonl", lines)), "0.145.7", {})
    bodies = json.loads(exchange_data(judged, Budget()))["bodies"]
    kept = [bodies[str(number)][0] for number in (1, 2, 3)]
    assert all(len(exchange["body"]) <= MAX_BODY for exchange in kept)
    assert [exchange["note"] for exchange in kept] == [
        "long values are cut",
        f"200000 characters, the first {MAX_BODY} of them shown",
        "recorded in part only: 99 bytes",
    ]


def test_a_report_replays_a_breach_as_the_run_judged_it(judged: list[JudgedTrace]) -> None:
    """The command repeats the options; a breach of the daemon's side, which no command judges alone, has none."""
    shown = {"SIG-DAEMON-001": Judgement("SIG-DAEMON-001", Verdict.FAIL, Reason.BREACH, "late")}
    judged = [replace(judged[0], daemon=shown), *judged[1:]]
    for kind in (MarkdownReport, HtmlReport):
        text = unescape(written(kind, judged, terms=Terms(declared=Declarations(Declared(agents=("atlas",))))))
        assert f"a b.jsonl' --agent=atlas -k {AGENT}" in text
        assert "-k SIG-DAEMON" not in text


def test_a_failure_of_the_whole_run_is_known_too() -> None:
    """A known failure that no single trace shows is marked in Markdown, and suppressed in SARIF."""
    declared = Declared(capabilities=("health", "memory-delete"))
    ended = (Mark(seq=1, t=0.0, name="scenario_end"),)
    traces = [Trace(Header(declared=declared), (), ended, f"{name}.jsonl") for name in "ab"]
    run = [judge(trace) for trace in traces]
    for known, marked in (({}, False), ({COVERAGE: "ada, until 2027-01-31: next release"}, True)):
        assert (f"### FAIL, known {COVERAGE}" in written(MarkdownReport, run, known=known)) is marked
        (result,) = results(run, known=known)
        assert ("suppressions" in result) is marked
