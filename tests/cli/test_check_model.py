"""Facts about what the commands report on the harness's side: what reached its model."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.model_requests import example
from tests.support.case_traces import build
from tests.support.command_line import Invoke


def recorded(folder: Path, number: int) -> str:
    """A recording of a requirement's example, which breaches it, with the recording of the model beside it."""
    build(folder / "run.jsonl", example(number))
    return str(folder / "run.jsonl")


@pytest.mark.parametrize("option", ["--summary", "-q"])
def test_a_summary_names_what_did_not_reach_the_model(invoke: Invoke, option: str, tmp_path: Path) -> None:
    """One line per requirement, as for the connector's."""
    done = invoke("check", recorded(tmp_path, 9), option)
    assert "WARN SIG-MODEL-009 after the compaction the model does not get the summary" in done.stdout


@pytest.mark.parametrize("words", ["SIG-MODEL-009", "model-009", "SIG-MODEL"])
def test_requirements_on_the_model_can_be_selected_alone(invoke: Invoke, words: str, tmp_path: Path) -> None:
    """-k takes the family like any other, and its verdicts change no exit status."""
    done = invoke("check", recorded(tmp_path, 9), "-k", words)
    assert "WARN SIG-MODEL-009 SHOULD" in done.stdout
    assert "SIG-START" not in done.stdout
    assert done.stdout.splitlines()[-1].startswith("at the model: 1 WARN")
    assert done.exit_code == 0


def test_a_must_at_the_model_changes_no_exit_status_either(invoke: Invoke, tmp_path: Path) -> None:
    """Selected alone or with others, it is separate from the connector's verdicts."""
    file = recorded(tmp_path, 8)
    assert "FAIL SIG-MODEL-008 MUST" in invoke("check", file, "-k", "SIG-MODEL-008").stdout
    assert invoke("check", file, "-k", "SIG-MODEL-008", "-k", "SIG-START-001").exit_code == 0


@pytest.mark.parametrize("number", [8, 9])
def test_nothing_is_tested_without_a_recording_of_the_model(invoke: Invoke, number: int, tmp_path: Path) -> None:
    """Without a recording of the model, or a subject in it, the exit status is 3, and the line gives the reason."""
    items = [item for item in example(1) if number == 9 or "side" not in item]
    build(tmp_path / "run.jsonl", items)
    done = invoke("check", str(tmp_path / "run.jsonl"), "-k", f"SIG-MODEL-{number:03d}")
    assert done.exit_code == 3
    why = "nothing in the trace is subject to it" if number == 9 else "drive the real program"
    assert why in done.stdout.splitlines()[-1]


def test_the_closing_line_names_what_else_fails_the_run(invoke: Invoke, tmp_path: Path) -> None:
    """If the model's side does not explain the exit status, the closing line gives the reason, as after a run."""
    done = invoke("check", recorded(tmp_path, 9), "-k", "SIG-MODEL", "--coverage-fail-under", "99")
    assert done.exit_code == 1
    assert "failed by too little coverage" in done.stdout.splitlines()[-1]


def test_show_finds_what_a_requirement_of_the_model_says(invoke: Invoke, tmp_path: Path) -> None:
    """The finding is shown beside the call of the daemon that it is about."""
    done = invoke("show", recorded(tmp_path, 1), "-k", "SIG-MODEL-001")
    assert "session-start" in done.stdout
    assert "WARN SIG-MODEL-001 what session-start injected does not reach the model" in done.stdout
