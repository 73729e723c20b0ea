"""The reference adapter against the embedded daemon of every contract version."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from signet_conformance.contract import contract_versions


@pytest.mark.parametrize("version", contract_versions())
def test_the_reference_conforms_to_every_version(version: str, tmp_path: Path) -> None:
    """A whole scripted run of the reference fails nothing, whatever the release."""
    words = ["-m", "signet_conformance.cli", "run", "reference", f"--contract={version}", "--scenarios=0"]
    done = subprocess.run([sys.executable, *words], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
