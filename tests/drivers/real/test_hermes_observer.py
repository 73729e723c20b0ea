"""The observer inside Hermes: what the memory manager tells a provider, and whether the provider is still at work."""

from __future__ import annotations

import functools
import json
import runpy
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from signet_conformance.drivers.hosts.observing import FOLDER, Events, is_busy, observe
from signet_conformance.targets.program import find_program_profile
from tests.support.processes import wait_until

OBSERVER = find_program_profile("hermes-agent").profile.observer
TOLD_S = 20.0


class Manager:
    """What the observer meets of the program's memory manager: a worker for what comes after an answer."""

    def __init__(self, provider: Any) -> None:
        self._provider = provider
        self._worker = ThreadPoolExecutor(1)

    def queue_prefetch_all(self, query: str) -> None:
        """Leave it to the worker."""
        self._worker.submit(self._provider.queue_prefetch, query, session_id="h1")

    def flush_pending(self) -> None:
        """Wait for what was left to the worker."""
        self._worker.submit(lambda: None).result()


class Provider:
    """A provider that asks in a thread of its own, as Signet's does."""

    def __init__(self) -> None:
        self.may_ask = threading.Event()
        self.may_answer = threading.Event()

    def is_available(self) -> bool:
        """It is there."""
        return True

    def queue_prefetch(self, query: str, *, session_id: str = "") -> None:
        """Ask once the test lets it."""
        del query, session_id
        self.may_ask.wait(TOLD_S)

        def run() -> None:
            self.may_answer.wait(TOLD_S)

        threading.Thread(target=run, daemon=True).start()


@pytest.fixture
def observed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Provider], Manager]:
    """Loads the observer as the program does, from its place in a home, and makes a manager with a provider."""
    assert OBSERVER is not None
    monkeypatch.setenv("HOME", str(tmp_path))
    observe(tmp_path, OBSERVER.model_dump(mode="json"))
    given: list[Provider] = []
    manager = type("MemoryManager", (Manager,), {})
    modules: dict[str, dict[str, Any]] = {
        "plugins": {},
        "plugins.memory": {"load_memory_provider": lambda _name: given[-1] if given else None},
        "agent": {},
        "agent.memory_manager": {"MemoryManager": manager},
    }
    for name, members in modules.items():
        module = ModuleType(name)
        module.__dict__.update(members)
        monkeypatch.setitem(sys.modules, name, module)
    runpy.run_path(str(tmp_path / OBSERVER.place))["register"](SimpleNamespace())
    load = sys.modules["plugins.memory"].__dict__["load_memory_provider"]
    assert load("none") is None

    def make(provider: Provider) -> Manager:
        given.append(provider)
        made: Manager = manager(load("signet"))
        return made

    return make


def test_a_provider_is_at_work_until_its_own_thread_has_ended(
    observed: Callable[[Provider], Manager], tmp_path: Path
) -> None:
    """From the instant that the manager hands it over, while the worker has it, while the provider's thread runs."""
    provider = Provider()
    manager = observed(provider)
    assert not is_busy(tmp_path)
    manager.queue_prefetch_all("Which database?")
    assert is_busy(tmp_path)
    provider.may_ask.set()
    manager.flush_pending()
    assert is_busy(tmp_path)
    provider.may_answer.set()
    wait_until(lambda: not is_busy(tmp_path), "the provider has come to rest")


class Asking(threading.Thread):
    """A thread of a kind of its own."""

    def __init__(self, may_answer: threading.Event) -> None:
        super().__init__(daemon=True)
        self._may_answer = may_answer

    def run(self) -> None:
        """Wait until the test lets it end."""
        self._may_answer.wait(TOLD_S)


class Elsewhere(Provider):
    """A provider that asks in each of its calls in another way."""

    def prefetch(self, _query: str) -> str:
        """Ask in the thread of whoever calls."""
        self.may_answer.wait(TOLD_S)
        return ""

    def sync_turn(self, _user: str) -> None:
        """Ask in a kind of thread of its own."""
        Asking(self.may_answer).start()

    def on_memory_write(self, _what: str) -> None:
        """Ask in a thread that runs a part of a function."""
        threading.Thread(target=functools.partial(_ask, self.may_answer), daemon=True).start()


def _ask(may_answer: threading.Event) -> None:
    may_answer.wait(TOLD_S)


@pytest.mark.parametrize("name", ["prefetch", "sync_turn", "on_memory_write"])
def test_a_provider_is_at_work_in_whatever_thread_it_asks(
    name: str, observed: Callable[[Provider], Manager], tmp_path: Path
) -> None:
    """In one that the manager leaves behind when it takes too long, in one of a class or of a part of a function."""
    provider = Elsewhere()
    observed(provider)
    caller = threading.Thread(target=getattr(provider, name), args=("Which database?",), daemon=True)
    caller.start()
    if name != "prefetch":
        caller.join(TOLD_S)
    wait_until(lambda: is_busy(tmp_path), "the provider is at work")
    provider.may_answer.set()
    wait_until(lambda: not is_busy(tmp_path), "the provider has come to rest")


class Beginning(Asking):
    """A thread that another one is starting, and that begins when the test lets it."""

    may_begin = threading.Event()

    def _bootstrap(self) -> None:
        # No public method runs before a thread counts as started; the types of the standard library leave this one out.
        self.may_begin.wait(TOLD_S)
        super()._bootstrap()  # type: ignore[misc]


class Delegating(Provider):
    """A provider that has its worker start a thread."""

    def __init__(self) -> None:
        super().__init__()
        self._worker = ThreadPoolExecutor(1)
        self._worker.submit(lambda: None).result()

    def sync_turn(self, _user: str) -> None:
        """Return while the worker is starting the thread."""
        asking = Beginning(self.may_answer)
        self._worker.submit(asking.start)
        wait_until(lambda: asking in threading.enumerate(), "the thread is being started")


def test_a_thread_that_is_being_started_is_waited_for_too(
    observed: Callable[[Provider], Manager], tmp_path: Path
) -> None:
    """Python lists it before it can be joined."""
    provider = Delegating()
    observed(provider)
    provider.sync_turn("Which database?")
    assert is_busy(tmp_path)
    Beginning.may_begin.set()
    assert is_busy(tmp_path)
    provider.may_answer.set()
    wait_until(lambda: not is_busy(tmp_path), "the provider has come to rest")


class Fixed:
    """A provider that takes no attributes, and fails."""

    __slots__ = ()

    def is_available(self) -> bool:
        """It cannot tell."""
        raise LookupError("no answer")


class Failing(Provider):
    """A provider that fails, and calls itself."""

    def on_session_end(self, messages: Sequence[str]) -> None:
        """Fail on the way."""
        self.on_pre_compress(messages)
        raise LookupError("no answer")

    def on_pre_compress(self, messages: Sequence[str]) -> None:
        """Have nothing to say."""


def test_a_failure_is_the_providers_own(observed: Callable[[Any], Manager], tmp_path: Path) -> None:
    """It comes out as it went in, the call is written down, and what the provider calls of itself is not."""
    events = Events(tmp_path)
    failing = Failing()
    observed(failing)
    with pytest.raises(LookupError):
        failing.on_session_end(["one"])
    assert not is_busy(tmp_path)
    fixed = Fixed()
    load = sys.modules["plugins.memory"].__dict__["load_memory_provider"]
    observed(fixed)
    assert load("signet") is not None
    with pytest.raises(LookupError):
        fixed.is_available()
    assert [row["event"] for row in events.new()] == ["on_session_end"]


def test_a_call_is_written_down_before_it_returns(observed: Callable[[Provider], Manager], tmp_path: Path) -> None:
    """One that the program is ended in was a call all the same, and stands before what came meanwhile."""
    provider = Elsewhere()
    observed(provider)
    events = Events(tmp_path)
    threading.Thread(target=provider.prefetch, args=("Which database?",), daemon=True).start()
    wait_until(lambda: is_busy(tmp_path), "the provider is at work")
    provider.sync_turn("Which database?")
    assert [row["event"] for row in events.new()] == ["prefetch", "sync_turn"]
    provider.may_answer.set()


def test_what_a_provider_is_told_is_written_down(observed: Callable[[Provider], Manager], tmp_path: Path) -> None:
    """The call, the names of its arguments, and a yes or no of its own; never a value of the talk."""
    events = Events(tmp_path)
    provider = Provider()
    provider.may_ask.set()
    provider.may_answer.set()
    manager = observed(provider)
    assert provider.is_available()
    manager.queue_prefetch_all("Which database?")
    manager.flush_pending()
    told = events.new()
    assert [(row["event"], row["members"], row["args"]) for row in told] == [
        ("is_available", [], ["True"]),
        ("queue_prefetch", ["argument 1", "session_id"], []),
    ]
    assert "database" not in json.dumps(told)


def test_a_home_without_that_observer_is_at_rest(tmp_path: Path) -> None:
    """Nothing was ever told there."""
    assert not is_busy(tmp_path)
    (tmp_path / FOLDER).mkdir()
    assert not is_busy(tmp_path)
