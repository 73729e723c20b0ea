"""Nothing of a server outlives the harness, and nothing that it says fills the harness's memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from signet_reference_harness import guardian

PROGRAM = [sys.executable, "-I", "-S", guardian.__file__, "2", "1"]
STUBBORN = "trap '' TERM; (trap '' TERM; sleep 600) & setsid sleep 600 & echo '{\"started\":1}'; sleep 600"


def test_a_stubborn_server_ends_with_the_harness() -> None:
    """When the harness's end of the pipe closes, a server that ignores it and SIGTERM ends with all it has started."""
    held, outlives = os.pipe()
    os.set_inheritable(outlives, True)
    with subprocess.Popen(
        [*PROGRAM, "sh", "-c", STUBBORN],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=[outlives],
    ) as process:
        os.close(outlives)
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b'{"started":1}\n'
        process.stdin.close()
        # The end of this pipe is held by the guardian and by every descendant of the server.
        with os.fdopen(held, "rb") as everyone:
            assert everyone.read() == b""


def test_a_server_s_end_is_said_with_its_status() -> None:
    """What the server said last arrives, and how it ended stands on standard error."""
    done = subprocess.run(
        [*PROGRAM, "sh", "-c", "echo '{\"last\":1}'; exit 5"], stdin=subprocess.PIPE, capture_output=True, check=False
    )
    assert done.stdout == b'{"last":1}\n'
    assert done.stderr.decode().strip() == "the guarded program ended with exit status 5"


@pytest.mark.parametrize("step", [1, 7, 1_000])
def test_lines_that_are_too_long_are_answered_in_the_server_s_place(step: int) -> None:
    """Whole messages pass, however they arrive; what is not a message is dropped; a long one becomes an error."""
    long = {"jsonrpc": "2.0", "id": 7, "result": "x" * 300}
    unasked = {"jsonrpc": "2.0", "method": "notifications/x", "params": "x" * 300}
    said = [json.dumps({"id": 1}), "a word of a log", "", json.dumps(long), json.dumps(unasked), json.dumps({"id": 2})]
    data = "".join(f"{line}\n" for line in said).encode()
    lines = guardian.MessageLines(200)
    passed = b"".join(lines.feed(data[at : at + step]) for at in range(0, len(data), step))
    first, error, last = map(json.loads, passed.splitlines())
    assert (first, last) == ({"id": 1}, {"id": 2})
    assert (error["id"], error["error"]["code"]) == (7, -32603)
    assert error["error"]["message"].startswith(f"the server's answer has {len(json.dumps(long))} bytes")


def test_the_guardian_needs_nothing_but_the_standard_library() -> None:
    """It runs in Python's isolated mode, without site-packages, so that it starts at once."""
    done = subprocess.run([*PROGRAM, "true"], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert b"exit status 0" in done.stderr
