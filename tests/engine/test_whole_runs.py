"""Several traces of one run: folded together, and judged on whether the connector did what it declares."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from signet_conformance.engine import JudgedRun, fold_run, folding, judge, judge_run, run_judgements
from signet_conformance.facts.whole_run import WholeRun, refusals
from signet_conformance.finding import Finding, Judgement, Reason, Verdict
from signet_conformance.rules.outcome import Outcome
from signet_conformance.trace import Exchange, Mark, Trace
from signet_conformance.trace.marks import NO_ORIGIN
from signet_conformance.trace.model import NOT_CARRIED
from tests.support.trace_parts import START, exchange, trace

NAME = "SIG-START-001"
COVERAGE = "SIG-COV-001"
GOOD, BAD = {"harness": "openclaw"}, {"harness": ""}
PROMPT = "/api/hooks/user-prompt-submit"


def _ended(error: str | None = None, *, part: bool = False) -> Mark:
    return Mark(seq=99, t=99.0, name="scenario_end", data={"error": error, "part": part}, line=99)


def _run(*observed: list[Exchange], capabilities: tuple[str, ...] | None, error: str | None = None) -> JudgedRun:
    return judge_run([trace(*some, marks=[_ended(error)], capabilities=capabilities) for some in observed])


def _performed(path: str, **body: Any) -> list[Exchange]:
    return [exchange(1, path, **(body or GOOD))]


def test_the_highest_verdict_of_any_trace_counts() -> None:
    """One trace that fails fails the run, and its findings are the run's."""
    run = judge_run([trace(exchange(1, **GOOD)), trace(exchange(1, **BAD)), trace(exchange(1, **BAD))])
    together = run.together[NAME]
    assert (together.verdict, together.reason, together.subjects) == (Verdict.FAIL, Reason.BREACH, 3)
    assert len(together.findings) == 2
    assert [judged.judgements[NAME].verdict for judged in run.traces] == [Verdict.PASS, Verdict.FAIL, Verdict.FAIL]


def test_passes_are_counted_together() -> None:
    """Of a requirement that holds everywhere the run says over how many subjects."""
    together = judge_run([trace(exchange(1, **GOOD)), trace(), trace(exchange(1, **GOOD))]).together[NAME]
    assert (together.verdict, together.message, together.subjects) == (Verdict.PASS, "2 subjects", 2)


def test_nothing_anywhere_is_not_applicable() -> None:
    """A requirement without a subject in any trace has none in the run."""
    assert judge_run([trace(), trace()]).together[NAME].verdict is Verdict.NOT_APPLICABLE


def test_a_breach_in_one_trace_is_a_breach_of_the_run() -> None:
    """Each requirement has the first of the folding order that any trace has."""
    judged = [judge(trace(exchange(1, **GOOD)), frozenset({NAME})), judge(trace(exchange(1, **BAD)), frozenset({NAME}))]
    assert {name: judgement.verdict for name, judgement in fold_run(judged).items()} == {NAME: Verdict.FAIL}


def test_only_some_requirements_of_a_run() -> None:
    """Of a run too some requirements alone may be judged."""
    assert list(judge_run([trace(exchange(1))], frozenset({NAME})).together) == [NAME]


def test_what_was_declared_and_done_passes() -> None:
    """COV-001 passes over a whole run in which exactly the declared operations were seen."""
    run = _run(_performed(START), _performed(PROMPT), capabilities=("session-start", "user-prompt-submit"))
    assert run.together[COVERAGE].verdict is Verdict.PASS
    assert [judged.judgements[COVERAGE].verdict for judged in run.traces] == [Verdict.INCONCLUSIVE] * 2


def test_what_was_declared_and_never_done_fails() -> None:
    """A declared operation that no scenario brought about fails, by name."""
    run = _run(_performed(START), _performed(START), capabilities=("session-start", "session-end"))
    assert run.together[COVERAGE].verdict is Verdict.FAIL
    assert run.together[COVERAGE].message == "declared but never seen: session-end"


def test_a_run_in_which_no_operation_was_seen_says_so() -> None:
    """The finding names what was declared, and that nothing of the contract was received."""
    unknown = _performed("/api/hooks/session-edn")
    (finding,) = _run(unknown, unknown, capabilities=("session-end",)).together[COVERAGE].findings
    assert (finding.expected, finding.received) == ("session-end", "no operation")


def test_reason_that_traces_share_is_told_once() -> None:
    """Of two traces, one of which has another reason beside the shared one, each reason stands once."""
    one, two = (Finding(Verdict.INCONCLUSIVE, (1,), text) for text in ("one", "two"))
    judgements = (
        Judgement(NAME, Verdict.INCONCLUSIVE, Reason.UNDECIDED, "; ".join(each.message for each in findings), findings)
        for findings in ((one,), (one, two))
    )
    judged = [replace(judge(trace(exchange(1))), judgements={NAME: judgement}) for judgement in judgements]
    assert fold_run(judged, whole=False)[NAME].message == "one; two"


def test_misspelt_request_is_the_cause_of_what_was_never_seen() -> None:
    """Of a path that no route serves, the declared operation that it is close to is named."""
    misspelt = _performed("/api/hooks/session-edn")
    message = _run(misspelt, misspelt, capabilities=("session-end",)).together[COVERAGE].message
    sent, meant = "POST /api/hooks/session-edn", "POST /api/hooks/session-end"
    assert message == f"{sent} was sent in place of {meant} (SIG-HTTP-003); declared but never seen: session-end"


def test_a_connector_that_is_switched_off_is_no_cause() -> None:
    """It registers nothing while its user bypasses it, and that says nothing of the other recordings."""
    on = Mark(seq=2, t=0.0, name="bypass", data={"on": True}, line=2)
    nothing = Mark(seq=3, t=0.0, name="registered", data={"handlers": 0, "tools": 0, "refused": 0}, line=3)
    listed = exchange(1, "/api/memories", "GET")
    bypassed = trace(listed, marks=[on, nothing, _ended()], capabilities=("session-end",))
    silent = trace(listed, marks=[nothing, _ended()], capabilities=("session-end",))
    heard = trace(listed, marks=[_ended()], capabilities=("session-end",))
    assert judge_run([bypassed, heard]).together[COVERAGE].message == "declared but never seen: session-end"
    said = judge_run([silent, heard]).together[COVERAGE].message
    assert said == "registered: 0 handlers, 0 tools (SIG-LOAD-001); declared but never seen: session-end"


def test_cause_that_the_driver_knows_stands_before_its_effects() -> None:
    """A message may be cut, and a list of operations leads nowhere."""
    cause = Mark(seq=2, t=0.0, name="remark", data={"text": "the host registers nothing", "unheard": True}, line=2)
    beside = Mark(seq=3, t=0.0, name="remark", data={"text": "a timeout of an hour"}, line=3)
    listed = exchange(1, "/api/memories", "GET")
    seen = [trace(listed, marks=[cause, beside, _ended()], capabilities=("session-end",))] * 2
    message = judge_run(seen).together[COVERAGE].message
    assert message == "the host registers nothing; declared but never seen: session-end"


def _sent(path: str, method: str = "GET") -> Mark:
    return Mark(seq=2, t=0.0, name="sent", data={"index": 0, "requests": [[method, path, "index.mjs:1:1"]]}, line=2)


def _run_that_lacks_a_probe(*marks: Mark, dropped: bool = False, also: tuple[str, ...] = ()) -> JudgedRun:
    asked = replace(exchange(3, "/health", "GET"), response=None, error=NOT_CARRIED)
    seen = [exchange(1), *([asked] if dropped else [])]
    declared = ("session-start", "health", *also)
    return judge_run(
        [
            trace(*seen, marks=[*marks, _ended()], capabilities=declared),
            *[trace(exchange(1), marks=[_ended()], capabilities=declared)],
        ]
    )


@pytest.mark.parametrize(("marks", "dropped"), [([_sent("/health")], False), ([], True)])
def test_what_was_sent_and_never_arrived_is_undecided(marks: list[Mark], dropped: bool) -> None:
    """A busy machine may keep a request from its way: no verdict rests on that, and none is PASS beside it."""
    judgement = _run_that_lacks_a_probe(*marks, dropped=dropped).together[COVERAGE]
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert judgement.message.startswith("GET /health ")
    assert judgement.message.endswith("the machine may be too slow to show health")


@pytest.mark.parametrize(
    "marks",
    [
        [],
        [_sent("/api/hooks/session-end", "POST")],
        [_sent("/health"), Mark(seq=3, t=0.0, name="stray", data={"method": "GET", "path": "/health"}, line=3)],
        [_sent("/health"), Mark(seq=3, t=0.0, name="refused", data={"method": "GET", "path": "/health"}, line=3)],
    ],
)
def test_what_was_not_sent_to_the_daemon_fails(marks: list[Mark]) -> None:
    """Nor does what went elsewhere, or was refused as a page's, excuse anything."""
    assert _run_that_lacks_a_probe(*marks).together[COVERAGE].verdict is Verdict.FAIL


def test_what_else_was_never_done_fails_beside_what_was_lost() -> None:
    """The message names what fails alone."""
    judgement = _run_that_lacks_a_probe(_sent("/health"), also=("session-end",)).together[COVERAGE]
    assert judgement.verdict is Verdict.FAIL
    assert judgement.message == "declared but never seen: session-end"


def test_what_was_done_and_not_declared_is_drift() -> None:
    """An operation that was not declared warns, by name."""
    run = _run(_performed(START), _performed(PROMPT), capabilities=("session-start",))
    assert run.together[COVERAGE].verdict is Verdict.WARN
    assert run.together[COVERAGE].message == "DRIFT: seen but not declared: user-prompt-submit"
    assert run.together[COVERAGE].subjects == 2


def test_requests_that_went_elsewhere_are_a_cause() -> None:
    """A connector that calls another address is heard by nobody, and that is where the reader has to look."""
    away = {"method": "POST", "path": START, "address": "[::1]:3850"}
    stray = Mark(seq=2, t=0.0, name="stray", data=away, line=2)
    seen = [trace(exchange(1), marks=[stray, _ended()], capabilities=("session-end",))] * 2
    message = judge_run(seen).together[COVERAGE].message
    assert message.startswith("requests went to [::1]:3850 instead (SIG-LOAD-003); declared but never seen")


def test_what_the_host_refused_is_a_cause_of_what_it_is_for() -> None:
    """A memory server in a file that the host does not read explains its own operations, and no others."""
    data = {
        "accepted": False,
        "file": "settings.json",
        "words": "it reads .claude.json",
        "operations": ["memory-recall"],
    }
    marks = [Mark(seq=2, t=0.0, name="installed", data=data, line=2), _ended()]
    for absent, cause in (
        ("memory-recall", "settings.json: it reads .claude.json (SIG-LOAD-002); "),
        ("session-end", ""),
    ):
        seen = [trace(exchange(1), marks=marks, capabilities=("session-start", absent))] * 2
        assert judge_run(seen).together[COVERAGE].message == f"{cause}declared but never seen: {absent}"


def test_nothing_registered_is_a_cause() -> None:
    """Where the host took nothing at all, each operation that was declared is absent for that one reason."""
    mark = Mark(seq=2, t=0.0, name="registered", data={"handlers": 0, "tools": 0}, line=2)
    listed = exchange(1, "/api/memories", "GET")
    seen = [trace(listed, marks=[mark, _ended()], capabilities=("session-end",))] * 2
    cause = "registered: 0 handlers, 0 tools (SIG-LOAD-001)"
    assert judge_run(seen).together[COVERAGE].message == f"{cause}; declared but never seen: session-end"


def test_step_that_the_driver_skipped_is_a_cause() -> None:
    """A connector is not blamed for a hook that nothing of the run could make it call."""
    marks = [
        Mark(seq=2, t=0.0, name="step", data={"index": 0, "step": "compact", "session": "s1"}, line=2),
        Mark(seq=3, t=0.0, name="skipped", data={"index": 0, "reason": "the client has no method compact"}, line=3),
        _ended(),
    ]
    seen = [trace(exchange(1), marks=marks, capabilities=("session-start", "pre-compaction"))] * 2
    assert judge_run(seen).together[COVERAGE].message == (
        "the driver skipped compact (2 scenarios), since the client has no method compact, and nothing else brings"
        " pre-compaction about; declared but never seen: pre-compaction"
    )


def _refused(*origins: str) -> list[Mark]:
    data = ({"origin": origin, "method": "GET", "path": "/health"} for origin in origins)
    return [Mark(seq=n, t=0.0, name="refused", data=told, line=n) for n, told in enumerate(data, 2)]


@pytest.mark.parametrize(
    ("origins", "told"),
    [
        (["null"], "2 requests were refused (403) as a web page's (Origin: null): send no Origin header"),
        ([NO_ORIGIN], "2 requests were refused (403) as a web page's (Origin: none, but a Sec-Fetch-Site): send no"),
        ([*"abc"], "6 requests were refused (403) as a web page's (Origin: a, b, c): send"),
        ([*"abcd"], "8 requests were refused (403) as a web page's (Origin: a, b, c and 1 more): send"),
        ([*"abcde"], "10 requests were refused (403) as a web page's (Origin: a, b, c and 2 more): send"),
        (["a" * 60], f"2 requests were refused (403) as a web page's (Origin: {'a' * 60}): send"),
        (["a" * 61], f"2 requests were refused (403) as a web page's (Origin: {'a' * 59}…): send"),
    ],
)
def test_requests_that_were_refused_are_a_cause(origins: list[str], told: str) -> None:
    """What the recorder takes for a web page's never reaches a daemon: how many, of which origin, and what to do."""
    seen = [trace(exchange(1), marks=[*_refused(*origins), _ended()], capabilities=("session-end",))] * 2
    message = judge_run(seen).together[COVERAGE].message
    assert message.startswith(told)
    assert "; declared but never seen: session-end" in message


def test_one_refused_request_is_told_as_one() -> None:
    """So that the words fit; uncounted they are the same for every trace."""
    seen = [trace(marks=_refused("null"))]
    assert next(refusals(seen)).startswith("1 request was refused (403)")
    assert next(refusals(seen, counted=False)).startswith("requests were refused (403)")


def test_few_causes_are_told_with_an_absence() -> None:
    """Of the causes that the driver knows the first three stand in the message."""
    causes = [
        Mark(seq=n, t=n, name="remark", data={"text": f"cause {n}", "unheard": True}, line=n) for n in range(90, 94)
    ]
    recalls = exchange(1, "/api/memory/recall", query="exports")
    parts = [trace(recalls, marks=[*causes, _ended()], capabilities=("session-end",)) for _ in range(2)]
    message = judge_run(parts).together[COVERAGE].message
    assert message.startswith("cause 90; cause 91; cause 92; declared but never seen: ")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("hooks.json is refused, and none of its hooks runs", "declared but never seen: session-end"),
        ("no hook for Stop, though user-prompt-submit is declared", "declared but never seen: session-end"),
        ("no hook for SessionEnd, though session-end is declared", "no hook for SessionEnd, though session-end is"),
    ],
)
def test_cause_of_silence_is_none_where_hooks_spoke(text: str, told: str) -> None:
    """In a run in which a hook was seen, only a remark on what is missing says why that is."""
    remark = Mark(seq=9, t=9, name="remark", data={"text": text, "unheard": True}, line=9)
    unloaded = Mark(seq=8, t=8, name="loaded", data={"ok": False, "words": "no export named default"}, line=8)
    parts = [trace(exchange(1), marks=[unloaded, remark, _ended()], capabilities=("session-end",)) for _ in range(2)]
    assert judge_run(parts).together[COVERAGE].message.startswith(told)


def test_many_messages_are_folded_over_a_run() -> None:
    """Of the messages of a run's traces the first three stand, and a sign of more only where there are more."""

    def together(*harnesses: Any) -> str:
        return judge_run([trace(exchange(1, harness=value)) for value in harnesses]).together[NAME].message

    assert together(1, 2, 3).count("; ") == 2
    assert not together(1, 2, 3).endswith("…")
    assert together(1, 2, 3, 4) == together(1, 2, 3) + " …"


def test_absence_counts_more_than_drift() -> None:
    """What is missing is a breach of a MUST, what is too much is not."""
    run = _run(_performed(START), _performed(PROMPT), capabilities=("session-start", "session-end"))
    assert run.together[COVERAGE].verdict is Verdict.FAIL


def test_what_the_daemon_does_not_serve_is_not_asked_for() -> None:
    """A release without a search of sessions is asked for none, whatever the target declares."""
    parts = [
        trace(exchange(1), marks=[_ended()], daemon_version="0.58.1", capabilities=("session-start", "sessions-search"))
        for _ in range(2)
    ]
    assert judge_run(parts).together[COVERAGE].verdict is Verdict.PASS


def test_polling_a_job_comes_with_running_it() -> None:
    """Polls need no declaration of their own."""
    polls = [exchange(1, "/api/secrets/exec", command="x"), exchange(2, "/api/secrets/exec/j-1", "GET")]
    assert _run(polls, polls, capabilities=("secrets-exec",)).together[COVERAGE].verdict is Verdict.PASS


@pytest.mark.parametrize(
    "traces",
    [
        pytest.param([], id="no trace"),
        pytest.param([trace(exchange(1), marks=[_ended()], capabilities=("session-start",))], id="one trace"),
        pytest.param([trace(exchange(1), marks=[_ended()])] * 2, id="nothing declared"),
        pytest.param([trace(exchange(1), capabilities=("session-start",))] * 2, id="no scenario's end"),
        pytest.param(
            [trace(exchange(1), marks=[_ended("the connector died")], capabilities=("session-start",))] * 2,
            id="a scenario that broke off",
        ),
        pytest.param(
            [trace(exchange(1, "/api/skills", "GET"), marks=[_ended()], capabilities=("session-start",))] * 2,
            id="a path outside the contract",
        ),
    ],
)
def test_anything_but_a_whole_run_is_left_to_its_traces(traces: list[Trace]) -> None:
    """Equality with the manifest is judged only where every trace holds a scenario performed to its end."""
    assert run_judgements([judge(recording) for recording in traces]) == {}


def test_one_broken_scenario_leaves_the_run_undecided() -> None:
    """A run in which one scenario broke off is not whole, so it does not pass."""
    whole = trace(exchange(1), marks=[_ended()], capabilities=("session-start",))
    broken = trace(exchange(1), marks=[_ended("died")], capabilities=("session-start",))
    assert judge_run([whole, broken]).together[COVERAGE].verdict is Verdict.INCONCLUSIVE


def test_a_rule_over_a_run_that_crashes_is_the_kits_own_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a rule over the run raises, the run has an ERROR there and the other verdicts stand."""

    def crashes(_run: WholeRun) -> Iterator[Outcome]:
        raise ZeroDivisionError("three")
        yield

    monkeypatch.setattr(folding, "run_rules", lambda: {COVERAGE: crashes})
    together = _run(_performed(START), _performed(START), capabilities=("session-start",)).together
    assert (together[COVERAGE].verdict, together[COVERAGE].reason) == (Verdict.ERROR, Reason.CRASHED)
    assert "three" in together[COVERAGE].message
    assert together[NAME].verdict is Verdict.PASS


def test_a_requirement_that_a_trace_was_not_judged_by_is_not_decided_over_the_run() -> None:
    """Asked for some requirements only, a run gets no verdict of another one."""
    run = [trace(exchange(1), marks=[_ended()], capabilities=("session-start",))] * 2
    assert COVERAGE not in judge_run(run, frozenset({NAME})).together


def test_a_cause_is_told_once() -> None:
    """A host that cannot load the connector says so in every trace; one that could is no cause."""
    refused = Mark(seq=2, t=0.0, name="loaded", data={"ok": False, "words": "no export named default"}, line=2)
    speechless = Mark(seq=3, t=0.0, name="loaded", data={"ok": False}, line=3)
    loaded = Mark(seq=4, t=0.0, name="loaded", data={"ok": True, "words": "deprecated"}, line=4)
    unknown = Mark(seq=5, t=0.0, name="loaded", data={"words": "perhaps"}, line=5)
    marks = [refused, speechless, loaded, unknown, _ended()]
    run = WholeRun([trace(marks=marks) for _ in range(2)], "0.145.7")
    assert list(run.causes_of(["session-start"])) == ["no export named default"]


def test_scenario_that_was_picked_out_makes_no_whole_run() -> None:
    """Nor does one that broke off, or a lone one."""
    whole, part, broken = (trace(exchange(1), marks=[end]) for end in (_ended(), _ended(part=True), _ended("died")))
    runs = [[whole], [whole, whole], [whole, part], [part, whole], [broken, whole], [whole, replace(whole, part=True)]]
    assert [WholeRun(run, "0.145.7").is_complete for run in runs] == [False, True, False, False, False, False]


def test_operations_of_a_run() -> None:
    """What the daemon of the run serves and has a name; of all its traces."""
    first = trace(exchange(1), exchange(2, "/api/skills", "GET"), exchange(3, "/no/such", "GET"))
    run = WholeRun([first, trace(exchange(1, PROMPT))], "0.145.7")
    assert run.operations == {"session-start", "user-prompt-submit"}
    assert (run.serves("session-start"), run.serves("no-such")) == (True, False)


def test_a_run_declares_what_its_first_trace_does() -> None:
    """Every trace of a run repeats it."""
    run = WholeRun([trace(capabilities=("session-start",)), trace(capabilities=("session-end",))], "0.145.7")
    assert run.declared.capabilities == ("session-start",)
