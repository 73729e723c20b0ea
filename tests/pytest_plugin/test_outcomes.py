"""What each verdict becomes in pytest: outcome, text, place in the summary, exit status."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from signet_conformance.contract import requirements
from tests.support.repository import Repository

from .conftest import JudgedRun

RAISING_RULE = """
from signet_conformance.rules import rule_for

@rule_for("ACME-HTTP-001")
def every_call_is_ours(recording):
    raise ZeroDivisionError("a bug in a rule")
    yield
"""
BREACHED_RULE = """
from signet_conformance.rules import rule_for
from signet_conformance.rules.outcome import fail

@rule_for("ACME-HTTP-001")
def every_call_is_ours(recording):
    yield fail(recording.calls[0], message="no header x-acme")
"""


def test_fail_is_a_failure_that_can_be_acted_on(breaching_run: JudgedRun) -> None:
    """FAIL fails with requirement, sentence, exchange, side, pointer, expected, received, excerpt, change, replay."""
    requirement = requirements()["SIG-END-001"]
    case = breaching_run.cases["SIG-END-001"]
    assert breaching_run.done.status == 1
    assert (case.outcome, case.verdict) == ("failure", "FAIL")
    for piece in (
        "FAIL SIG-END-001 MUST",
        requirement.title,
        "#4 POST /api/hooks/session-end, on the connector's side",
        "/request/body/json/harness",
        "harness: a non-blank string",
        "nothing: the member is absent",
        "#3 POST /api/hooks/user-prompt-submit",
        "> #4 POST /api/hooks/session-end",
        f"signet-conformance check {breaching_run.recording} -k SIG-END-001",
        "signet-conformance explain SIG-END-001",
    ):
        assert piece in case.text, piece
        assert piece in breaching_run.done.out, piece
    assert requirement.fix in " ".join(case.text.split())


def test_fail_shows_no_traceback_of_the_kit(repository: Repository, breaching: Path) -> None:
    """A breach is told without a line of the kit's own code, also at --tb=long -vv."""
    done, cases = repository.judge(breaching, "--tb=long", "-vv")
    shown = done.everything + cases["SIG-END-001"].text
    assert "FAIL SIG-END-001 MUST" in shown
    assert "Traceback" not in shown
    assert "pytest_run.py" not in shown
    assert "_BreachError" not in shown


def test_replay_repeats_the_declarations_of_the_target(repository: Repository, breaching: Path) -> None:
    """A recording judged with a target is replayed with it, for what the target declares counts."""
    _, cases = repository.judge(breaching, "--target=reference", "-k", "SIG-END-001")
    assert f"signet-conformance check {breaching} --target=reference -k SIG-END-001" in cases["SIG-END-001"].text


def test_target_s_declaration_counts_for_a_recording(repository: Repository, conforming: Path) -> None:
    """What the target declares counts for a recording; that it takes a token says not that it was given one here."""
    _, cases = repository.judge(conforming, "--target=reference")
    assert cases["SIG-SESS-003"].verdict == "WARN"
    assert cases["SIG-HTTP-013"].verdict == "NOT-APPLICABLE"


def test_warn_passes_with_a_warning(imperfect_run: JudgedRun) -> None:
    """WARN passes, is told among pytest's warnings with file and line of the exchange, and the status is 0."""
    done, case = imperfect_run.done, imperfect_run.cases["SIG-START-003"]
    assert done.status == 0
    assert (case.outcome, case.verdict) == ("passed", "WARN")
    assert f"{imperfect_run.recording}:3: ConformanceWarning: SIG-START-003: " in done.out
    assert "signet-conformance explain SIG-START-003" in done.out
    assert "conforming; 1 SHOULD broken" in done.out


def test_warn_does_not_print_the_line_of_the_trace(imperfect_run: JudgedRun) -> None:
    """The warning names the line of the trace and does not copy it."""
    assert '"request"' not in imperfect_run.done.everything


@pytest.mark.parametrize("how", ["option", "ini"])
def test_warn_survives_warnings_as_errors(repository: Repository, imperfect: Path, how: str) -> None:
    """A repository that turns warnings into errors has not asked for this one to fail."""
    if how == "ini":
        repository.write("pytest.ini", "[pytest]\nfilterwarnings = error\n")
    done, cases = repository.judge(imperfect, *(["-W", "error"] if how == "option" else []))
    assert done.status == 0, done.everything
    assert (cases["SIG-START-003"].outcome, cases["SIG-START-003"].verdict) == ("passed", "WARN")
    assert "ConformanceWarning: SIG-START-003" in done.out


def test_strict_fails_the_run_for_a_warn(repository: Repository, imperfect: Path) -> None:
    """--signet-strict ends a run with a WARN with 1; the requirement itself still passes with a warning."""
    done, cases = repository.judge(imperfect, "--signet-strict")
    assert done.status == 1
    assert cases["SIG-START-003"].outcome == "passed"
    assert "1 WARN; " in done.out
    assert "(exit 1)" in done.out


def test_strict_passes_what_conforms(repository: Repository, conforming: Path) -> None:
    """--signet-strict changes nothing for a recording without a WARN."""
    assert repository.judge(conforming, "--signet-strict")[0].status == 0


def test_not_applicable_is_skipped_with_its_reason(repository: Repository, conforming: Path) -> None:
    """NOT-APPLICABLE skips, and -rs folds them by the reason, as pytest does, without a line of the kit's code."""
    done, cases = repository.judge(conforming, "-rs")
    case = cases["SIG-CMP-001"]
    assert (case.outcome, case.verdict) == ("skipped", "NOT-APPLICABLE")
    assert "nothing in the trace is subject to it" in case.text
    folded = re.search(
        r"SKIPPED \[(\d+)\] signet-conformance/recording: nothing in the trace is subject to it", done.out
    )
    assert folded is not None
    assert int(folded[1]) > 1
    assert done.out.count(": nothing in the trace is subject to it") == 1
    assert "in force since daemon" in cases["SIG-END-011"].text
    assert "pytest_run.py" not in done.out


def test_inconclusive_is_an_outcome_of_its_own(repository: Repository, conforming: Path) -> None:
    """INCONCLUSIVE is counted and listed with its reason, and is neither passed, failed nor skipped."""
    done, cases = repository.judge(conforming, "-k", "SIG-COV-001 or SIG-START-001", "-rA")
    assert done.status == 0
    assert cases["SIG-COV-001"].verdict == "INCONCLUSIVE"
    assert "SIG-COV-001 INCONCLUSIVE: no coverage manifest is declared" in done.out
    counts = done.out.splitlines()[-1]
    assert "1 passed" in counts
    assert "1 inconclusive" in counts
    assert "skipped" not in counts
    assert "PASSED signet-conformance/recording::SIG-COV-001" not in done.out


@pytest.mark.parametrize("distributed", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_raising_rule_is_the_kit_s_error(repository: Repository, breaching: Path, distributed: tuple[str, ...]) -> None:
    """A rule that raises is ERROR: its item fails and the status is 4, although another requirement FAILs."""
    repository.write("conftest.py", RAISING_RULE)
    done, cases = repository.judge(breaching, *distributed)
    assert done.status == 4, done.everything
    case = cases["ACME-HTTP-001"]
    assert (case.outcome, case.verdict) == ("failure", "ERROR")
    assert "ERROR ACME-HTTP-001" in case.text
    assert "the kit's rule raised ZeroDivisionError: a bug in a rule" in case.text
    assert cases["SIG-END-001"].verdict == "FAIL"
    assert cases["SIG-START-001"].verdict == "PASS"


def test_rule_of_the_repository_is_an_item_like_the_others(repository: Repository, conforming: Path) -> None:
    """A rule registered in a conftest is judged and told like one of the kit."""
    repository.write("conftest.py", BREACHED_RULE)
    done, cases = repository.judge(conforming)
    assert done.status == 1
    assert cases["ACME-HTTP-001"].verdict == "FAIL"
    assert "no header x-acme" in cases["ACME-HTTP-001"].text
    assert list(cases)[-1] == "ACME-HTTP-001"


def test_nothing_tested_is_never_green(repository: Repository, silent: Path) -> None:
    """A recording without an exchange ends with 3 and asks whether the connector was pointed at the recorder."""
    done, cases = repository.judge(silent)
    assert done.status == 3
    assert {case.verdict for case in cases.values()} <= {"NOT-APPLICABLE", "INCONCLUSIVE"}
    assert "nothing was tested in 1 trace (exit 3)" in done.out
    assert "no request was recorded" in done.out
    assert "SIGNET_DAEMON_URL" in done.out


@pytest.mark.parametrize(
    ("name", "data", "told"),
    [
        ("refused", {"origin": "null", "method": "GET", "path": "/health"},
         "no request was passed on: 1 request was refused (403) as a web page's (Origin: null): send"),
        ("no_request", {"conn": 1, "words": "a TLS handshake"},
         "no request was passed on, and what came was answered 400: a TLS handshake"),
    ],
    ids=["as a web page's", "as no request"],
)  # fmt: skip
def test_a_connector_that_was_turned_away_throughout_is_told_why(
    repository: Repository, silent: Path, name: str, data: dict[str, object], told: str
) -> None:
    """It called the right address: with an Origin as web pages send it, or in another protocol."""
    with silent.open("a") as stream:
        stream.write(json.dumps({"kind": "mark", "seq": 1, "name": name, "data": data}) + "\n")
    done, _ = repository.judge(silent)
    assert done.status == 3
    assert told in done.out
    assert "SIGNET_DAEMON_URL" not in done.out


def test_what_a_silent_connector_printed_is_told(repository: Repository, silent: Path) -> None:
    """It may say why it sends nothing, such as a header that its HTTP client refuses."""
    data = {"index": 0, "text": "TypeError: invalid header\n  at call (connector.mjs:7)\n"}
    with silent.open("a") as stream:
        stream.write(json.dumps({"kind": "mark", "seq": 1, "name": "printed", "data": data}) + "\n")
    done, _ = repository.judge(silent)
    assert done.status == 3
    assert "\nthe connector printed: TypeError: invalid header at call (connector.mjs:7)\n" in done.out


def test_silence_that_meets_a_requirement_is_no_test_passed(repository: Repository, silent: Path) -> None:
    """A connector that was told to be silent and never spoke anyway ends with 3, whatever passes by that."""
    marks = ('{"kind":"mark","seq":1,"name":"scenario","data":{"name":"bypass"}}',)
    marks += ('{"kind":"mark","seq":2,"name":"bypass","data":{"on":true}}',)
    marks += ('{"kind":"mark","seq":3,"name":"step","data":{"index":0,"step":"start","session":"s1"}}',)
    with silent.open("a") as stream:
        stream.writelines(f"{mark}\n" for mark in marks)
    done, cases = repository.judge(silent, "--signet-report=report")
    assert cases["SIG-FAIL-004"].verdict == "PASS"
    assert done.status == 3, done.everything
    assert "nothing was tested: no hook or memory request was accepted in 1 trace (exit 3)" in done.out
    assert json.loads((repository.folder / "report" / "report.json").read_bytes())["exit"] == 3


def test_torn_last_line_is_told_and_the_rest_counts(repository: Repository, conforming: Path) -> None:
    """A recorder that was killed leaves a torn last line: it is named with its place, and the rest is judged."""
    with conforming.open("ab") as stream:
        stream.write(b'{"kind":"exchange","seq":5,')
    done, cases = repository.judge(conforming)
    assert done.status == 0
    assert f"note: {conforming}:6: the last line is torn" in done.out
    assert cases["SIG-END-001"].verdict == "PASS"


def test_several_recordings_are_judged_together(repository: Repository, conforming: Path, breaching: Path) -> None:
    """A requirement that one recording breaches and another meets is breached, and the text names the one."""
    done, cases = repository.judge(conforming, "--signet-trace", str(breaching))
    assert done.status == 1
    assert "tested in 2 traces" in done.out
    assert str(breaching) in cases["SIG-END-001"].text
    assert str(conforming) not in cases["SIG-END-001"].text
