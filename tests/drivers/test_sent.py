"""Where a connector's requests are sent from, by the hosts that can tell: in answers to steps and in recordings."""

from __future__ import annotations

from pathlib import Path

import pytest

from signet_conformance import engine, trace
from signet_conformance.drivers.answers import MAX_PLACES, MAX_REQUESTS, sent_mark
from signet_conformance.facts import Recording
from signet_conformance.reports.evidence import evidence_of, source_of

from .conftest import FIXTURES, Made, Recorded


def line_with(file: Path, text: str) -> int:
    """The number of the first line of a file that holds a text."""
    return next(number for number, line in enumerate(file.read_text().splitlines(), 1) if text in line)


@pytest.mark.parametrize("runtime", ["node", "bun"], indirect=True)
def test_a_breach_leads_to_the_line_that_sent_it(runtime: str, made: Made, recorded: Recorded) -> None:
    """The evidence of a breach names the line of the connector whose fetch it was, and those that called it."""
    plugin = FIXTURES / "openclaw_plugin.mjs"
    target = made("openclaw", mode="misnames", module=str(plugin), runtime=runtime)
    judged = engine.judge(trace.read(recorded(target, ["compaction"])[0]))
    first, *callers = evidence_of(judged, judged.judgements["SIG-PROMPT-001"].findings).sources
    helper = FIXTURES / "tiny.mjs"
    assert (Path(first.file).resolve(), first.line) == (helper, line_with(helper, "fetch("))
    assert {Path(caller.file).resolve() for caller in callers} <= {helper, plugin}
    assert callers


def test_a_plugin_in_python_tells_its_places_too(made: Made, recorded: Recorded) -> None:
    """Requests of the standard library's client are told with the connector's lines, whatever thread sent them."""
    package = FIXTURES / "hermes_conforming"
    target = made("hermes-agent", module=str(package / "__init__.py"))
    recording = Recording(trace.read(recorded(target, ["compaction"])[0]))
    places = [source_of(recording, call.seq) for call in recording.of("session-start", "user-prompt-submit")]
    assert places
    assert all(places)
    files = {Path(source.file).resolve() for sources in places for source in sources}
    assert files == {package / "__init__.py", FIXTURES / "tiny.py"}


@pytest.mark.parametrize("told", [None, 7, [], [7], [{}], [{"method": "GET", "path": "/", "at": [""]}]])
def test_an_answer_that_tells_nothing_makes_no_mark(told: object) -> None:
    """Whatever a driver of somebody else's sends: what is no request with a place is passed over."""
    assert sent_mark(0, {"sent": told}) is None


def test_a_mark_is_bounded() -> None:
    """A connector in a loop does not fill the recording."""
    request = {"method": "GET", "path": "/" * 9999, "at": ["x:1"] * 99}
    mark = sent_mark(0, {"sent": [request] * 9999})
    assert mark is not None
    assert len(mark.requests) == MAX_REQUESTS
    assert len(mark.requests[0]) == 2 + MAX_PLACES
    assert len(mark.requests[0][1]) < 600
