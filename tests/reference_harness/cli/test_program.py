"""Facts about `signet-harness` as a program, whatever its command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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


@pytest.mark.parametrize(
    "words",
    [["bench", "compare", "other"], ["bench", "convert", "beam", "--out", "out"], ["bench", "run"], ["llm"]],
    ids=" ".join,
)
def test_a_name_that_no_file_can_have_is_wrong_usage(words: list[str], tmp_path: Path) -> None:
    """Whichever look at it comes first, the system's reason is told with the name."""
    name = "x" * 300
    command = [sys.executable, "-m", "signet_reference_harness.cli", *words, name]
    done = subprocess.run(command, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {name}")
    assert "File name too long" in done.stderr
