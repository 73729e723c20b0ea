"""What a plugin throws where nobody catches it: some harnesses end over it, and others go on."""

from __future__ import annotations

from pathlib import Path

import pytest

from signet_conformance import engine, trace
from signet_conformance.finding import Verdict

from .conftest import FIXTURES, PROMPT, START, Made, Recorded, performed

EXTENSION = str(FIXTURES / "pi_extension.mjs")


@pytest.mark.parametrize(("face", "lost"), [("pi-0.73", True), ("oh-my-pi-13.19", True), ("pi-0.54", False)])
@pytest.mark.parametrize("mode", ["stray-promise", "stray-timer"])
def test_stray_error_is_told_with_its_place(
    face: str, lost: bool, mode: str, runtime: str, made: Made, tmp_path: Path
) -> None:
    """In the answer to the step in which it came, whether or not the harness would have lived on."""
    target = made(face.rpartition("-")[0], mode=mode, module=EXTENSION, runtime=runtime, harness="pi", face=face)
    started, turn, again = performed(target, tmp_path / "home", [START, PROMPT, PROMPT])
    assert [call for call in started["calls"] if "thrown" in call] == []
    for each in (turn, again):
        (told,) = [call for call in each["calls"] if "thrown" in call]
        assert (told["event"], told["lost"]) == ("a promise or timer of its own", lost)
        assert "tiny.mjs:" in told["thrown"]


@pytest.mark.parametrize(("mode", "text"), [("stray-nothing", "''"), ("stray-bare", "[Object: null prototype] {}")])
def test_anything_may_be_thrown(mode: str, text: str, made: Made, tmp_path: Path) -> None:
    """A thrown value that is not an error is told as node would print it."""
    target = made("pi", mode=mode, module=EXTENSION, harness="pi")
    _, turn = performed(target, tmp_path / "home", [START, PROMPT])
    assert [call["thrown"] for call in turn["calls"] if "thrown" in call] == [text]


@pytest.mark.parametrize(("face", "told"), [("pi-0.73", True), ("pi-0.54", False)])
def test_promise_that_is_awaited_late(face: str, told: bool, made: Made, tmp_path: Path) -> None:
    """It ends a harness that ends over one; where the harness lives on, somebody has caught it after all."""
    target = made("pi", mode="stray-caught-late", module=EXTENSION, harness="pi", face=face)
    _, turn = performed(target, tmp_path / "home", [START, PROMPT])
    assert any("thrown" in call for call in turn["calls"]) == told


def test_stray_error_that_ends_the_harness_takes_the_turn_away(made: Made, recorded: Recorded) -> None:
    """Without a fault that is the connector's loading requirement, with one that of the fault."""
    recordings = recorded(made("pi", mode="stray-promise", module=EXTENSION, harness="pi"), ["daemon-refuses", "plain"])
    judged = [engine.judge(trace.read(recording)).judgements for recording in recordings]
    (away,) = [each for each in judged if each["SIG-FAIL-001"].verdict is Verdict.FAIL]
    assert {each["SIG-LOAD-001"].verdict for each in judged} == {Verdict.FAIL}
    finding = away["SIG-FAIL-001"].findings[0]
    assert "the user's turn was lost in a promise or timer of its own" in str(finding.message)
    assert str(finding.received).startswith("Error: a promise that nobody awaits at ")


def test_stray_error_that_the_harness_outlives_is_warned_of(made: Made, recorded: Recorded) -> None:
    """It stands in somebody's log."""
    (recording,) = recorded(made("pi", mode="stray-timer", module=EXTENSION, harness="pi", face="pi-0.54"), ["plain"])
    judgement = engine.judge(trace.read(recording)).judgements["SIG-LOAD-001"]
    assert judgement.verdict is Verdict.WARN
    assert str(judgement.findings[0].received).startswith("Error: a timer that throws at ")
