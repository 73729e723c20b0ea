"""The probe of each host in the program itself, where it is installed: `nox -s probes`, minutes for each."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from signet_conformance.targets.face import face_of_harness
from signet_conformance.targets.program import find_program_profile
from tests.support.command_line import Invoke, invoke
from tests.support.probes import PROBES, write_probe

__all__ = ["invoke"]
wanted = pytest.mark.skipif("SIGNET_PROBES" not in os.environ, reason="real programs are launched by nox -s probes")
SEARCH = {"step": "tool", "session": "s1", "tool": "memory_search", "arguments": {"query": "Atlas Billing"}}
ASKED_AT_ONCE = {
    "name": "asked-at-once",
    "title": "The model calls a tool in the turn in which a memory is given",
    "steps": [
        {"step": "start", "session": "s1", "agent": 0, "project": "/workspace/src/acme-api"},
        {"step": "prompt", "session": "s1", "text": "Which database does Atlas Billing use?", "reply": "PostgreSQL."},
        SEARCH,
        {"step": "prompt", "session": "s1", "text": "Who approves a refund at Atlas Billing?", "reply": "Mira."},
        SEARCH,
        {"step": "end", "session": "s1"},
    ],
}


def write_whole_probe(name: str, folder: Path) -> None:
    """Write a host's probe, or skip where its program is not installed."""
    if not find_program_profile(name).installed():
        pytest.skip(f"{name} is not installed: signet-conformance run {name} --harness real --install-harness")
    write_probe(name, folder)


@wanted
@pytest.mark.parametrize("name", PROBES)
def test_a_face_agrees_with_the_program_that_loads_a_probe(name: str, invoke: Invoke, tmp_path: Path) -> None:
    """Nothing of the probe is refused, and in each scenario the face fires what the program does."""
    write_whole_probe(name, tmp_path)
    run = invoke("run", name, "--harness", "real", "--every-scenario", "--report", "real")
    assert run.exit_code in (0, 1), run.output
    told = json.loads((tmp_path / "real" / "report.json").read_bytes())["together"]
    assert {told[each]["verdict"] for each in ("SIG-LOAD-001", "SIG-LOAD-002")} <= {"PASS", "NOT-APPLICABLE"}
    check = invoke("face", "check", name, "real")
    assert (check.exit_code, check.stdout.splitlines()[-1]) == (0, "no drift"), check.stdout


@wanted
@pytest.mark.parametrize("name", PROBES)
def test_a_played_request_is_that_of_the_program(name: str, invoke: Invoke, tmp_path: Path) -> None:
    """In the first and the last request of each turn what the daemon gave stands in the same places and roles."""
    write_whole_probe(name, tmp_path)
    (tmp_path / "asked.json").write_text(json.dumps(ASKED_AT_ONCE))
    face = face_of_harness(name, next(iter(find_program_profile(name).installed())))
    for report, words in (("real", ("--harness", "real")), ("played", ("--face", face.path.stem))):
        run = invoke("run", name, *words, "--scenario", "asked.json", "--report", report)
        assert run.exit_code in (0, 1), run.output
    check = invoke("face", "check", name, "real", "played")
    assert "requests to the model compared in 2 turns" in check.stdout
    assert (check.exit_code, check.stdout.splitlines()[-1]) == (0, "no drift"), check.stdout
