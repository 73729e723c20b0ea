"""The kit's own programs as forks: each is a process like any other, and whatever happens none is left."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.children import forks, watchdog
from signet_conformance.children.environment import clean_environment
from signet_conformance.children.forks import PROGRAMS
from signet_conformance.children.processes import ChildEndedError, LineProcess
from signet_conformance.targets.kinds import python_host
from tests.support.processes import Watched, children_of

LONG_S = 60.0
HARNESS = [sys.executable, "-P", "-m", "signet_reference_harness"]
HELLO = {"id": 1, "op": "hello"}

pytestmark = pytest.mark.skipif(not forks.POSSIBLE, reason="this system is not known to fork safely")


@pytest.fixture(autouse=True)
def _nothing_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No thread, descriptor or child is left once nobody holds the server, which no other test holds."""
    own = forks.Forks()
    monkeypatch.setattr(forks, "_forks", own)
    monkeypatch.setattr(forks, "server", own.server)
    watchdog.watched_environment({})  # it stays for as long as this process
    before = set(threading.enumerate()), open_descriptors(), children_of(os.getpid())
    yield
    assert (set(threading.enumerate()), open_descriptors(), children_of(os.getpid())) == before


def open_descriptors() -> int:
    """How many descriptors this process has."""
    return len(list(Path("/proc/self/fd").iterdir()))


def parent_of(pid: int) -> int:
    """The id of a process's parent."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("PPid:"))


def harness(folder: Path, command: list[str] = HARNESS, **env: str) -> LineProcess:
    """The reference harness, with a daemon that it need not reach."""
    given = clean_environment(folder, **{"SIGNET_DAEMON_URL": "http://127.0.0.1:9", **env})
    return LineProcess("the harness", command, env=given, cwd=folder)


def answer(process: LineProcess) -> Mapping[str, Any]:
    """What the harness says of itself."""
    return {name: value for name, value in process.ask(HELLO, LONG_S).items() if name != "ms"}


def test_fork_answers_what_a_plain_process_answers(tmp_path: Path) -> None:
    """Arguments, environment and folder reach it, and its status is the same; only its parent is another."""
    with harness(tmp_path, SIGNET_AGENT_ID="atlas-agent") as plain, forks.server():
        with harness(tmp_path, SIGNET_AGENT_ID="atlas-agent") as fork:
            assert answer(fork) == answer(plain)
            assert answer(fork)["result"]["agent"] == "atlas-agent"
            assert parent_of(plain.pid) == os.getpid()
            assert parent_of(fork.pid) in children_of(os.getpid())
            assert Path(f"/proc/{fork.pid}/cwd").resolve() == tmp_path.resolve()
            assert os.getsid(fork.pid) == fork.pid
        plain.close()
        assert fork.returncode == plain.returncode == 0


def test_each_start_is_a_process_of_its_own(tmp_path: Path) -> None:
    """Nothing of one fork is seen by the next: neither its environment nor its ends of pipes."""
    with forks.server(), harness(tmp_path, SIGNET_AGENT_ID="atlas-agent") as first:
        assert answer(first)["result"]["agent"] == "atlas-agent"
        with harness(tmp_path) as second:
            assert second.pid != first.pid
            assert answer(second)["result"]["agent"] != "atlas-agent"
            descriptors = [set(os.listdir(f"/proc/{process.pid}/fd")) for process in (first, second)]  # noqa: PTH208 - names
            assert descriptors[0] == descriptors[1]
            first.close()
            assert first.returncode == 0
            assert answer(second)["ok"] is True


def test_fork_is_listed_as_the_program_that_it_is(tmp_path: Path) -> None:
    """Who lists processes sees which program a fork runs."""
    with forks.server(), harness(tmp_path) as process:
        answer(process)
        shown = Path(f"/proc/{process.pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
        assert shown == [os.fsencode(word) for word in HARNESS]


@pytest.mark.parametrize("how", ["plain", "fork"])
def test_program_that_refuses_to_start_says_why(tmp_path: Path, how: str) -> None:
    """The status and the words of a program that ends at once are heard, however it was started."""
    with forks.server():
        command = [*HARNESS[:1], *([] if how == "fork" else ["-s"]), *HARNESS[1:]]
        with harness(tmp_path, command, SIGNET_DAEMON_URL="nonsense") as process:
            with pytest.raises(ChildEndedError, match="the harness ended with status 2") as caught:
                answer(process)
            assert "SIGNET_DAEMON_URL" in str(caught.value.remedy)


def test_unknown_argument_ends_a_fork_as_it_ends_the_program(tmp_path: Path) -> None:
    """Who ends by an exception in the fork ends with the status and the words of that."""
    with forks.server():
        command = [sys.executable, "-P", "-m", "signet_conformance.daemon", "--sideways"]
        with harness(tmp_path, command) as process, pytest.raises(ChildEndedError, match="status 2") as caught:
            process.receive(LONG_S)
    assert "--sideways" in str(caught.value.remedy)


@pytest.mark.parametrize(
    "different",
    [{"PYTHONHASHSEED": "7"}, {"LC_ALL": "C"}, {"COVERAGE_PROCESS_START": "x"}],
    ids=" ".join,
)
def test_environment_that_only_a_start_reads_is_given_a_start(tmp_path: Path, different: Mapping[str, str]) -> None:
    """Where the interpreter itself would read a variable that the server never had, the program starts plainly."""
    with forks.server(), harness(tmp_path, **different) as process:
        assert answer(process)["ok"] is True
        assert parent_of(process.pid) == os.getpid()


def test_other_commands_start_plainly(tmp_path: Path) -> None:
    """Connectors of others are started as their users start them."""
    with forks.server(), harness(tmp_path, [sys.executable, "-P", "-m", "json.tool"]) as process:
        assert parent_of(process.pid) == os.getpid()


def test_without_a_holder_there_is_no_server(tmp_path: Path) -> None:
    """A program that is started alone costs no second process."""
    with harness(tmp_path) as process:
        assert parent_of(process.pid) == os.getpid()


def test_fork_that_hangs_is_killed(tmp_path: Path) -> None:
    """A fork that is stopped and so hears nothing is killed, and waited for."""
    with forks.server():
        with harness(tmp_path) as process:
            assert answer(process)["ok"] is True
            os.kill(process.pid, signal.SIGSTOP)
        assert process.returncode == -signal.SIGKILL
        with pytest.raises(ProcessLookupError):
            os.kill(process.pid, 0)


def test_killed_server_takes_its_forks_along_and_is_replaced(tmp_path: Path) -> None:
    """Who talks to a fork of a killed server is told that it ended; the next one is served again."""
    with forks.server(), harness(tmp_path) as orphan:
        assert answer(orphan)["ok"] is True
        server = parent_of(orphan.pid)
        with Watched([orphan.pid]) as watched:
            os.kill(server, signal.SIGKILL)
            orphan.close()
            assert watched.left() == []
        with harness(tmp_path) as plain:
            assert answer(plain)["ok"] is True
        with harness(tmp_path) as later:
            assert answer(later)["ok"] is True
            assert parent_of(later.pid) not in (server, os.getpid())


def test_server_that_got_a_thread_forks_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where an import starts a thread, which a fork would lack, programs start plainly from then on."""
    package = "signet_threaded_import"
    (tmp_path / f"{package}.py").write_text(
        "import threading\nthreading.Thread(target=threading.Event().wait).start()\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(forks, "PROGRAMS", {"signet_reference_harness": (package,)})
    with forks.server():
        for _ in range(2):
            with harness(tmp_path) as process:
                assert answer(process)["ok"] is True
                assert parent_of(process.pid) == os.getpid()


def test_nothing_outlives_a_killed_holder(tmp_path: Path) -> None:
    """When the process that holds the server is killed, the server and its forks end."""
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from signet_conformance.children import forks\n"
        "from tests.children.test_forks import answer, harness, parent_of\n"
        "with forks.server(), harness(Path(sys.argv[1])) as process:\n"
        "    answer(process)\n"
        "    print(process.pid, parent_of(process.pid), flush=True)\n"
        "    sys.stdin.read()\n"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    with holder:
        assert holder.stdout is not None
        with Watched(map(int, holder.stdout.readline().split())) as watched:
            assert len(watched) == 2
            holder.kill()
            assert watched.left() == []


@pytest.mark.parametrize("module", sorted({module for modules in PROGRAMS.values() for module in modules}))
def test_what_is_imported_ahead_exists(module: str) -> None:
    """A name that cannot be imported would only make every start slower, unnoticed."""
    importlib.import_module(module)


PLUGIN = """
import json, os, pathlib, random, resource, signal, sys, threading

loads = globals().get("loads", 0) + 1

def register(context):
    state = {
        "loads": loads,
        "argv": sys.argv,
        "path": sys.path,
        "flags": str(sys.flags),
        "encodings": [sys.stdout.encoding, sys.stderr.encoding, sys.getfilesystemencoding()],
        "environment": sorted((name, value) for name, value in os.environ.items() if "WATCH" not in name),
        "folder": os.getcwd(),
        "handlers": {str(number): str(signal.getsignal(number)) for number in signal.valid_signals()},
        "blocked": sorted(map(str, signal.pthread_sigmask(signal.SIG_BLOCK, []))),
        "mask": os.umask(0o22),
        "limits": [resource.getrlimit(resource.RLIMIT_NOFILE), resource.getrlimit(resource.RLIMIT_CORE)],
        "threads": threading.active_count(),
        "leads": [os.getpid() == os.getpgid(0), os.getpid() == os.getsid(0)],
        "priority": os.nice(0),
        "descriptors": sorted(os.listdir("/proc/self/fd"))[:6],
        "random": random.random(),
    }
    pathlib.Path(os.environ["HOME"], "state.json").write_text(json.dumps(state))
    context.register_memory_provider(object())
"""


def test_connector_in_a_forked_host_finds_the_state_of_a_new_process(tmp_path: Path) -> None:
    """What a connector can ask of its process is the same in a host that is a fork, each time; chance alone differs."""
    (tmp_path / "plugin.py").write_text(PLUGIN)
    (tmp_path / "face.json").write_text('{"harness": "hermes-agent", "version": "0", "calls": []}')
    options = {"face": str(tmp_path / "face.json"), "module": str(tmp_path / "plugin.py")}
    command = [*python_host("python_plugin", options)]

    def state() -> dict[str, Any]:
        with LineProcess("the host", command, env=clean_environment(tmp_path), cwd=tmp_path) as host:
            assert host.ask(HELLO, LONG_S)["ok"] is True
            assert isinstance(host._process, forks.ForkedProcess) is bool(forks._forks._holders)
        told: dict[str, Any] = json.loads((tmp_path / "state.json").read_text())
        return told

    plain = state()
    with forks.server():
        first, second = state(), state()
    chances = {each.pop("random") for each in (plain, first, second)}
    assert first == plain
    assert second == plain
    assert len(chances) == 3
