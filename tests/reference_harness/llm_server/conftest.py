"""A scripted model server as a process, one for each script."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from .served import Serve, Served


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Starts a server for a script, given as its members but `format`; it ends with the test."""
    with ExitStack() as ends:

        def start(**script: Any) -> Served:
            path = tmp_path / "script.json"
            path.write_text(json.dumps({"format": "signet-llm/1", **script}))
            command = [sys.executable, "-m", "signet_reference_harness.cli", "llm", str(path), "--until-stdin-closes"]
            process = ends.enter_context(
                subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
            assert process.stdout is not None
            served = Served(json.loads(process.stdout.readline())["url"], process)
            ends.callback(served.close)
            return served

        yield start
