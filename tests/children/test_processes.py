"""Children that misbehave in every way a child can, each with the error that names it and with nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.children.processes import (
    KEPT_STDERR_LINES,
    ChildEndedError,
    ChildTimeoutError,
    LineProcess,
)
from signet_conformance.children.watchdog import WATCHDOG_VARIABLE, watched_environment
from signet_conformance.errors import KitError, SignetConformanceError, TargetError
from tests.support.processes import Watched

pytestmark = pytest.mark.waits

LONG_S = 60.0
SHORT_S = 0.2

ECHO = """
import sys
for line in sys.stdin:
    print('{"got": ' + line.strip() + '}', flush=True)
"""
READY = """
import json, os, select, signal, subprocess, sys, time
print(json.dumps({'pid': os.getpid()}), flush=True)
left = select.poll()
left.register(0, 0)  # nothing is awaited but the end of whoever writes there
"""
WITHOUT_READING = READY + "left.poll()"
DEAF = READY + "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('{}', flush=True)\nwhile True: time.sleep(60)"
IGNORES_END_OF_INPUT = READY + "while True: time.sleep(60)"
FLOODS = READY + "while not left.poll(0): sys.stdout.write('{}\\n' * 1000)"
FLOODS_STDERR = READY + "for n in range(50_000): print('complaint', n, file=sys.stderr)\nprint('{}', flush=True)\n"
CLOSES_STDOUT = READY + "os.close(1)\nsys.stdin.read()"
GRANDCHILD = (
    READY
    + "other = subprocess.Popen([sys.executable, '-ISc', 'import time; time.sleep(600)'], start_new_session=APART)\n"
    + "print(json.dumps({'pid': other.pid}), flush=True)\nraise SystemExit(3)"
)


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    """No thread and no descriptor is left of a child that was closed."""
    # The watchdog stays for as long as this process: it is started before anything is counted.
    watched_environment({})
    threads, descriptors = set(threading.enumerate()), open_descriptors()
    yield
    assert set(threading.enumerate()) - threads == set()
    assert open_descriptors() == descriptors


def open_descriptors() -> int:
    """How many descriptors this process has."""
    return len(list(Path("/proc/self/fd").iterdir()))


def child(code: str, **options: Any) -> LineProcess:
    """A Python child that runs this code."""
    return LineProcess("the probe", [sys.executable, "-ISc", code], **options)


def assert_reaped(pid: int) -> None:
    """The process has ended and been waited for: it is no zombie."""
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_answers_come_in_the_order_of_the_questions() -> None:
    """A line sent is answered by a line, one after the other."""
    with child(ECHO) as process:
        assert [process.ask({"n": n}, LONG_S) for n in range(3)] == [{"got": {"n": n}} for n in range(3)]


def test_line_as_long_as_any_message_arrives_whole() -> None:
    """A message of some megabytes crosses both pipes."""
    text = "ü✓" * 1_000_000
    with child(ECHO) as process:
        assert process.ask({"text": text}, LONG_S) == {"got": {"text": text}}


def test_child_sees_only_the_environment_it_is_given(tmp_path: Path) -> None:
    """The environment is the one given, with the variable of the watchdog, and so is the folder."""
    code = "import json, os; print(json.dumps([sorted(os.environ), os.getcwd()]).join(['{\"seen\":', '}']))"
    with child(code, env={"ONE": "1", "LC_ALL": "C"}, cwd=tmp_path) as process:
        assert process.receive(LONG_S) == {"seen": [["LC_ALL", "ONE", WATCHDOG_VARIABLE], str(tmp_path)]}


def test_program_that_does_not_exist(tmp_path: Path) -> None:
    """A missing program is named, with the error type that was asked for."""
    with pytest.raises(TargetError) as caught:
        LineProcess("target acme", [str(tmp_path / "acme")], error=TargetError)
    assert caught.value.message == "target acme cannot be started: No such file or directory"
    assert caught.value.where == str(tmp_path / "acme")
    assert "PATH" in str(caught.value.remedy)


def test_folder_that_does_not_exist(tmp_path: Path) -> None:
    """Where it is the working directory that is missing, that is what is named."""
    with pytest.raises(KitError) as caught:
        child(ECHO, cwd=tmp_path / "gone")
    assert caught.value.where == str(tmp_path / "gone")


def test_file_that_cannot_be_executed(tmp_path: Path) -> None:
    """A file without the right to be executed is named with the reason."""
    file = tmp_path / "acme"
    file.write_text("no program")
    with pytest.raises(KitError, match="the probe cannot be started: Permission denied"):
        LineProcess("the probe", [str(file)])


FEW_FILES = """
import os, resource, sys
from signet_conformance.children.processes import LineProcess
from signet_conformance.errors import KitError

echo = [sys.executable, "-ISc", "import sys; sys.stdin.read()"]
with LineProcess("the first", echo):  # it starts the watchdog too
    pass
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
for spare in range(16):
    next_one = os.dup(0)
    os.close(next_one)
    resource.setrlimit(resource.RLIMIT_NOFILE, (next_one + spare, most))
    try:
        with LineProcess("the probe", echo):
            print("started")
    except KitError as failure:
        print(failure.message, failure.remedy, sep=": ")
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    assert os.dup(0) == next_one  # no descriptor is left
    os.close(next_one)
"""


def test_too_few_open_files_are_told_with_the_way_out() -> None:
    """However few are left: no thread fails over it, no descriptor is left, and the limit is what has to be raised."""
    done = subprocess.run([sys.executable, "-c", FEW_FILES], capture_output=True, text=True, timeout=180, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    refused = "the probe cannot be started: Too many open files: raise the limit of open files, and run it again:"
    assert {line for line in lines if line != "started"} == {f"{refused} ulimit -n 1024"}
    assert lines[-1] == "started"


def test_child_that_dies_at_once() -> None:
    """Its status and the end of its standard error are told, to whoever receives and to whoever sends."""
    with child("raise SystemExit('no licence \\x1b[31m')") as process:
        with pytest.raises(ChildEndedError) as received:
            process.receive(LONG_S)
        with pytest.raises(ChildEndedError) as sent:
            process.send({})
    for caught in (received, sent):
        assert caught.value.message == "the probe ended with status 1"
        assert "no licence \\x1b[31m" in str(caught.value.remedy)
        assert caught.value.exit_status == 4


def test_child_that_dies_without_a_word_can_be_run_by_hand() -> None:
    """Where standard error is empty, the remedy is the command itself."""
    with child("raise SystemExit(7)") as process, pytest.raises(ChildEndedError, match="status 7") as caught:
        process.receive(LONG_S)
    assert f"run it by hand: {sys.executable} -ISc" in str(caught.value.remedy)


def test_what_was_written_before_the_end_is_still_received() -> None:
    """Answers of a child that has ended come before the news of its end."""
    with child('print(\'{"n": 1}\\n{"n": 2}\')') as process:
        assert [process.receive(LONG_S), process.receive(LONG_S)] == [{"n": 1}, {"n": 2}]
        for _ in range(2):
            with pytest.raises(ChildEndedError, match="ended with status 0"):
                process.receive(LONG_S)


def test_child_that_never_answers() -> None:
    """A deadline that passes is told as such, with the end of standard error; a later answer still counts."""
    code = READY + "print('still compiling', file=sys.stderr, flush=True)\nprint('{}', flush=True)\n" + ECHO
    with child(code) as process:
        assert process.receive(LONG_S)["pid"] == process.pid
        assert process.receive(LONG_S) == {}
        with pytest.raises(ChildTimeoutError, match=r"the probe gave no answer within 0\.2 s") as caught:
            process.receive(SHORT_S)
        assert "still compiling" in str(caught.value.remedy)
        assert process.ask({"n": 1}, LONG_S) == {"got": {"n": 1}}


def test_child_that_reads_nothing() -> None:
    """A message that the pipe cannot take waits for its deadline and no longer."""
    with child(WITHOUT_READING) as process:
        assert process.receive(LONG_S)["pid"] == process.pid
        with pytest.raises(ChildTimeoutError, match=r"the probe did not read its input within 0\.2 s"):
            process.send({"text": "x" * 1_000_000}, SHORT_S)


@pytest.mark.parametrize("code", [IGNORES_END_OF_INPUT, DEAF], ids=["ignores-end-of-input", "ignores-sigterm-too"])
def test_child_that_does_not_want_to_end(code: str) -> None:
    """A child that ignores the end of its input, and SIGTERM as well, is killed."""
    with child(code) as process:
        pid = process.receive(LONG_S)["pid"]
        if code == DEAF:
            assert process.receive(LONG_S) == {}
    assert_reaped(pid)
    assert process.returncode == (-9 if code == DEAF else -15)


def test_child_that_ends_with_its_input_is_not_killed() -> None:
    """A child that ends by itself when its input ends keeps its own status."""
    with child(READY + "sys.stdin.read()\nraise SystemExit(5)") as process:
        assert process.receive(LONG_S)["pid"] == process.pid
    assert process.returncode == 5


def test_child_that_is_left_and_ends_is_reaped() -> None:
    """A child that ends with its input is reaped when it is left."""
    process = child("import sys; sys.stdin.read()")
    process.leave()
    assert_reaped(process.pid)


def test_child_that_is_left_may_go_on() -> None:
    """A child that does not end with its input is not killed when it is left, and holds no descriptor of ours."""
    process = child("import time; time.sleep(600)")
    process.leave()
    process.close()
    os.kill(process.pid, signal.SIGKILL)
    assert os.waitpid(process.pid, 0)[0] == process.pid


def test_child_that_floods_its_output() -> None:
    """A flood is held up in the pipe, and its lines can be received as they come."""
    with child(FLOODS) as process:
        assert [process.receive(LONG_S) for _ in range(20_000)][1:] == [{}] * 19_999
    assert_reaped(process.pid)


def test_flood_that_nobody_takes_does_not_hold_up_the_end() -> None:
    """Where as many answers wait as a pipe holds, closing still ends the child and our thread."""
    with child(FLOODS) as process:
        assert process.receive(LONG_S)
    assert_reaped(process.pid)


def test_child_that_floods_its_standard_error() -> None:
    """Of a flood of complaints the last lines are kept, and answers are not held up by it."""
    with child(FLOODS_STDERR) as process:
        assert process.receive(LONG_S)["pid"] == process.pid
        assert process.receive(LONG_S) == {}
    assert list(process.stderr) == [f"complaint {n}" for n in range(50_000 - KEPT_STDERR_LINES, 50_000)]


def test_line_without_an_end_is_refused() -> None:
    """A line past the limit is refused instead of kept."""
    code = READY + "while not left.poll(0): sys.stdout.write('x' * 1_000_000)"
    with child(code) as process:
        assert process.receive(LONG_S)["pid"] == process.pid
        with pytest.raises(KitError, match=r"wrote a line of 16 MiB or more: x{100}"):
            process.receive(LONG_S)


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("hello", "hello"),
        ("[1]", "[1]"),
        ("\\x1b]0;owned\\x07", "\\x1b]0;owned\\x07"),
        ("[" * 100_000, "[["),
    ],
    ids=["text", "array", "hostile", "deep"],
)
def test_line_that_is_no_json_object(line: str, shown: str) -> None:
    """What is no JSON object is an error of the type asked for, shown harmlessly, with what to do about it."""
    code = f"print('''{line}''')" if len(line) < 100 else "print('[' * 100_000)"
    with child(code, error=TargetError) as process, pytest.raises(SignetConformanceError) as caught:
        process.receive(LONG_S)
    assert type(caught.value) is TargetError
    assert f"the probe wrote a line that is not a JSON object: {shown}" in caught.value.message
    assert "\x1b" not in str(caught.value)
    assert "write logs to standard error" in str(caught.value.remedy)


def test_child_that_closes_its_output() -> None:
    """A child that lives on without its output is told from one that has ended."""
    with child(CLOSES_STDOUT) as process:
        assert process.receive(LONG_S)["pid"] == process.pid
        with pytest.raises(ChildEndedError, match="the probe closed its output"):
            process.receive(LONG_S)
    assert process.returncode == 0


def test_grandchild_that_keeps_the_output_open() -> None:
    """The end of the child is noticed although what it started holds its pipes, and is that one's end too."""
    with child(GRANDCHILD.replace("APART", "False")) as process:
        process.receive(LONG_S)
        with Watched([process.receive(LONG_S)["pid"]]) as grandchild:
            assert len(grandchild) == 1
            with pytest.raises(ChildEndedError, match="the probe ended with status 3"):
                process.receive(LONG_S)
            assert grandchild.left() == []


def test_grandchild_of_a_child_that_is_closed() -> None:
    """Closing a child ends what it started in its group."""
    with child(GRANDCHILD.replace("APART", "False").replace("raise SystemExit(3)", "left.poll()")) as process:
        process.receive(LONG_S)
        with Watched([process.receive(LONG_S)["pid"]]) as grandchild:
            process.close()
            assert grandchild.left() == []


def test_grandchild_that_left_the_group() -> None:
    """A process that has left the group and holds the pipes hides neither the child's end nor holds up ours."""
    with child(GRANDCHILD.replace("APART", "True")) as process:
        process.receive(LONG_S)
        with Watched([process.receive(LONG_S)["pid"]]) as grandchild:
            with pytest.raises(ChildEndedError, match="the probe ended with status 3"):
                process.receive(LONG_S)
            process.close()
            # Nobody can promise to end it: this says that the process is really one that got away.
            assert len(grandchild.left(0.0)) == 1


def test_child_of_a_thread_that_the_interpreter_does_not_wait_for() -> None:
    """When the interpreter ends, so do the children that nobody has closed."""
    script = (
        "import sys, threading\n"
        "from signet_conformance.children.processes import LineProcess\n"
        f"child = LineProcess('the probe', [sys.executable, '-ISc', {IGNORES_END_OF_INPUT!r}])\n"
        "print(child.receive(60)['pid'], flush=True)\n"
        "threading.Thread(target=child.receive, args=(60,), daemon=True).start()\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as abandoning:
        assert abandoning.stdin is not None
        assert abandoning.stdout is not None
        with Watched([int(abandoning.stdout.readline())]) as watched:
            assert len(watched) == 1
            abandoning.stdin.close()
            assert watched.left() == []


def test_children_that_nobody_has_closed_are_told_before_one_is_waited_for(tmp_path: Path) -> None:
    """Each ends of itself once all were told; one that was waited for alone would have longer than this test."""
    waits = (
        "import os, pathlib, sys, time; place = pathlib.Path(sys.argv[1]); sys.stdin.read()\n"
        "(place / f'told-{os.getpid()}').touch()\n"
        "while len(list(place.glob('told-*'))) < 3: time.sleep(0.02)\n"
        "(place / f'left-{os.getpid()}').touch()"
    )
    code = (
        "import sys\nfrom signet_conformance.children import processes\n"
        f"processes._GRACE_S = {10 * LONG_S}\n"
        "command = [sys.executable, '-ISc', *sys.argv[1:]]\n"
        "started = [processes.LineProcess('a child', command, env={}) for _ in range(3)]"
    )
    subprocess.run(
        [sys.executable, "-c", code, waits, str(tmp_path)], timeout=LONG_S, check=True, stdin=subprocess.DEVNULL
    )
    assert len(list(tmp_path.glob("left-*"))) == 3


def test_a_child_is_terminated_once() -> None:
    """SIGTERM comes once: closing a deaf child that was terminated with all others does not wait for it again."""
    code = READY + (
        "heard = []\n"
        "signal.signal(signal.SIGTERM, lambda *_: heard.append(1))\n"
        "signal.signal(signal.SIGCONT, lambda *_: os.write(1, b'{\"heard\": %d}\\n' % len(heard)))\n"
        "print('{}', flush=True)\n"
        "while True: time.sleep(0.02)"
    )
    with child(code) as process:
        pid = process.receive(LONG_S)["pid"]
        assert process.receive(LONG_S) == {}
        for _ in range(2):
            process.terminate()
            os.kill(pid, signal.SIGCONT)
            assert process.receive(LONG_S) == {"heard": 1}


def test_closing_twice_is_closing_once() -> None:
    """A second close does nothing, and what is asked afterwards is told that the child has ended."""
    process = child(ECHO)
    process.close()
    process.close()
    assert process.returncode == 0
    with pytest.raises(ChildEndedError, match="the probe ended with status 0"):
        process.send({})
    with pytest.raises(ChildEndedError, match="the probe ended with status 0"):
        process.receive(LONG_S)


def test_error_inside_the_block_ends_the_child() -> None:
    """Whatever leaves the block, the child is reaped."""
    process = child(WITHOUT_READING)
    process.receive(LONG_S)
    with pytest.raises(ChildTimeoutError), process:
        process.receive(0.0)
    assert_reaped(process.pid)
