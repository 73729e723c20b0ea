"""New files: whole, or not there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from signet_conformance.files import create_file
from tests.support.small_files import NOTHING_COMPILED

LIMITED = """
import pathlib, resource, signal, sys
from signet_conformance.files import create_file
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
try:
    create_file(pathlib.Path(sys.argv[1]), [b"x" * 100_000])
except OSError as failure:
    sys.exit(f"refused: {failure.strerror}")
"""


def test_a_file_is_written(tmp_path: Path) -> None:
    """What was given is what stands there."""
    create_file(tmp_path / "a", ["Größe\n".encode()])
    assert (tmp_path / "a").read_text("utf-8") == "Größe\n"


def test_what_is_there_stays(tmp_path: Path) -> None:
    """A file of the name, whoever made it, is neither replaced nor taken away."""
    (tmp_path / "a").write_text("mine")
    with pytest.raises(FileExistsError):
        create_file(tmp_path / "a", [b"yours"])
    assert (tmp_path / "a").read_text() == "mine"


def test_no_half_of_a_file_is_left(tmp_path: Path) -> None:
    """Where it does not fit, nothing stands in the way of the next try."""
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path / "a")],
        env={**os.environ, **NOTHING_COMPILED},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert "refused: File too large" in done.stderr
    assert not (tmp_path / "a").exists()
