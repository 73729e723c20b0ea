"""The hooks alone: what they cost a run that asks for nothing, and whose option --target is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.repository import Repository

from .conftest import OWNS_TARGET, JudgedRun

SHOWS_TARGET = """
def test_target(request, capsys):
    with capsys.disabled():
        print("their target is", request.config.getoption("--target"))
"""
LISTS_MODULES = """
import sys
from pathlib import Path

def pytest_sessionfinish():
    Path("modules.txt").write_text("\\n".join(sys.modules))
"""
PASSES = "def test_own():\n    pass\n"
EXPENSIVE = ("hypothesis", "jsonschema", "jsonschema_rs", "mitmproxy", "pydantic_core", "httpx", "starlette")


def test_run_without_the_flag_imports_nothing_but_the_hooks(repository: Repository) -> None:
    """A run that does not ask for the kit imports its package and the plugin module, and no dependency of it."""
    repository.write("conftest.py", LISTS_MODULES)
    repository.write("test_own.py", PASSES)
    assert repository.run_plainly().status == 0
    loaded = (repository.folder / "modules.txt").read_text().split()
    assert [name for name in loaded if name.partition(".")[0] in EXPENSIVE] == []
    assert {name for name in loaded if name.startswith("signet_")} == {
        "signet_conformance",
        "signet_conformance.pytest_plugin",
        "signet_conformance.pytest_plugin.hooks",
    }


def test_run_on_a_recording_loads_nothing_that_drives(repository: Repository, conforming: Path) -> None:
    """A run that judges a recording imports no Hypothesis, mitmproxy, pydantic, nor what launches connectors."""
    repository.write("conftest.py", LISTS_MODULES)
    assert repository.run_plainly("--signet-conformance", "--signet-trace", conforming).status == 0
    loaded = set((repository.folder / "modules.txt").read_text().split())
    assert "signet_conformance.engine" in loaded
    assert loaded & {"hypothesis", "mitmproxy", "starlette", "pydantic", "signet_conformance.running.workers"} == set()


def test_run_without_the_flag_has_the_repository_s_items_only(repository: Repository) -> None:
    """Without the flag the kit adds no item, whatever of its options a repository gives to each run."""
    repository.write("test_own.py", PASSES)
    repository.write("pytest.ini", "[pytest]\naddopts = --signet-target=reference\n")
    done = repository.run("--collect-only", "-q")
    assert done.out.split("\n", 1)[0] == "test_own.py::test_own"
    assert "1 test collected" in done.out


@pytest.mark.parametrize("option", ["--target", "--daemon"])
def test_short_option_is_unknown_without_the_flag(repository: Repository, option: str) -> None:
    """Without the flag pytest itself refuses --target and --daemon, as if the kit were not there."""
    done = repository.run(f"{option}=reference")
    assert done.status == 4
    assert f"unrecognized arguments: {option}=reference" in done.err


def test_repository_keeps_its_own_target_without_the_flag(repository: Repository) -> None:
    """A repository that has a --target of its own gets its value, the kit installed or not."""
    repository.write("conftest.py", OWNS_TARGET)
    repository.write("test_own.py", SHOWS_TARGET)
    done = repository.run("--target", "staging")
    assert done.status == 0
    assert "their target is staging" in done.out


def test_repository_keeps_its_own_target_beside_the_kit_s(repository: Repository, conforming: Path) -> None:
    """Where the repository owns --target, the kit says so and listens to --signet-target only."""
    repository.write("conftest.py", OWNS_TARGET)
    repository.write("test_own.py", SHOWS_TARGET)
    options = ("--signet-target=reference", "--target", "staging", f"--signet-trace={conforming}")
    done = repository.conform(*options, "-rA", "-k", "test_own or SIG-HTTP-001", "test_own.py")
    assert done.status == 0, done.everything
    assert "their target is staging" in done.out
    assert "PASSED signet-conformance/reference::SIG-HTTP-001" in done.out
    assert done.err.count("this repository owns --target; use --signet-target") == 1
    assert "owns --daemon" not in done.err


def test_owned_target_is_said_once_under_xdist(distributed_run: JudgedRun) -> None:
    """Workers do not repeat what the controlling process has said."""
    assert distributed_run.done.everything.count("this repository owns --target") == 1


def test_remedy_names_the_option_that_exists(repository: Repository) -> None:
    """Where the repository owns --target, a missing target is asked for by the long name."""
    repository.write("conftest.py", OWNS_TARGET)
    done = repository.conform()
    assert done.status == 2
    assert "try: add --signet-target NAME" in done.err


@pytest.mark.parametrize("by", ["ini", "environment"])
def test_flag_counts_wherever_pytest_reads_options(repository: Repository, conforming: Path, by: str) -> None:
    """The flag in the configuration file or in PYTEST_ADDOPTS registers --target like one on the command line."""
    flag = "-p no:hypothesispytest --signet-conformance"
    repository.write("pytest.ini", f"[pytest]\naddopts = {flag if by == 'ini' else ''}\n")
    extra = {"PYTEST_ADDOPTS": flag} if by == "environment" else {}
    done = repository.run("--target", "reference", f"--signet-trace={conforming}", "-rA", "-k", "SIG-HTTP-001", **extra)
    assert done.status == 0, done.everything
    assert "PASSED signet-conformance/reference::SIG-HTTP-001" in done.out


def test_help_sets_no_run_up(repository: Repository) -> None:
    """--help beside the flag lists the options, the short ones too, and asks for no target."""
    done = repository.conform("--help")
    assert done.status == 0, done.everything
    for option in ("--signet-target=[NAME]", "--signet-daemon=WHERE", "--signet-report=DIR", "--target=[NAME]"):
        assert option in done.out
    assert done.err == ""
