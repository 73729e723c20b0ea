"""Programs of the real lane: what is left when their driver is ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

_DRIVER = """
import sys, signal
from pathlib import Path
from signet_conformance.drivers.hosts.real.process import ProgramProcess, end_with_us, remove_at_the_end

end_with_us()
remove_at_the_end(Path(sys.argv[1]).unlink)
script = f"echo $$ > {sys.argv[2]}; echo begun; exec sleep 600"
ProgramProcess(["sh", "-c", script], {"PATH": sys.argv[3]}, Path("/"), lambda word: print(word, flush=True))
signal.pause()
"""


def test_a_driver_that_is_asked_to_end_kills_its_programs_and_removes_what_they_left(tmp_path: Path) -> None:
    """Also when it has no time to end them one by one."""
    left, told = tmp_path / "left", tmp_path / "pid"
    left.touch()
    command = [sys.executable, "-c", _DRIVER, str(left), str(told), os.environ["PATH"]]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as driver:
        assert driver.stdout is not None
        assert driver.stdout.readline() == b"begun\n"
        driver.send_signal(signal.SIGTERM)
        assert driver.wait(60) == 143
    assert not left.exists()
    assert not Path("/proc", told.read_text("ascii").strip()).exists()
