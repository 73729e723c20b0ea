"""Generated sessions as a run performs them: the same on any number of recorded daemons, and fair to a connector."""

from __future__ import annotations

import json
from pathlib import Path

from signet_conformance import targets
from signet_conformance.finding import Verdict

from .live import broken_target, generate


def test_verdicts_are_the_same_on_any_number_of_rigs(tmp_path: Path) -> None:
    """One recorded daemon and two count the same verdicts for a connector that conforms, and find nothing."""
    alone, two = (generate(tmp_path / str(workers), broken_target(), 21, seed=5, workers=workers) for workers in (1, 2))
    assert alone.performed == two.performed == 21
    assert alone.tally.verdicts == two.tally.verdicts
    assert not alone.breaches
    assert not alone.failures
    # Sessions that conform leave nothing behind but their count.
    assert [path.name for path in (tmp_path / "1").iterdir()] == ["generated.json"]


def test_breach_that_a_fresh_connector_does_not_show_is_unconfirmed(tmp_path: Path) -> None:
    """A breach that needs other sessions before it in the process is kept with both traces, and not as a failure."""
    only = frozenset({"SIG-START-001"})
    summary = generate(tmp_path, broken_target("nameless_when_old"), 10, workers=1, only=only)
    (breach,) = [breach for breach in summary.breaches if breach.requirement == "SIG-START-001"]
    assert not breach.confirmed
    assert breach.verdict is Verdict.FAIL
    assert len(breach.traces) == 2
    assert all(Path(trace).is_file() for trace in breach.traces)
    # Only traces of confirmed breaches stand where the run's verdicts are taken from.
    assert not (tmp_path / "SIG-START-001.jsonl").exists()


def test_what_is_owed_to_a_session_of_another_recording_is_no_breach(tmp_path: Path) -> None:
    """A connector that ends a session when the next one starts may do so in the recording after that session's."""
    order = frozenset({"SIG-START-004", "SIG-CKPT-001", "SIG-END-012"})
    summary = generate(tmp_path, broken_target("late_ends"), 10, workers=1, only=order)
    assert summary.performed == 10
    assert not summary.breaches


def test_breach_in_a_played_host_is_shrunk(tmp_path: Path) -> None:
    """Where each session has a host of its own, what that would ask its model is recorded at each session tried."""
    provider = Path(__file__).parents[2] / "drivers" / "fixtures" / "hermes_conforming" / "__init__.py"
    # It does not start a session again that the daemon has forgotten.
    (tmp_path / "signet-conformance.toml").write_text(f'[targets.hermes-agent]\nmodule = "{provider}"\n')
    run = tmp_path / "run"
    run.mkdir()
    only = frozenset({"SIG-PROMPT-006"})
    (breach,) = generate(run, targets.load("hermes-agent", tmp_path), 14, workers=1, only=only).breaches
    assert breach.confirmed
    assert breach.tried > 1
    assert {path.name for path in run.rglob("*.jsonl")} == {"SIG-PROMPT-006.jsonl", "SIG-PROMPT-006.model.jsonl"}


def test_connector_that_ends_in_the_middle_is_replaced(tmp_path: Path) -> None:
    """The sessions after a crash are performed by a new process; a crash that comes again is told with its scenario."""
    summary = generate(tmp_path, broken_target("dies_at_clear"), 10, workers=1)
    assert summary.performed == 10
    assert summary.failures
    for failure in summary.failures:
        assert failure.confirmed
        assert "ended with status 3" in failure.error
        steps = json.loads(Path(failure.scenario).read_bytes())["steps"]
        assert "clear" in [step["step"] for step in steps]
        assert failure.replay == f"replay {failure.scenario}"


def test_crash_that_does_not_come_again_is_unconfirmed(tmp_path: Path) -> None:
    """A process that ends because of sessions before is replaced, and its crash is not held against the scenario."""
    summary = generate(tmp_path, broken_target("dies_when_old"), 4, workers=1)
    assert summary.performed == 4
    assert summary.failures
    assert not any(failure.confirmed for failure in summary.failures)
