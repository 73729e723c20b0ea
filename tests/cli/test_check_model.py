"""Facts about what the commands say of the harness's side: what reached its model."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.model_requests import example
from tests.support.case_traces import build
from tests.support.command_line import Invoke


def recorded(folder: Path, number: int) -> str:
    """A file with the catalogue's example of a requirement, which breaches it; its model's recording lies beside."""
    build(folder / "run.jsonl", example(number))
    return str(folder / "run.jsonl")


@pytest.mark.parametrize("option", ["--summary", "-q"])
def test_a_summary_names_what_did_not_reach_the_model(invoke: Invoke, option: str, tmp_path: Path) -> None:
    """One line a requirement, as for the connector's."""
    done = invoke("check", recorded(tmp_path, 9), option)
    assert "WARN SIG-MODEL-009 after the compaction the model does not get the summary" in done.stdout


@pytest.mark.parametrize("words", ["SIG-MODEL-009", "model-009", "SIG-MODEL"])
def test_what_reaches_the_model_can_be_asked_for_alone(invoke: Invoke, words: str, tmp_path: Path) -> None:
    """The family is judged like others that -k names, and changes no exit status."""
    done = invoke("check", recorded(tmp_path, 9), "-k", words)
    assert "WARN SIG-MODEL-009 SHOULD" in done.stdout
    assert "SIG-START" not in done.stdout
    assert done.stdout.splitlines()[-1].startswith("at the model: 1 WARN")
    assert done.exit_code == 0


def test_a_must_at_the_model_changes_no_exit_status_either(invoke: Invoke, tmp_path: Path) -> None:
    """Asked for alone or with others, it stands apart from the connector's verdicts."""
    file = recorded(tmp_path, 8)
    assert "FAIL SIG-MODEL-008 MUST" in invoke("check", file, "-k", "SIG-MODEL-008").stdout
    assert invoke("check", file, "-k", "SIG-MODEL-008", "-k", "SIG-START-001").exit_code == 0


@pytest.mark.parametrize("number", [8, 9])
def test_nothing_is_tested_where_the_recording_has_nothing_of_it(invoke: Invoke, number: int, tmp_path: Path) -> None:
    """Without a recording of the model, or a subject in it, the exit status is 3 and the line says why."""
    items = [item for item in example(1) if number == 9 or "side" not in item]
    build(tmp_path / "run.jsonl", items)
    done = invoke("check", str(tmp_path / "run.jsonl"), "-k", f"SIG-MODEL-{number:03d}")
    assert done.exit_code == 3
    why = "nothing in the trace is subject to it" if number == 9 else "drive the real program"
    assert why in done.stdout.splitlines()[-1]


def test_what_else_fails_the_run_is_told_in_the_closing_line(invoke: Invoke, tmp_path: Path) -> None:
    """As after a run: an exit status that the model's side does not explain has its reason beside it."""
    done = invoke("check", recorded(tmp_path, 9), "-k", "SIG-MODEL", "--coverage-fail-under", "99")
    assert done.exit_code == 1
    assert "failed by too little coverage" in done.stdout.splitlines()[-1]


def test_show_finds_what_a_requirement_of_the_model_says(invoke: Invoke, tmp_path: Path) -> None:
    """The finding stands beside the call of the daemon that it is about."""
    done = invoke("show", recorded(tmp_path, 1), "-k", "SIG-MODEL-001")
    assert "session-start" in done.stdout
    assert "WARN SIG-MODEL-001 what session-start injected does not reach the model" in done.stdout
