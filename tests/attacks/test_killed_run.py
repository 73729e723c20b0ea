"""A run that is killed by SIGKILL leaves neither processes nor folders behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from signet_conformance.children.watchdog import WATCHDOG_VARIABLE
from tests.support.processes import Watched, descendants, wait_until

pytestmark = pytest.mark.waits

EXAMPLE = Path(__file__).parents[2] / "examples" / "driver-python"

CLINGS = """
import json, os, pathlib, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
line = json.loads(sys.stdin.readline())
apart = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\\nwhile True: time.sleep(60)"
other = subprocess.Popen([sys.executable, "-ISc", apart], start_new_session=True)
told = pathlib.Path(__file__).with_name("told")
draft = told.with_name(f"told-{os.getpid()}")
draft.write_text(json.dumps(dict(os.environ)))
draft.rename(told)
while True: time.sleep(60)
"""
"""A connector that never looks at its input again, and has started another that left its session.

A run has several of it at a time: each writes a file of its own, and the last to have done so is heard.
"""

COMMANDS = {
    "run": ["run", "example-python", "--report", "report"],
    "lane": ["lane"],
}


@pytest.mark.parametrize("group", [False, True], ids=["alone", "with its group"])
@pytest.mark.parametrize("command", ["run", "lane"])
def test_nothing_of_it_is_left(command: str, group: bool, tmp_path: Path) -> None:
    """Neither daemon nor recorder, nor a connector that is deaf, nor what that started, nor a temporary folder."""
    connector, temporary = tmp_path / "connector", tmp_path / "temporary"
    shutil.copytree(EXAMPLE, connector)
    temporary.mkdir()
    (connector / "driver.py").write_text(CLINGS)
    environment = {
        name: value for name, value in os.environ.items() if name not in (WATCHDOG_VARIABLE, "GITHUB_ACTIONS")
    }
    environment |= {"TMPDIR": str(temporary), "SIGNET_LANE_TARGET": "example-python", "SIGNET_LANE_SCENARIOS": "0"}
    process = subprocess.Popen(
        [sys.executable, "-m", "signet_conformance.cli", *COMMANDS[command]], cwd=connector, env=environment,
        process_group=0, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    with process, Watched([process.pid]):
        wait_until((connector / "told").exists, "a connector", process)
        started = descendants(process.pid)
        programs = {name for pid in started for name in Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")}
        assert {"signet_conformance.daemon", "signet_recording_proxy"} < programs
        folders = [Path(value) for value in json.loads((connector / "told").read_text()).values()]
        own = [path for path in folders if path.name.startswith("signet-conformance-")]
        assert own
        assert all(path.is_dir() for path in own)
        assert list(temporary.iterdir())
        with Watched(started) as watched:
            assert len(watched) >= 5
            os.killpg(process.pid, signal.SIGKILL) if group else process.kill()
            assert watched.left(60.0) == []
    assert list(temporary.iterdir()) == []
    assert not any(path.exists() for path in own)


def test_a_recorded_command_ends_with_the_recording(tmp_path: Path) -> None:
    """Killed, `record` leaves neither recorder nor daemon nor the command that it ran, nor a temporary folder."""
    code = (
        f"import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); open({str(tmp_path / 'told')!r}, 'w')\n"
    )
    (tmp_path / "temporary").mkdir()
    environment = {name: value for name, value in os.environ.items() if name != WATCHDOG_VARIABLE}
    process = subprocess.Popen(
        [sys.executable, "-m", "signet_conformance.cli", "record", "--out", str(tmp_path / "a.jsonl"), "--",
         sys.executable, "-ISc", code + "while True: time.sleep(60)"],
        env={**environment, "TMPDIR": str(tmp_path / "temporary")}, process_group=0, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    with process, Watched([process.pid]):
        wait_until((tmp_path / "told").exists, "the command", process)
        with Watched(descendants(process.pid)) as watched:
            assert len(watched) >= 4
            process.kill()
            assert watched.left(60.0) == []
    assert list((tmp_path / "temporary").iterdir()) == []
