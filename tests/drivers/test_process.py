"""The process of a driver program: how one that breaks off is told, and that no answer of another request is taken."""

from __future__ import annotations

import json
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import signet_conformance
from signet_conformance import targets
from signet_conformance.children.environment import TAG, new_tag
from signet_conformance.drivers import watched_driver
from signet_conformance.drivers.process import BrokenOffError, DriverFault, DriverProcess, OnEvent
from signet_conformance.drivers.watched_driver import WatchedDriver
from signet_conformance.errors import NothingTestedError, TargetError
from signet_conformance.scenarios.scenario import Scenario

START = {"step": "start", "session": "s1"}
END = {"step": "end", "session": "s1"}
ANSWERS = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    print("working on", request["op"], file=sys.stderr, flush=True)
    answer = {"id": request["id"], "ok": True, "result": {}}
    if request["op"] != "hello":
        %s
    print(json.dumps(answer), flush=True)
"""


@contextmanager
def driver(
    program: str, folder: Path, timeout_s: float = 60.0, kind: str = "reference", tag: str = ""
) -> Iterator[DriverProcess]:
    """A program behind the driver, as that of the target `kind`."""
    target = replace(targets.load(kind), name="mine", command=(sys.executable, "-c", program))
    driven = DriverProcess(target, {TAG: tag} if tag else {}, str(folder), timeout_s)
    try:
        yield driven
    finally:
        driven.close()


@pytest.mark.parametrize("step", ["end", "close"])
def test_step_that_leaves_a_session_lasts_as_long_as_the_processes_started_in_it(tmp_path: Path, step: str) -> None:
    """A connector may leave the end to a process of its own, and a user takes longer to go on than that."""
    # A shell starts at once on a busy machine too, where Python may take longer than the step waits.
    child = ["sh", "-c", "sleep 0.2; touch told"]
    program = f"import subprocess; subprocess.Popen({child}, start_new_session=True)"
    with driver(ANSWERS % program, tmp_path, tag=new_tag()) as driven:
        driven.hello()
        driven.perform({"step": step, "session": "s1"}, lambda _event: None)
        assert (tmp_path / "told").exists()


@pytest.mark.parametrize("protocol", ["signet-driver/2", "acme/1", 1])
def test_a_program_of_another_protocol_is_refused(tmp_path: Path, protocol: object) -> None:
    """Its answers may mean something else: nothing of them is judged, not even that the connector was not loaded."""
    about = {"protocol": protocol, "loaded": False}
    program = ANSWERS.replace('"result": {}', f'"result": {about}') % "pass"
    with driver(program, tmp_path) as driven, pytest.raises(BrokenOffError) as raised:
        driven.hello()
    assert raised.value.how is DriverFault.GARBLED
    assert raised.value.message == f"target mine speaks {json.dumps(protocol)}, this kit speaks signet-driver/1"
    assert '"protocol": "signet-driver/1"' in str(raised.value.remedy)


@pytest.mark.parametrize("protocol", ["signet-driver/1", None])
def test_a_program_may_name_this_protocol_or_none(tmp_path: Path, protocol: str | None) -> None:
    """Only another name is refused."""
    program = ANSWERS.replace('"result": {}', f'"result": {{"protocol": {protocol!r}}}') % "pass"
    with driver(program, tmp_path) as driven:
        assert driven.hello() == {"protocol": protocol}


@pytest.mark.parametrize("value", [None, False])
def test_a_step_that_is_not_skipped_was_performed(tmp_path: Path, value: object) -> None:
    """A driver may write every member of an answer; taken for skipped, nothing that the step shows would be judged."""
    with driver(ANSWERS % f'answer["result"] = {{"key": "k-1", "skipped": {value}}}', tmp_path) as driven:
        driven.hello()
        assert driven.perform(START, lambda _event: None) == {"key": "k-1"}


def broken(program: str, folder: Path, timeout_s: float = 60.0) -> BrokenOffError:
    """How it breaks off at a step."""
    with driver(ANSWERS % program, folder, timeout_s) as driven:
        driven.hello()
        with pytest.raises(BrokenOffError) as raised:
            driven.perform(START, lambda _event: None)
    return raised.value


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("answer['id'] = 77", "target mine answered id 77, asked 2"),
        ("answer['id'] = None", "target mine answered id null, asked 2"),
        ("answer['id'] = 1", "target mine answered id 1, asked 2"),
        ("del answer['id']", "target mine answered without an id, asked 2"),
        (
            "answer = {'id': None, 'ok': False, 'error': {'message': 'not JSON'}}",
            "target mine answered id null, asked 2 (not JSON)",
        ),
    ],
)
def test_answer_to_another_request_is_refused_at_once(tmp_path: Path, program: str, said: str) -> None:
    """Both numbers are told; nothing is waited for."""
    failure = broken(program, tmp_path)
    assert (failure.how, failure.message) == (DriverFault.GARBLED, said)
    assert "docs/driver-protocol.md" in str(failure)


@pytest.mark.parametrize(
    ("program", "how", "said"),
    [
        ("sys.exit(3)", DriverFault.ENDED, "target mine ended with status 3"),
        ("print('hello')", DriverFault.GARBLED, "target mine wrote a line that is not a JSON object: hello"),
        (
            "answer = {'id': request['id'], 'ok': False, 'error': {'message': 'KeyError:\\n  no acme'}}",
            DriverFault.REFUSED,
            "target mine cannot perform the step start: KeyError:; no acme",
        ),
        (
            "del answer['ok']",
            DriverFault.REFUSED,
            'target mine cannot perform the step start: its answer has neither "ok": true nor an error',
        ),
    ],
)
def test_program_that_breaks_off_is_told(tmp_path: Path, program: str, how: DriverFault, said: str) -> None:
    """How, what it said, and the end of its standard error."""
    failure = broken(program, tmp_path)
    assert (failure.how, failure.message) == (how, said)
    assert failure.tail == ("working on hello", "working on step")


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (
            """print('{"event": "handover", "arguments": {"limits": [1, NaN]}}', flush=True); sys.stdin.readline()""",
            "in its event handover, /arguments/limits/1 is NaN",
        ),
        ("answer['result'] = {'hooks': [{'ms': float('-inf')}]}", "in its answer 2, /result/hooks/0/ms is -Infinity"),
        ("""print('{"id": 2, "ok": true, "result": {"ms": 1e999}}', flush=True)""", "/result/ms is Infinity"),
    ],
    ids=["event", "answer", "number too large"],
)
def test_number_that_json_does_not_have_is_told_with_its_place(tmp_path: Path, program: str, said: str) -> None:
    """Python writes such numbers, and the recorder would refuse a mark with one."""
    failure = broken(program, tmp_path)
    assert failure.how is DriverFault.GARBLED
    assert failure.message.startswith("target mine wrote no JSON: ")
    assert said in failure.message
    assert "write null" in str(failure.remedy)


def test_such_a_number_below_thousands_of_lists_is_no_traceback(tmp_path: Path) -> None:
    """Releases of Python differ in how deep a text they read."""
    event = """'{"event": "model", "deep": ' + '[' * 5000 + 'NaN' + ']' * 5000 + '}'"""
    deep = f"print({event}, flush=True); sys.stdin.readline()"
    assert broken(deep, tmp_path).how is DriverFault.GARBLED


def test_program_that_gives_no_answer_is_told_with_the_whole_bound(tmp_path: Path) -> None:
    """The bound of the step stands in the message, not what was left of it."""
    failure = broken("sys.stdin.read()", tmp_path, timeout_s=0.25)
    assert failure.how is DriverFault.SILENT
    assert failure.message == "target mine gave no answer within 0.25 s"


def test_program_that_tells_of_events_for_ever_is_not_awaited(tmp_path: Path) -> None:
    """Only its answer ends a step, and that has to come within the bound."""
    tells = """while True: print('{"event": "model"}', flush=True); sys.stdin.readline()"""
    failure = broken(tells, tmp_path, timeout_s=0.25)
    assert failure.how is DriverFault.SILENT
    assert failure.message.startswith("target mine gave no answer within 0.25 s")


def test_error_while_greeting_is_about_loading(tmp_path: Path) -> None:
    """A connector that cannot be loaded is no step that could be left out of the capabilities."""
    refusing = "import json; id = json.loads(input())['id']; print(json.dumps({'id': id, 'error': 'no acme'}))"
    with (
        driver(refusing, tmp_path) as driven,
        pytest.raises(BrokenOffError, match="target mine cannot begin: no acme") as raised,
    ):
        driven.hello()
    assert raised.value.how is DriverFault.REFUSED
    assert "capabilities" not in str(raised.value)


@pytest.mark.parametrize(
    ("kind", "how", "at_fault"),
    [
        ("hermes-agent", DriverFault.DEFECT, "the kit; please report this as a defect"),
        ("reference", DriverFault.REFUSED, "the driver program, or the connector in it"),
    ],
)
def test_error_in_the_code_of_a_host_is_the_kits(tmp_path: Path, kind: str, how: DriverFault, at_fault: str) -> None:
    """A host of the kit says where in its own code an error arose; what a user's driver says is not believed."""
    error = {"type": "KeyError", "message": "'acme'", "at": "python_plugin.py:310"}
    program = f"answer = {{'id': request['id'], 'ok': False, 'error': {error}}}"
    with driver(ANSWERS % program, tmp_path, kind=kind) as driven:
        watched = WatchedDriver(driven)
        watched.hello()
        with pytest.raises(BrokenOffError) as raised:
            watched.perform(START, lambda _event: None)
    told = watched.describe(
        Scenario.from_json({"name": "one", "steps": [START, END]}, "here"), "", targets.load(kind), ""
    )
    assert (raised.value.how, told.fault) == (how, at_fault)
    assert ("KeyError: 'acme', at python_plugin.py:310 of the kit's host" in told.reason) == (kind != "reference")


@pytest.mark.parametrize(
    ("files", "is_the_kits"),
    [
        (["{kit}/drivers/hosts/command_hooks.py", "{lib}/json/decoder.py"], True),
        (["{kit}/drivers/hosts/python_plugin.py", "/home/acme/plugin.py"], False),
        (["/home/acme/plugin.py"], False),
        ([], False),
    ],
    ids=["in the kit", "in the connector", "without the kit", "in silence"],
)
def test_host_that_ends_by_an_error_of_its_own_is_the_kits(
    files: Sequence[str], is_the_kits: bool, tmp_path: Path
) -> None:
    """Its standard error ends with a traceback in which no code of a connector stands."""
    where = {"kit": str(Path(signet_conformance.__file__).parent), "lib": sysconfig.get_path("stdlib")}
    lines = [f'  File "{file.format(**where)}", line 24, in main' for file in files]
    with driver(
        ANSWERS % f"print(*{lines}, sep='\\n', file=sys.stderr); sys.exit(1)", tmp_path, kind="codex"
    ) as driven:
        watched = WatchedDriver(driven)
        watched.hello()
        with pytest.raises(BrokenOffError):
            watched.perform(START, lambda _event: None)
    scenario = Scenario.from_json({"name": "one", "steps": [START, END]}, "here")
    fault = watched.describe(scenario, "", targets.load("codex"), "").fault
    assert fault == (watched_driver._KIT if is_the_kits else "the connector; otherwise the kit's host for it")


def test_program_that_ends_when_greeted_was_never_started(tmp_path: Path) -> None:
    """Nothing was tested then; how it ended stands behind it."""
    with driver("raise SystemExit('no acme')", tmp_path) as driven, pytest.raises(NothingTestedError) as raised:
        driven.hello()
    assert isinstance(raised.value.__cause__, BrokenOffError)
    assert raised.value.__cause__.tail == ("no acme",)


AT_EXIT = """
import json, pathlib, sys
for line in sys.stdin:
    request = json.loads(line)
    if request["op"] == "exit":
        pathlib.Path("quits").write_text("as its harness does")
        break
    print(json.dumps({"id": request["id"], "ok": True, "result": {}}), flush=True)
"""


def test_a_program_is_told_to_quit_before_it_is_ended(tmp_path: Path) -> None:
    """A connector that tells the end of its sessions when its harness quits does so then; closing twice is once."""
    with driver(AT_EXIT, tmp_path) as driven:
        driven.hello()
        driven.close()
        assert (tmp_path / "quits").read_text() == "as its harness does"


class Vanishing:
    """A driver whose processes are gone when a step reaches them."""

    tag = ""
    watched: WatchedDriver | None = None

    def perform(self, step: Mapping[str, Any], on_event: OnEvent) -> Mapping[str, Any]:  # noqa: ARG002  one of the kind
        """Look for a process that is not there, after the run gave up where there is one to give up."""
        if self.watched is not None:
            self.watched.give_up("everything is decided")
        empty: dict[str, Mapping[str, Any]] = {}
        return empty["atlas-agent"]

    def hello(self) -> Mapping[str, Any]:
        """It says nothing of itself."""
        return {}

    def flush(self) -> None:
        """There is nothing to wait for."""

    def close(self) -> None:
        """There is nothing to end."""


def test_a_program_that_owes_an_answer_is_told_by_a_signal(tmp_path: Path) -> None:
    """It reads its input only after it has answered, so a run that is interrupted does not wait for that."""
    told = f"open({str(tmp_path / 'told')!r}, 'w')"
    handler = f"import os, signal; signal.signal(signal.SIGTERM, lambda *_: ({told}.write('a signal'), os._exit(0)))"
    program = handler + ANSWERS % f"sys.stdin.readline(); {told}.write('its input')"
    with driver(program, tmp_path, timeout_s=1.0) as driven:
        driven.hello()
        with pytest.raises(BrokenOffError):
            driven.perform(START, lambda _event: None)
    assert (tmp_path / "told").read_text() == "a signal"


def test_what_a_run_ends_under_way_is_no_failure_of_the_kit() -> None:
    """Whatever its thread trips over then is told as the run's giving up; any other error stays what it is."""
    vanishing = Vanishing()
    watched = WatchedDriver(vanishing)
    with pytest.raises(KeyError):
        watched.perform({"step": "prompt"}, lambda _: None)
    vanishing.watched = watched
    with pytest.raises(TargetError, match="everything is decided"):
        watched.perform({"step": "prompt"}, lambda _: None)


def test_connector_that_has_ended_is_not_given_up() -> None:
    """Its recording is whole, so that a run which is stopped then still counts it."""
    watched = WatchedDriver(Vanishing())
    watched.close()
    watched.give_up("the user stopped the run")
    assert watched.given_up is None
    under_way = WatchedDriver(Vanishing())
    under_way.give_up("the user stopped the run")
    assert under_way.given_up == "the user stopped the run"
