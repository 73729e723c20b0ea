"""The probe of each host in the program itself, where it is installed: `nox -s probes`, minutes for each."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from signet_conformance.targets.program import find_program_profile
from tests.support.command_line import Invoke, invoke
from tests.support.probes import PROBES, write_probe

__all__ = ["invoke"]
wanted = pytest.mark.skipif("SIGNET_PROBES" not in os.environ, reason="real programs are launched by nox -s probes")


@wanted
@pytest.mark.parametrize("name", PROBES)
def test_a_face_agrees_with_the_program_that_loads_a_probe(name: str, invoke: Invoke, tmp_path: Path) -> None:
    """Nothing of the probe is refused, and in each scenario the face fires what the program does."""
    if not find_program_profile(name).installed():
        pytest.skip(f"{name} is not installed: signet-conformance run {name} --harness real --install-harness")
    write_probe(name, tmp_path)
    run = invoke("run", name, "--harness", "real", "--every-scenario", "--report", "real")
    assert run.exit_code in (0, 1), run.output
    told = json.loads((tmp_path / "real" / "report.json").read_bytes())["together"]
    assert {told[each]["verdict"] for each in ("SIG-LOAD-001", "SIG-LOAD-002")} <= {"PASS", "NOT-APPLICABLE"}
    check = invoke("face", "check", name, "real")
    assert (check.exit_code, check.stdout.splitlines()[-1]) == (0, "no drift"), check.stdout
