"""Facts about `signet-harness` as a program, whatever its command."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize(("words", "status"), [(["--help"], 0), (["run"], 2)])
def test_closed_output_keeps_the_exit_status(words: list[str], status: int) -> None:
    """Who closes standard output (`>&-`) wants none of it; errors are told all the same."""
    done = subprocess.run(
        [sys.executable, "-m", "signet_reference_harness.cli", *words],
        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=60, check=False,
        preexec_fn=lambda: os.close(1),
    )  # fmt: skip
    assert done.returncode == status
    assert [line.partition(":")[0] for line in done.stderr.splitlines()] == ["error", "try"] * bool(status)
