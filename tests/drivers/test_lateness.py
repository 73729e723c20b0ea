"""How late a timer of a host was while a handler ran: the machine's doing, not the connector's (SIG-FAIL-002)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from signet_conformance import engine, trace
from signet_conformance.finding import Verdict
from signet_conformance.trace.marks import SLOW, HandlerMark, marks_of

from .conftest import FIXTURES, PROMPT, START, Made, Recorded, performed

pytestmark = pytest.mark.waits

EXTENSION = str(FIXTURES / "pi_extension.mjs")
WORK_MS = 400
BOUND_S, AT_ONCE_S = 0.5, 0.05


def heard(how: str, runtime: str, made: Made, tmp_path: Path) -> Mapping[str, Any]:
    """How the handler of a user's prompt fared that takes some time in that way."""
    target = made("pi", mode=f"{how}:{WORK_MS}", module=EXTENSION, runtime=runtime, harness="pi")
    _, turn = performed(target, tmp_path / "home", [START, PROMPT])
    (call,) = [call for call in turn["calls"] if call["event"] == "input"]
    return call


def test_work_of_the_plugin_is_no_lateness(runtime: str, made: Made, tmp_path: Path) -> None:
    """A loop holds the host's own timer up: the time that it had the processor for is the plugin's."""
    call = heard("computes", runtime, made, tmp_path)
    # The time of a runtime's other threads is the program's too: it may have run for longer than the handler took.
    assert 0 <= call["late_ms"] <= max(0.0, call["ms"] - WORK_MS) + 1


def test_sleep_that_keeps_the_thread_is_no_lateness(runtime: str, made: Made, tmp_path: Path) -> None:
    """The machine keeps nothing waiting that does not want the processor, as far as the system tells.

    A runtime may wake a thread that sleeps, which then waits for the processor within its sleep.
    """
    call = heard("sleeps", runtime, made, tmp_path)
    assert call["ms"] >= WORK_MS - 1
    if Path("/proc/thread-self/schedstat").exists():
        woken_ms = float((tmp_path / "home" / "queued_ms").read_text())
        assert 0 <= call["late_ms"] <= call["ms"] - WORK_MS + 1 + woken_ms
    else:
        assert call["late_ms"] > WORK_MS / 2


def test_host_in_python_tells_of_each_call(made: Made, tmp_path: Path) -> None:
    """A provider's call may be as slow as a handler in JavaScript."""
    target = made("hermes-agent", module=str(FIXTURES / "hermes_conforming" / "__init__.py"))
    (started,) = performed(target, tmp_path / "home", [START])
    assert started["calls"]
    assert all(call["late_ms"] >= 0 for call in started["calls"])


@pytest.mark.parametrize("steps", [3, 2])
@pytest.mark.parametrize("runtime", ["node"], indirect=True)
def test_a_handler_that_is_slow_in_three_steps_is_warned_of(
    steps: int, runtime: str, made: Made, recorded: Recorded
) -> None:
    """A handler over its bound in three steps is warned of; two steps, and a late timer, show nothing."""
    bounds = {"bounds_s.start": BOUND_S, "bounds_s.prompt": BOUND_S}
    mode = f"waits:1600:{steps}"
    target = made("pi", mode=mode, module=EXTENSION, runtime=runtime, harness="pi", **bounds)
    (recording,) = map(trace.read, recorded(target, ["several-prompts"]))
    slow = [mark for mark in marks_of(recording, HandlerMark) if mark.outcome == SLOW]
    late_ms = [mark.late_ms for mark in slow if mark.late_ms is not None]
    assert len(late_ms) == len(slow) >= steps
    verdict = engine.judge(recording).verdicts["SIG-FAIL-002"]
    longest_s = max(exchange.t1 - exchange.t0 for exchange in recording.exchanges)
    if len(slow) == steps and max(late_ms) <= BOUND_S * 100 and longest_s < AT_ONCE_S:
        assert verdict is (Verdict.WARN if steps > 2 else Verdict.NOT_APPLICABLE)
    else:
        # The machine was busy, and made other handlers slow, or these ones slower.
        assert verdict in (Verdict.WARN, Verdict.NOT_APPLICABLE)
