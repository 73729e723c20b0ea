"""How processes are found that carry a mark."""

from __future__ import annotations

import os
import subprocess
import sys

import psutil

from signet_conformance.children.environment import MARK, marked_processes, new_mark

WAITS = "import sys; sys.stdin.read()"


def test_a_process_is_found_whose_id_was_an_older_ones() -> None:
    """Ids come again: what is known of the older process says nothing of the one that has its id now."""
    mark = new_mark()
    environment = {**os.environ, MARK: mark}
    with subprocess.Popen([sys.executable, "-c", WAITS], stdin=subprocess.PIPE, env=environment) as child:
        # As if the process that psutil keeps by this id had begun eleven days before.
        (kept,) = [process for process in psutil.process_iter() if process.pid == child.pid]
        began = kept.create_time() - 1e6
        vars(kept).update(_create_time=began, _ident=(child.pid, began))
        (found,) = marked_processes(mark)
        assert (found.pid, found.is_running()) == (child.pid, True)
        child.communicate()
