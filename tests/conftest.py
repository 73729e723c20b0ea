"""What every test relies on, however the run was started."""

from __future__ import annotations

import atexit
import gc
import os
import signal
from collections.abc import Iterator
from importlib import import_module

import pytest
from hypothesis import HealthCheck, settings

from signet_conformance.rules import builtin_rules, daemon_rules, harness_rules
from tests.support import warm

# A run in the background of a shell inherits an ignored SIGINT, one under nohup an ignored SIGHUP, and would hand it
# down: no child that a test interrupts would notice. Children of a process that handles a signal get the default back.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda _number, _frame: None)  # whoever said nohup wants this run to go on

# An example takes as long as the machine is busy, so no test has a deadline. CI draws the same examples each time:
# what fails there, a change has caused. HYPOTHESIS_PROFILE names the profile of a run, as "ci".
settings.register_profile("developer", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("developer"), derandomize=True, database=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if "CI" in os.environ else "developer"))


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Deal tests out in long runs: what a module's tests share is then made by one worker, not by each of them."""
    if getattr(config.option, "numprocesses", None) and config.option.dist == "no":
        config.option.dist = "worksteal"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Search for no garbage while tests are collected, and leave what was collected out of every later search.

    It is large, and lives as long as the run. A test that runs pytest in this process searches several times, and so
    does an interpreter that makes many objects.
    """
    gc.disable()
    try:
        collected = yield
        # Threads import them else. pytest parses what it imports, and Python 3.11 fails if two threads parse at once.
        import_module("signet_conformance.scenarios.strategies")
        for rules in (builtin_rules, daemon_rules, harness_rules):
            rules()
        return collected
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the tests that take longest, then with those that mostly wait.

    A test that is begun last is waited for by all other workers. The first worker is dealt all tests that wait: it
    waits for one after another while the others compute. Dealt out in the order of names, all workers wait at once.
    """
    items.sort(key=lambda item: (item.get_closest_marker("longest") is None, item.get_closest_marker("waits") is None))


@pytest.fixture(scope="module", autouse=True)
def _searched() -> Iterator[None]:
    """Leave what a module's tests have made and kept, as modules and caches, out of every later search for garbage.

    A worker keeps three hundred thousand objects by the middle of the suite: to look at each takes a quarter of a
    second, and a pytest that a test runs in this process looks at all of them three times.
    """
    yield
    gc.collect()
    gc.freeze()


def _end(pid: int) -> None:
    """End a worker at once: it would take seconds to free half a million objects, in all workers at the same time.

    A run without workers searches everything a last time instead: libraries would tell what is left out as a leak.
    Those that pytest makes at its own end leave it out too.
    """
    if "PYTEST_XDIST_WORKER" not in os.environ:
        gc.unfreeze()
    elif os.getpid() == pid:  # a fork has a status of its own
        os._exit(0)


# What is registered first is called last.
atexit.register(_end, os.getpid())


@pytest.fixture(scope="session", autouse=True)
def _warm() -> Iterator[None]:
    """The process whose forks are the programs that tests run by the hundred; it begins with the first of them."""
    with warm.server():
        yield
