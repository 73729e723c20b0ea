"""What a process started that was killed by SIGKILL, seen from outside: nothing of it is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from signet_conformance.children.watchdog import WATCHDOG_VARIABLE
from tests.support.processes import Watched, descendants, wait_until

pytestmark = pytest.mark.waits

DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); open(PLACE, 'w').close(); time.sleep(600)"
"""Neither the end of its input nor SIGTERM ends it."""

STARTS = """
import json, os, sys, time
from pathlib import Path
from signet_conformance.children.processes import LineProcess
from signet_conformance.children.temporary import temporary_folder
with temporary_folder("signet-test-", Path(sys.argv[1])) as folder:
    (folder / "left").mkdir()
    child = LineProcess("a child", [sys.executable, "-ISc", sys.argv[2]], env={})
    WHAT
"""
WAITS = "while True: time.sleep(60)"


def kit(place: Path, child: str, what: str = WAITS) -> subprocess.Popen[bytes]:
    """A process of the kit in a group of its own, with one child and one temporary folder below `place`."""
    environment = {name: value for name, value in os.environ.items() if name != WATCHDOG_VARIABLE}
    code = STARTS.replace("WHAT", what)
    return subprocess.Popen(
        [sys.executable, "-c", code, str(place), child.replace("PLACE", repr(str(place / "ready")))],
        process_group=0, env=environment, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def with_one_apart(child: str) -> str:
    """Code of a child that starts another like it, which leaves its session and its parent."""
    grandchild = child.replace("PLACE", "PLACE + '-apart'")
    return (
        f"import os, subprocess, sys\nif not os.fork():\n    os.setsid()\n    os.fork() and os._exit(0)\n"
        f"    os.execv(sys.executable, [sys.executable, '-ISc', {grandchild!r}])\n{child}"
    )


@pytest.mark.parametrize("whole_group", [False, True], ids=["the process", "its group"])
def test_nothing_is_left_of_a_killed_process(tmp_path: Path, whole_group: bool) -> None:
    """Neither a deaf child nor what it put into the background, nor the watchdog, nor the temporary folder."""
    process = kit(tmp_path, with_one_apart(DEAF))
    with process, Watched([process.pid]):
        wait_until(lambda: {path.name for path in tmp_path.glob("ready*")} == {"ready", "ready-apart"}, "children")
        with Watched(descendants(process.pid) | carrying_tag_of(process.pid)) as started:
            assert len(started) >= 3
            os.killpg(process.pid, signal.SIGKILL) if whole_group else process.kill()
            assert started.left(60.0) == []
    assert list(tmp_path.glob("signet-test-*")) == []


def test_a_process_that_it_forked_does_not_deceive_it(tmp_path: Path) -> None:
    """A fork of the kit's process lives on with what it inherited, and the end is noticed all the same."""
    process = kit(tmp_path, DEAF, f"os.fork()\n    {WAITS}")
    with process, Watched([process.pid]):
        wait_until((tmp_path / "ready").exists, "a child")
        wait_until(lambda: len(descendants(process.pid)) >= 3, "a fork")
        with Watched(carrying_tag_of(process.pid)) as started, Watched(descendants(process.pid)):
            assert len(started) == 1
            process.kill()
            assert started.left(60.0) == []


def test_a_child_that_ended_is_forgotten(tmp_path: Path) -> None:
    """Its number may be another's by then: nothing is done to a group that was told to have ended."""
    bystander = subprocess.Popen([sys.executable, "-ISc", "import time; time.sleep(600)"], process_group=0)
    what = f"from signet_conformance.children import watchdog as w\n    w.watch_group({bystander.pid})\n"
    what += f"    w.forget_group({bystander.pid}); open(sys.argv[1] + '/told', 'w').close()\n    {WAITS}"
    process = kit(tmp_path, DEAF, what)
    with process, bystander:
        wait_until((tmp_path / "told").exists, "a line to the watchdog")
        with Watched(descendants(process.pid)) as started:
            process.kill()
            assert started.left(60.0) == []
        assert bystander.poll() is None
        bystander.kill()


def test_it_ends_with_a_process_that_ends_by_itself(tmp_path: Path) -> None:
    """And what left its group is ended then too; the exit status is the process's own."""
    what = "(Path(sys.argv[1]) / 'signet-seen').write_text(json.dumps([os.getpid(), child.pid]))\n    "
    what += "while len(list(Path(sys.argv[1]).glob('ready*'))) < 2: time.sleep(0.02)\n    "
    what += "child.close(); raise SystemExit(7)"
    process = kit(tmp_path, with_one_apart(DEAF), what)
    with process:
        wait_until((tmp_path / "ready-apart").exists, "what left the group")
        with Watched(descendants(process.pid)):
            assert process.wait(60) == 7
    assert json.loads((tmp_path / "signet-seen").read_text())[0] == process.pid
    assert carrying_tag_of(process.pid) == set()
    assert list(tmp_path.glob("signet-test-*")) == []


def test_a_folder_that_is_made_anew_after_its_removal_goes_too(tmp_path: Path) -> None:
    """By what left the group of its child and writes on: that is ended first, and the folder looked for after it."""
    place = repr(str(tmp_path))
    writes = f"""
import contextlib, os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
(folder,) = (name for name in os.listdir({place}) if name.startswith('signet-test-'))
while True:
    # It is being removed meanwhile.
    with contextlib.suppress(OSError):
        os.makedirs(os.path.join({place}, folder, 'anew'))
    open(PLACE, 'w').close()
    # Often enough to meet every removal, without a processor of its own.
    time.sleep(0.001)
"""
    what = "while not Path(sys.argv[1], 'ready-apart').exists(): time.sleep(0.02)\n    child.close()"
    process = kit(tmp_path, with_one_apart(writes), what)
    with process:
        wait_until((tmp_path / "ready-apart").exists, "what left the group", process)
        with Watched(descendants(process.pid) | carrying_tag_of(process.pid)) as started:
            assert process.wait(60) == 0
            assert started.left(60.0) == []
    assert list(tmp_path.glob("signet-test-*")) == []


def carrying_tag_of(pid: int) -> set[int]:
    """The processes in whose environment a tag stands that a child of `pid` carries; of none where it has ended."""
    tags = {tag for child in descendants(pid) if (tag := _tag(child))}
    return {int(folder.name) for folder in Path("/proc").glob("[0-9]*") if _tag(int(folder.name)) in tags}


def _tag(pid: int) -> str | None:
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().decode("utf-8", "replace").split("\0")
    except OSError:
        return None
    return next((value for name, _, value in (v.partition("=") for v in variables) if name == WATCHDOG_VARIABLE), None)
