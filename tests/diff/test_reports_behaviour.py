"""Facts about what `compare` takes for the same breach: behaviour decides, not wording, ids or numbers."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

import pytest
from msgspec.structs import replace

from signet_conformance.diff.reports import BreachGroup, ReportComparison, compare_reports
from signet_conformance.engine import JudgedTrace, judge
from signet_conformance.finding import BREACHES, Verdict
from signet_conformance.outcome.generated_summary import GeneratedSummary
from signet_conformance.reports.json_document import JsonReport
from signet_conformance.reports.report_document import Report
from signet_conformance.trace import read
from tests.support.evidence import TRACES
from tests.support.run_endings import ending_of
from tests.support.trace_files import HEADER, Line, end, health, post, recall, start, write

AGENT = "SIG-AGENT-002"
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def driven(folder: Path, scenario: str, lines: Sequence[Line], *, header: Line = HEADER) -> JudgedTrace:
    """The judged recording of a scenario that was performed to its end."""
    folder.mkdir(exist_ok=True)
    begin = {"kind": "mark", "t": 0.5, "name": "scenario", "data": {"name": scenario}}
    over = {"kind": "mark", "t": 99.0, "name": "scenario_end", "data": {"name": scenario, "error": None}}
    return judge(read(write(folder / f"{scenario}.jsonl", [begin, *lines, over], header)))


def document(*judged: JudgedTrace, seed: int | None = None) -> Any:
    """The report of a run as it is written; with a `seed` it had generated sessions."""
    stream = io.StringIO()
    writer = JsonReport(stream)
    for each in judged:
        writer.add(each, {})
    writer.close(ending_of(judged, 0, generated=None if seed is None else GeneratedSummary(seed, performed=60)))
    return json.loads(stream.getvalue())


def report(*judged: JudgedTrace, seed: int | None = None) -> Report:
    """The same, read back."""
    return Report.model_validate(document(*judged, seed=seed))


def became(outcome: ReportComparison, requirement: str) -> dict[BreachGroup, list[str]]:
    """What became of the breaches of a requirement, with the scenarios."""
    told = [change for change in outcome.changes if change.now.requirement == requirement]
    return {change.became: list(change.scenarios) for change in told}


def counts(outcome: ReportComparison) -> tuple[int, int]:
    """How many breaches are new, and how many fixed."""
    return len(outcome.of(BreachGroup.FRESH)), len(outcome.of(BreachGroup.FIXED))


GOOD = [health(), start(), recall(agentId="atlas-agent"), end()]
BAD = [health(), start(), recall(), end()]


# -- what is the same


@pytest.mark.parametrize("file", sorted(TRACES.glob("*.jsonl"), key=lambda file: file.stat().st_size)[:25], ids=str)
def test_other_ids_are_no_other_behaviour(file: Path, tmp_path: Path) -> None:
    """The recording of a real connector, and the same with other random ids, differ in nothing."""
    text = file.read_text(encoding="utf-8")
    again = tmp_path / file.name
    again.write_text(_UUID.sub(lambda found: str(uuid5(UUID(found[0]), "again")), text), encoding="utf-8")
    outcome = compare_reports(report(judge(read(file))), report(judge(read(again))))
    assert counts(outcome) == (0, 0)
    assert not outcome.of(BreachGroup.FIRST)


def test_one_key_for_two_sessions_is_one_breach_whatever_their_ids(tmp_path: Path) -> None:
    """The ids stand in the message alone."""
    runs = []
    for name, ids in (("a", ("61bd0ce7-1", "6312aa5f-2")), ("b", ("be2811a4-3", "cc008139-4"))):
        lines = [health(), *(line for id_ in ids for line in (start(sessionId=id_), end(sessionId=id_)))]
        runs.append(report(driven(tmp_path / name, "switch", lines)))
    outcome = compare_reports(*runs)
    assert became(outcome, "SIG-SESS-001") == {BreachGroup.STILL: ["switch"]}
    assert counts(outcome) == (0, 0)


def test_other_words_are_no_other_breach(tmp_path: Path) -> None:
    """A kit that says the same otherwise finds nothing new."""
    new = document(driven(tmp_path, "plain", BAD))
    old = Report.model_validate(new)
    for row in new["traces"][0]["verdicts"].values():
        for finding in row["findings"]:
            finding.update(message=f"In other words: {finding['message']}", fold=f"other {finding['fold']}")
    assert counts(compare_reports(old, Report.model_validate(new))) == (0, 0)


def test_a_report_of_an_earlier_kit_is_compared_by_requirement(tmp_path: Path) -> None:
    """It names no kinds: what it shows of a requirement in a scenario is what the new one shows."""
    new = document(driven(tmp_path, "plain", BAD))
    old = json.loads(json.dumps(new))
    for row in (*old["traces"][0]["verdicts"].values(), *old["together"].values()):
        for finding in row["findings"]:
            finding.update(fold=finding["message"])
            del finding["kind"]
    reports = Report.model_validate(old), Report.model_validate(new)
    assert counts(compare_reports(*reports)) == counts(compare_reports(*reversed(reports))) == (0, 0)


def test_every_breach_names_its_kind(tmp_path: Path) -> None:
    """In the report of a run each finding has a kind, and the operation of its call."""
    row = report(driven(tmp_path, "plain", BAD)).traces[0].verdicts[AGENT]
    assert [(finding.kind, finding.operation) for finding in row.findings] == [
        ("memory-recall as default", "memory-recall")
    ]


# -- what is new


def test_the_same_breach_in_a_scenario_that_conformed_is_new(tmp_path: Path) -> None:
    """What is known of one scenario excuses nothing in another."""
    old = report(driven(tmp_path, "plain", BAD), driven(tmp_path, "tools", GOOD))
    new = report(driven(tmp_path, "plain", BAD), driven(tmp_path, "tools", BAD))
    outcome = compare_reports(old, new)
    assert became(outcome, AGENT) == {BreachGroup.STILL: ["plain"], BreachGroup.FRESH: ["tools"]}
    assert outcome.fails


def test_the_same_breach_of_another_operation_is_new(tmp_path: Path) -> None:
    """The start runs as another agent, beside the recall that did so before."""
    old = report(driven(tmp_path, "plain", BAD))
    new = report(driven(tmp_path, "plain", [health(), start(agentId="x"), recall(), end()]))
    assert "session-start" in {change.now.key.operation for change in compare_reports(old, new).of(BreachGroup.FRESH)}


def test_a_list_is_compared_by_its_elements(tmp_path: Path) -> None:
    """Of the declared operations that are never called only the further one is new, and only it is fixed."""
    header = {**HEADER, "declared": {**HEADER["declared"], "capabilities": ["session-start", "session-end", "health"]}}

    def run(folder: str, *lines: Line) -> Report:
        scenarios = ("plain", "tools")
        return report(*(driven(tmp_path / folder, name, [health(), *lines], header=header) for name in scenarios))

    one, two = run("a", start()), run("b", recall(agentId="atlas-agent"))
    outcome = compare_reports(one, two)
    fresh = [change.now.key for change in outcome.of(BreachGroup.FRESH) if change.now.requirement == "SIG-COV-001"]
    assert [key.element for key in fresh] == ["session-start"]
    fixed = [change.now.key for change in compare_reports(two, one).of(BreachGroup.FIXED)]
    assert [key.element for key in fixed if key.requirement == "SIG-COV-001"] == ["session-start"]
    assert "session-end" in {change.now.key.element for change in outcome.of(BreachGroup.STILL)}


# -- what is judged for the first time


def test_a_call_that_was_never_made_before_breaks_nothing_new(tmp_path: Path) -> None:
    """A connector that begins to recall was never judged in it: that is said, and fails nothing."""
    outcome = compare_reports(
        report(driven(tmp_path, "plain", [health(), start(), end()])), report(driven(tmp_path, "plain", BAD))
    )
    assert became(outcome, AGENT) == {BreachGroup.FIRST: ["plain"]}
    assert not outcome.fails


def test_a_call_that_is_made_otherwise_is_new_where_nothing_is_mended(tmp_path: Path) -> None:
    """No end said "clear" before, so nothing was subject to that; the end was sent all the same, and conformed."""
    wrong = [health(), start(), recall(agentId="atlas-agent"), end(reason="clear"), recall(agentId="atlas-agent")]
    wrong.append(post("/api/hooks/user-prompt-submit", {**start()["request"]["body"]["json"], "userMessage": "Which?"}))
    new = report(driven(tmp_path / "new", "plain", wrong))
    assert BreachGroup.FRESH in became(compare_reports(report(driven(tmp_path, "plain", GOOD)), new), "SIG-END-009")
    broken = report(driven(tmp_path / "old", "plain", [health(), start(project=None), end()]))
    assert BreachGroup.FIRST in became(compare_reports(broken, new), "SIG-END-009")


def test_a_scenario_that_was_not_performed_before_breaks_nothing_new(tmp_path: Path) -> None:
    """Such as one that broke off, or one that an earlier kit did not have."""
    old = report(driven(tmp_path, "plain", GOOD))
    outcome = compare_reports(old, report(driven(tmp_path, "plain", GOOD), driven(tmp_path, "tools", BAD)))
    assert became(outcome, AGENT) == {BreachGroup.FIRST: ["tools"]}
    back = compare_reports(report(driven(tmp_path, "plain", GOOD), driven(tmp_path, "tools", BAD)), old)
    assert became(back, AGENT) == {BreachGroup.UNSEEN: ["tools"]}


def test_a_warning_behind_a_failure_is_not_new_when_the_failure_is_mended(tmp_path: Path) -> None:
    """Of one requirement in one recording a report lists what failed, so that a WARN beside it shows later."""
    name = "SIG-START-003"
    judged = driven(tmp_path, "plain", [health(), start(project=None), end()])
    row = judged.judgements[name]
    assert row.verdict is Verdict.WARN
    failed = replace(row, verdict=Verdict.FAIL, findings=(replace(row.findings[0], fold="x", verdict=Verdict.FAIL),))
    old = report(replace(judged, judgements={**judged.judgements, name: failed}))
    assert set(became(compare_reports(old, report(judged)), name)) == {BreachGroup.FIXED, BreachGroup.FIRST}


# -- a part is fixed


def spelt(path: str, body: str) -> list[Line]:
    """A session whose recall spells the runtime path so, in its header and in its body."""
    hook = post("/api/hooks/recall", {"harness": "openclaw", "query": "x", "sessionKey": "s-41c7", "runtimePath": body})
    hook["request"]["headers"] = [["content-type", "application/json"], ["x-signet-runtime-path", path]]
    hook["request"]["body"]["json"]["agentId"] = "atlas-agent"
    return [health(), start(), hook, end()]


def named(*agents: str | None, key: str = "s-41c7") -> list[Line]:
    """A session whose start, recall and end name these agents."""
    calls = zip((start, recall, end), agents, strict=True)
    return [health(), *(call(agentId=agent, sessionKey=key) for call, agent in calls)]


ATLAS = "atlas-agent"
PARTS = {
    "the end still names no agent": (named(None, None, None), named(ATLAS, ATLAS, None)),
    "the start still names no agent": (named(None, None, None), named(None, ATLAS, ATLAS)),
    "one more call is fixed beside the start": (named(None, None, ATLAS), named(None, ATLAS, ATLAS)),
    "the body was hidden behind the header": (spelt("Plugin", "Plugin"), spelt("plugin", "Plugin")),
    "the agent is right, and the key says another": (
        named("", "", "", key="agent:x:s-1"), named(ATLAS, ATLAS, ATLAS, key="agent:x:s-1"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("part", PARTS)
def test_what_follows_from_a_mend_is_not_new(part: str, tmp_path: Path) -> None:
    """Calls that are compared with each other differ once some are fixed; of several flaws the first was told."""
    old, new = (report(driven(tmp_path / name, "plain", PARTS[part][n])) for n, name in enumerate(("old", "new")))
    outcome = compare_reports(old, new)
    assert outcome.of(BreachGroup.FIXED)
    assert [change.now.key for change in outcome.of(BreachGroup.FRESH)] == []
    assert outcome.of(BreachGroup.FIRST)


@pytest.mark.parametrize(
    ("old", "new", "requirement"),
    [
        (named(ATLAS, ATLAS, ATLAS), named(ATLAS, ATLAS, None), "SIG-AGENT-001"),
        (named(None, None, ATLAS), named(None, None, "beacon-agent"), AGENT),
        (spelt("plugin", "plugin"), spelt("plugin", "Plugin"), "SIG-HTTP-005"),
    ],
)
def test_what_is_made_worse_beside_a_mend_is_new(
    old: list[Line], new: list[Line], requirement: str, tmp_path: Path
) -> None:
    """A call that was right and is wrong, or a value that was wrong and is wrong in another way."""
    runs = (report(driven(tmp_path / name, "plain", lines)) for name, lines in (("old", old), ("new", new)))
    outcome = compare_reports(*runs)
    assert BreachGroup.FRESH in became(outcome, requirement)
    assert outcome.fails


# -- a secret leaks

TOKEN = "SIG-HTTP-009"
GIVEN = {**HEADER, "declared": {**HEADER["declared"], "token": True}}


def leaking(line: Line, header: str = "x-trace") -> Line:
    """A request with a token in a header where none belongs."""
    headers = [*line["request"]["headers"], [header, "sig_sk_4f0c1d2e3a4b5c6d"]]
    return {**line, "request": {**line["request"], "headers": headers}}


RECALL = recall(agentId=ATLAS)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ([start(project=None), RECALL, end()], [start(), leaking(RECALL), end()], BreachGroup.FRESH),
        ([start(), end()], [start(), leaking(RECALL), end()], BreachGroup.FRESH),
        ([leaking(start(), "x-a"), end()], [start(), leaking(RECALL), end()], BreachGroup.FRESH),
        ([leaking(start()), end()], [leaking(start()), leaking(RECALL), end()], BreachGroup.FIRST),
    ],
    ids=["beside a mend", "in a call that was not made before", "elsewhere in another way", "as other calls did"],
)
def test_a_secret_that_leaks_is_new_wherever_it_does(
    old: list[Line], new: list[Line], expected: BreachGroup, tmp_path: Path
) -> None:
    """Nothing that was wrong or not called before hides it; only the same leak in other calls was there before."""
    runs = (report(driven(tmp_path / name, "plain", lines)) for name, lines in (("old", old), ("new", new)))
    outcome = compare_reports(*runs)
    assert expected in became(outcome, TOKEN)
    assert outcome.fails is (expected is BreachGroup.FRESH)


def test_a_secret_that_is_printed_is_new_where_nothing_was_printed(tmp_path: Path) -> None:
    """The connector prints for the first time, and prints its token."""
    given = {**HEADER["declared"], "token": True, "canaries": {"<redacted:1>": "SIGNET_CONFORMANCE_TOKEN"}}
    header = {**HEADER, "declared": given}
    said = {"kind": "mark", "t": 50.0, "name": "printed", "data": {"text": "[info] Bearer <redacted:1>", "index": 0}}
    old, new = (report(driven(tmp_path / str(len(m)), "plain", [*GOOD, *m], header=header)) for m in ([], [said]))
    outcome = compare_reports(old, new)
    assert became(outcome, "SIG-SEC-004") == {BreachGroup.FRESH: ["plain"]}
    assert outcome.fails


def test_a_run_that_was_given_no_secret_could_leak_none(tmp_path: Path) -> None:
    """A token that was declared since then is judged for the first time."""
    old = report(driven(tmp_path / "old", "plain", [start(), end()]))
    new = report(driven(tmp_path / "new", "plain", [start(), leaking(RECALL), end()], header=GIVEN))
    assert became(compare_reports(old, new), TOKEN) == {BreachGroup.FIRST: ["plain"]}


# -- what was undecided


def refused_then(pause: float) -> list[Line]:
    """A recall that is answered 503 and comes again after a pause."""
    times = {"t0": 10.0, "t1": 10.01}, {"t0": 10.01 + pause, "t1": 10.02 + pause}
    busy = {**RECALL, "response": {**RECALL["response"], "status": 503}, **times[0]}
    return [health(), start(), busy, {**RECALL, **times[1]}, {**end(), "t0": 20.0, "t1": 20.1}]


def unended(*marks: Line) -> list[Line]:
    """A session that the user ends, and the connector does not."""
    steps = [{"step": kind, "session": "s1", "index": n} for n, kind in enumerate(("start", "end"))]
    first, last = ({"kind": "mark", "t": 50.0, "name": "step", "data": data} for data in steps)
    return [health(), first, start(), RECALL, *marks, last]


def test_what_was_undecided_and_got_worse_is_new(tmp_path: Path) -> None:
    """A pause of 0.3 s may have been a slow machine; one of 0.01 s is none."""
    old, new = (report(driven(tmp_path / str(pause), "plain", refused_then(pause))) for pause in (0.3, 0.01))
    outcome = compare_reports(old, new)
    assert became(outcome, "SIG-HTTP-011") == {BreachGroup.FRESH: ["plain"]}
    (change,) = (change for change in outcome.of(BreachGroup.FRESH) if change.now.requirement == "SIG-HTTP-011")
    assert change.before is Verdict.INCONCLUSIVE
    assert outcome.fails


def test_what_was_excused_and_looks_the_same_is_not_new(tmp_path: Path) -> None:
    """An outage excused a session without an end; the connector does the same without one."""
    away = {"kind": "mark", "t": 50.0, "name": "fault", "data": {"on": True, "kind": "refuse"}}
    old, new = (report(driven(tmp_path / str(len(marks)), "plain", unended(*marks))) for marks in ([away], []))
    assert old.traces[0].verdicts["SIG-END-005"].verdict is Verdict.INCONCLUSIVE
    assert became(compare_reports(old, new), "SIG-END-005") == {BreachGroup.FIRST: ["plain"]}


def test_what_was_undecided_for_want_of_a_declaration_is_not_new(tmp_path: Path) -> None:
    """Nobody had said which agent was right."""
    silent = {**HEADER, "declared": {"harness": "openclaw"}}
    lines = named(None, None, None)
    old = report(driven(tmp_path / "old", "plain", lines, header=silent))
    outcome = compare_reports(old, report(driven(tmp_path / "new", "plain", lines)))
    assert became(outcome, AGENT) == {BreachGroup.FIRST: ["plain"]}
    assert not outcome.fails


# -- generated sessions


@pytest.mark.parametrize(
    ("seeds", "there", "back"),
    [((1, 2), BreachGroup.GENERATED, BreachGroup.GENERATED), ((1, 1), BreachGroup.FRESH, BreachGroup.FIXED)],
    ids=["other sessions", "the same sessions"],
)
def test_a_breach_of_a_generated_session_is_new_only_of_the_same_sessions(
    seeds: tuple[int, int], there: BreachGroup, back: BreachGroup, tmp_path: Path
) -> None:
    """Another seed draws other sessions: what one of them shows is said, and fails nothing."""
    plain = driven(tmp_path, "plain", GOOD)
    old, new = report(plain, seed=seeds[0]), report(plain, driven(tmp_path, AGENT, BAD), seed=seeds[1])
    assert list(became(compare_reports(old, new), AGENT)) == [there]
    assert compare_reports(old, new).fails is (there is BreachGroup.FRESH)
    assert list(became(compare_reports(new, old), AGENT)) == [back]


def test_a_generated_session_adds_nothing_to_what_a_scenario_shows(tmp_path: Path) -> None:
    """The scripted scenario tells of the breach; which generated one does too is chance."""
    plain = driven(tmp_path, "plain", BAD)
    old, new = report(plain, seed=1), report(plain, driven(tmp_path, AGENT, BAD), seed=2)
    assert became(compare_reports(old, new), AGENT) == {BreachGroup.STILL: ["plain"]}


# -- a rule that crashes


def test_a_rule_that_crashes_is_new(tmp_path: Path) -> None:
    """An error of the kit has no finding, and is told all the same."""
    judged = driven(tmp_path, "plain", GOOD)
    crashed = replace(judged.judgements[AGENT], verdict=Verdict.ERROR, findings=(), message="the kit's rule raised")
    new = report(replace(judged, judgements={**judged.judgements, AGENT: crashed}))
    outcome = compare_reports(report(judged), new)
    assert became(outcome, AGENT) == {BreachGroup.FRESH: ["plain"]}
    assert (outcome.fails, outcome.unjudged) == (False, 4)
    assert compare_reports(new, new).unjudged == 0


def test_together_holds_each_kind_of_breach_the_worst_first(tmp_path: Path) -> None:
    """Of every recording, whichever of them leads to the verdict."""
    lines = [health(), start(agentId="x"), recall(), end(), post("/api/memory/remember", {"content": "c"})]
    run = report(driven(tmp_path, "plain", lines), driven(tmp_path, "tools", BAD))
    kinds = {finding.kind for finding in run.together[AGENT].findings}
    assert {"memory-recall as default", "session-start as x", "memory-remember as default"} <= kinds
    for row in run.together.values():
        ranks = [BREACHES.index(finding.verdict or row.verdict) for finding in row.findings if row.verdict in BREACHES]
        assert ranks == sorted(ranks)


def test_document_names_the_scenario(tmp_path: Path) -> None:
    """By its mark; a recording made by hand has none."""
    by_hand: Any = report(judge(read(write(tmp_path / "a.jsonl", GOOD))))
    assert report(driven(tmp_path, "plain", GOOD)).traces[0].scenario == "plain"
    assert by_hand.traces[0].scenario is None
