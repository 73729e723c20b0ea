"""Notes on handlers: one line a kind of trouble, the first place of each, and whether a fault was about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from signet_conformance import engine
from signet_conformance.contract import document
from signet_conformance.reports.html.report import HtmlReport
from signet_conformance.reports.markdown import MarkdownReport
from signet_conformance.reports.remarks import MAX_KINDS, remarks
from signet_conformance.reports.text import Headings
from signet_conformance.trace import Declared, Header, Mark, Trace
from tests.support.case_traces import build
from tests.support.json_reports import json_report
from tests.support.run_endings import ending_of

Given = tuple[str, Mapping[str, Any]]

ON: Given = ("fault", {"kind": "refuse", "on": True, "id": 1})
OFF: Given = ("fault", {"kind": "refuse", "on": False, "id": 1})
BOOM = "Error: boom at on (plugin.mjs:5:9)"


def recording(scenario: str, *marks: Given) -> Trace:
    """A recording of a scenario with these marks and no exchange."""
    given: Sequence[Given] = (("scenario", {"name": scenario}), *marks)
    return Trace(Header(), (), tuple(Mark(seq=n, t=n, name=name, data=data) for n, (name, data) in enumerate(given)))


def step(index: int, kind: str = "prompt") -> Given:
    """A step that was given."""
    return "step", {"index": index, "step": kind, "session": "s1"}


def handler(index: int, outcome: str = "thrown", **more: Any) -> Given:
    """What became of a handler in it."""
    return "handler", {"index": index, "event": "before_prompt_build", "outcome": outcome, **more}


def test_who_holds_the_default_port_is_told_once() -> None:
    """In two scenarios of a run; why a requirement is not decided stands in every report then."""
    words = "another run of the kit (process 4711) holds 127.0.0.1:3850"
    held = [recording(name, ("unheard_port", {"words": words})) for name in ("one", "two")]
    assert remarks(held) == [f"SIG-LOAD-003 is not decided: {words}"]


def test_a_declared_operation_that_does_not_exist_is_named() -> None:
    """A misspelt operation in a recording's header is held against nothing, so the reader has to know."""
    declared = Declared(capabilities=("session-start", "user-prompt-submitt"))
    notes = remarks([Trace(Header(declared=declared), (), ())])
    meant = "did you mean user-prompt-submit?"
    assert notes == [f"declared, and no operation of the contract: user-prompt-submitt: {meant}"]


def test_a_declared_bound_of_no_known_call_is_named() -> None:
    """Nothing is held to a misspelt bound; a recording that a later kit wrote may have one more, and is judged."""
    notes = remarks([Trace(Header(declared=Declared(bounds_s={"start": 5.0, "session-start": 5.0})), (), ())])
    assert notes == ["declared, and no bound of the kit: session-start; it knows start, prompt, tool, compact, end"]


SENDING = {"mark": "sent", "data": {"index": 0, "requests": [["GET", "/health", "index.mjs:3:5"]]}}
PROBE = {"request": {"method": "GET", "path": "/health"}, "response": {"status": 200, "body": {"status": "healthy"}}}


@pytest.mark.parametrize(
    "items",
    [
        [SENDING],
        [{**PROBE, "error": {"kind": "client_closed"}}, SENDING],
        [SENDING, {"mark": "fault", "data": ON[1]}],
    ],
    ids=["never arrived", "given up", "before a fault"],
)
def test_a_probe_that_got_no_answer_in_time_is_noted(items: Sequence[Mapping[str, Any]], tmp_path: Path) -> None:
    """A connector that takes the daemon for absent leaves hooks out, and whatever it still does may pass."""
    (note,) = remarks([build(tmp_path / "lost.jsonl", items)])
    assert note.startswith("no fault was on, and GET /health was sent and got no answer: the machine may be too slow")


@pytest.mark.parametrize(
    "items",
    [
        [PROBE, SENDING],
        [{"mark": "fault", "data": ON[1]}, SENDING],
        [{"mark": "outage", "data": {"on": True}}, SENDING],
        [{"mark": "stray", "data": {"method": "GET", "path": "/health"}}, SENDING],
        [{**PROBE, "error": {"kind": "client_closed"}}],
    ],
    ids=["answered", "fault", "outage", "another address", "not seen by a driver"],
)
def test_a_probe_that_is_explained_is_not_noted(items: Sequence[Mapping[str, Any]], tmp_path: Path) -> None:
    """Nothing was lost, or the kit itself took the daemon away, or another note says where the request went."""
    assert not [note for note in remarks([build(tmp_path / "one.jsonl", items)]) if "too slow" in note]


def test_an_error_of_no_known_kind_is_named(tmp_path: Path) -> None:
    """It says nothing of an outage, so what it was meant to show is not tested."""
    asked = {"request": {"method": "GET", "path": "/health"}, "response": None}
    kinds = ("upstream_refused", "refused", "refused")
    (note,) = remarks([build(tmp_path / "a.jsonl", [{**asked, "error": {"kind": kind}} for kind in kinds])])
    assert note.startswith("exchange 2: error.kind is refused, which decides nothing: the kit knows upstream_refused, ")


def test_requests_that_were_refused_are_told_once() -> None:
    """However many each recording has of them: a connector that sends an Origin is taken for a web page."""
    refused = ("refused", {"origin": "null", "method": "GET", "path": "/health"})
    told = remarks([recording("one", refused), recording("two", refused, refused)])
    assert told == remarks([recording("two", refused)])
    assert told[0].startswith("requests were refused (403) as a web page's (Origin: null): send no Origin header")


def test_what_was_no_request_is_told_once() -> None:
    """The client was answered 400, and the recording has no exchange that would show it."""
    marks = [("no_request", {"conn": n, "words": words}) for n, words in enumerate(("4 bytes came", "4 bytes came"))]
    assert remarks([recording("one", *marks)]) == ["answered 400: 4 bytes came"]


def test_trouble_of_one_kind_is_one_line() -> None:
    """Steps and scenarios are counted, however often the handler was called in each; the first place is told."""
    plain = recording("plain", step(0, "start"), step(1), handler(1, text=BOOM), handler(1, text="again"))
    several = recording("several", step(1), handler(1, text="other"), step(2), handler(2))
    where = f"in 3 steps of 2 scenarios; the first: plain, step 1 prompt: {BOOM}"
    assert remarks([plain, several]) == [f"before_prompt_build: threw, {where}"]


@pytest.mark.parametrize(
    ("outcome", "more", "said"),
    [
        ("blocked", {"status": 2}, "ended with status 2 and blocked the user's turn"),
        ("blocked", {}, "blocked the user's turn"),
        ("failed", {"status": 127}, "failed with status 127"),
        ("failed", {}, "failed"),
        ("timed_out", {"ms": 15004.2}, "gave no answer within 15.0 s"),
        ("timed_out", {}, "gave no answer"),
        ("slow", {"ms": 30010.0, "status": 0}, "made the user wait 30.0 s"),
    ],
)
def test_words_of_an_outcome(outcome: str, more: Mapping[str, Any], said: str) -> None:
    """What is known of the status and the time is told."""
    (line,) = remarks([recording("plain", step(1), handler(1, outcome, **more))])
    assert line == f"before_prompt_build: {said}, in 1 step of 1 scenario; the first: plain, step 1 prompt"


ONLY = "in 1 step of 1 scenario, only while a fault was on; the first: s, step 1 prompt"
UNDER = [ON, step(1), handler(1, text="refused"), OFF]


@pytest.mark.parametrize(
    ("marks", "said"),
    [
        (UNDER, f"{ONLY}: refused"),
        ([step(2), handler(2, text=BOOM)], f"in 1 step of 1 scenario; the first: s, step 2 prompt: {BOOM}"),
        (
            [*UNDER, step(2), handler(2, text=BOOM)],
            f"in 2 steps of 1 scenario, also without a fault; the first: s, step 2 prompt: {BOOM}",
        ),
        # A fault that serves one exchange is over before the step is.
        ([ON, step(1), OFF, handler(1)], ONLY),
        ([step(1), ON, OFF, handler(1)], ONLY),
    ],
    ids=["under a fault", "without one", "both", "a fault that ends", "a fault within"],
)  # fmt: skip
def test_whether_a_fault_was_about(marks: Sequence[Given], said: str) -> None:
    """What the kit's own fault brings about is less remarkable; the place without one is told where there is one."""
    assert remarks([recording("s", *marks)]) == [f"before_prompt_build: threw, {said}"]


def test_waiting_under_a_fault_is_not_noted() -> None:
    """A daemon that the kit has slowed down is what another requirement judges; without a fault the user just waits."""
    slow = handler(1, "slow", ms=6001.0)
    assert remarks([recording("s", ON, step(1), slow, OFF)]) == []
    assert len(remarks([recording("s", ON, OFF, step(1), slow)])) == 1


def test_worst_stands_first_and_the_list_ends() -> None:
    """Trouble without a fault comes before that under one, a blocked turn before a handler that failed."""
    kinds = [("handler", {"index": 1, "event": f"e{n}", "outcome": "failed"}) for n in range(MAX_KINDS)]
    blocked: Given = ("handler", {"index": 1, "event": "worst", "outcome": "blocked"})
    lines = remarks([recording("s", ON, step(0), handler(0, "blocked"), OFF, step(1), *kinds, blocked)])
    assert lines[0].startswith("worst: blocked the user's turn")
    assert lines[1].startswith("e0: failed")
    assert lines[MAX_KINDS:] == ["2 more kinds of trouble with handlers"]


@pytest.mark.parametrize("data", [{}, {"outcome": ["thrown"]}, {"outcome": {}}, {"outcome": "sulked"}, {"index": []}])
def test_mark_of_another_shape_says_nothing(data: Mapping[str, Any]) -> None:
    """A recording may come from anywhere: what is no outcome is passed over."""
    assert remarks([recording("s", step(1), ("handler", data))]) == []


def test_odd_members_are_no_reason_to_fail() -> None:
    """What stands in the place of a name, a number or a text counts as absent."""
    odd = ("handler", {"outcome": "thrown", "event": None, "status": [], "ms": "x", "text": 7, "index": {}})
    (line,) = remarks([recording("s", ("step", {"index": {}, "step": None}), odd)])
    assert line == "a handler: threw, in 1 step of 1 scenario; the first: s, step"


def test_every_report_shows_the_notes() -> None:
    """The terminal shows those of each recording, the reports those of the run, harmlessly."""
    hostile = handler(1, text="<b>`boom`</b>\x1b[2J")
    judged = engine.judge(recording("plain", step(1), hostile))
    headings = Headings()
    headings.add(judged)
    assert any("before_prompt_build: threw" in line for line in headings.lines(400))
    told = json_report([judged])
    jsonschema_rs.validator_for(document("report/signet-report-1.schema.json")).validate(told)
    assert told["remarks"] == told["traces"][0]["remarks"] == remarks([judged.trace])
    for make, shown in ((MarkdownReport, "- ``before_prompt_build: threw,"), (HtmlReport, "&lt;b&gt;`boom`&lt;/b&gt;")):
        stream = StringIO()
        page = make(stream)
        page.add(judged, {})
        page.close(ending_of([judged], 0))
        assert shown in stream.getvalue()
        assert "\x1b" not in stream.getvalue()
        assert "Noticed in the harness" in stream.getvalue()


def test_nothing_to_note_is_not_mentioned() -> None:
    """A run without trouble has no such section."""
    judged = engine.judge(recording("plain", step(1)))
    assert "remarks" not in json_report([judged])
    for make in (MarkdownReport, HtmlReport):
        stream = StringIO()
        make(stream).close(ending_of([judged], 0))
        assert "Noticed in the harness" not in stream.getvalue()


def mark(name: str, /, **data: Any) -> dict[str, Any]:
    """A mark."""
    return {"mark": name, "data": data}


@pytest.mark.parametrize("real", [True, False])
def test_a_step_that_a_real_program_skipped_is_named_with_its_reason(real: bool, tmp_path: Path) -> None:
    """Once for all scenarios with it; what a played harness has no counterpart for is no remark."""
    traces = [
        build(
            tmp_path / f"{name}.jsonl",
            [
                mark("scenario", name=name),
                mark("loaded", ok=True, host="omp", release="1", real=real),
                mark("step", index=3, step="tool", session="s1"),
                mark("skipped", index=3, reason="the connector has no tool memory_search"),
            ],
        )
        for name in ("day", "night")
    ]
    told = ["omp did not perform tool in day, night: the connector has no tool memory_search"]
    assert remarks(traces) == (told if real else [])
