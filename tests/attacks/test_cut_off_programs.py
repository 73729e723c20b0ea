"""A run with a real program that is cut off leaves nothing behind: no process, no port, no folder, no change at home.

The programs are stand-ins that cling to life: they heed no signal, and have started others that left their group.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import pytest

from signet_conformance.children.watchdog import WATCHDOG_VARIABLE
from signet_conformance.running.performance import fingerprint
from signet_conformance.targets.program import PLACE_VARIABLE
from tests.support.processes import Watched, descendants, wait_until
from tests.support.stand_ins import install_stand_in, write_target

pytestmark = pytest.mark.waits

INTERRUPTED = 130
pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="node is not on PATH")


@pytest.mark.parametrize(
    ("name", "instant", "number"),
    [
        ("claude-code", "start", signal.SIGINT),
        ("pi", "start", signal.SIGKILL),
        ("codex", "turn", signal.SIGTERM),
        ("hermes-agent", "turn", signal.SIGKILL),
        ("opencode", "end", signal.SIGINT),
    ],
)
def test_nothing_is_left(name: str, instant: str, number: signal.Signals, tmp_path: Path) -> None:
    """Whichever signal ends the run, and whatever the program is at."""
    told, temporary, home = tmp_path / "told", tmp_path / "temporary", tmp_path / "home"
    temporary.mkdir()
    for own in (".claude", ".codex", ".config/opencode", ".pi/agent", ".hermes"):
        (home / own).mkdir(parents=True)
        (home / own / "settings.json").write_text("{}")
    before = fingerprint(home)
    environment = {key: value for key, value in os.environ.items() if key not in (WATCHDOG_VARIABLE, "XDG_CONFIG_HOME")}
    environment |= {"TMPDIR": str(temporary), "HOME": str(home), PLACE_VARIABLE: str(tmp_path / "programs")}
    install_stand_in(name, tmp_path / "programs")
    project = tmp_path / "project"
    project.mkdir()
    write_target(name, project, f"stay {told} {instant}")
    process = subprocess.Popen(
        [sys.executable, "-m", "signet_conformance.cli", "run", name, "--harness", "real"],
        cwd=project, env=environment, process_group=0, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    with process, Watched([process.pid]):
        wait_until(told.exists, "a program", process)
        clings = json.loads(told.read_text())
        folders = [Path(folder) for folder in clings["folders"]]
        assert all(folder.is_dir() for folder in folders)
        started = descendants(process.pid)
        assert started > set(clings["processes"])
        with Watched(started) as watched:
            ports = _listening(started)
            assert len(ports) >= 4, "daemon, model, and a recorder for each"
            process.send_signal(number)
            assert process.wait(60.0) == (-number if number is signal.SIGKILL else INTERRUPTED)
            assert watched.left(60.0) == []
        assert ports & _open_ports() == set()
    assert list(temporary.iterdir()) == []
    assert not any(folder.exists() for folder in folders)
    assert fingerprint(home) == before


def _listening(processes: Iterable[int]) -> set[str]:
    """The sockets, by their inodes, at which any of these processes listens."""
    held = set[str]()
    for process in processes:
        # A process, or a descriptor of it, may be gone by now.
        for descriptor in Path(f"/proc/{process}/fd").glob("*"):
            with suppress(FileNotFoundError):
                held.add(descriptor.readlink().name.removeprefix("socket:[").removesuffix("]"))
    return held & _open_ports()


def _open_ports() -> set[str]:
    """The inodes of all sockets that listen on this machine."""
    rows = [line.split() for table in ("tcp", "tcp6") for line in Path("/proc/net", table).read_text().splitlines()[1:]]
    return {row[9] for row in rows if row[3] == "0A"}
