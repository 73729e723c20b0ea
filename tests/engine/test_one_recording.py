"""What a judged trace carries on: one recording of it, with every body parsed once."""

from __future__ import annotations

from msgspec.structs import replace

from signet_conformance.engine import judge
from signet_conformance.trace import Body
from tests.support.trace_parts import exchange, trace


def test_the_recording_that_was_judged_is_carried_on() -> None:
    """Whoever reads a judged trace reads the recording that its rules have read."""
    given = trace(exchange(1, harness="openclaw"))
    judged = judge(given)
    assert judged.recording.trace is given
    assert judged.recording is judged.recording


def test_another_trace_has_a_recording_of_its_own() -> None:
    """A judged trace that is cut to its essence keeps nothing of the recording it was judged by."""
    judged = judge(trace(exchange(1), exchange(2)))
    bare = replace(judged, trace=trace(exchange(1)))
    assert [call.seq for call in bare.recording.calls] == [1]


def test_what_was_judged_twice_is_equal() -> None:
    """By its trace and its judgements: the recording is how they came about, and no part of what is shown."""
    given = trace(exchange(1, harness="openclaw"))
    judged = judge(given)
    assert judged == judge(given)
    assert "recording=" not in repr(judged)
    assert judged.verdicts["SIG-START-001"] is judged.judgements["SIG-START-001"].verdict


def test_a_body_is_parsed_once() -> None:
    """The object in a text body is the same one whenever it is asked for."""
    body = Body(text='{"harness": "openclaw"}')
    assert body.object == {"harness": "openclaw"}
    assert body.object is body.object
