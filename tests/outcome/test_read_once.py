"""A report of whatever format costs one reading: no recording is built twice, and no body is parsed twice."""

from __future__ import annotations

import contextlib
import io
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from signet_conformance import targets
from signet_conformance.cli.commands import commands
from signet_conformance.facts import Recording
from signet_conformance.reports import FORMATS
from signet_conformance.running.performance import RunPerformance
from signet_conformance.running.request import RunOptions, RunRequest
from signet_conformance.trace import Trace, read
from signet_conformance.trace.model import Body
from tests.support.evidence import TRACES

FILES = [str(TRACES / f"{name}.jsonl") for name in ("openclaw-lifecycle", "pi-fault-slowbody")]


def check() -> None:
    """Every format of `check`, what stands on standard output the last."""
    files = [word for name, form in FORMATS.items() if not form.in_place_of_text for word in (f"--{name}", name)]
    CliRunner().invoke(commands, ["check", *FILES, "--coverage", *files, "--json"], catch_exceptions=False)


def run_under_pytest() -> None:
    """Pytest, with a report in every format."""
    words = ["-p", "signet_conformance.pytest_plugin.hooks", "-p", "no:cacheprovider", "-p", "no:faulthandler"]
    words += ["--signet-conformance", "--signet-report", "report"]
    words += [word for file in FILES for word in ("--signet-trace", file)]
    with contextlib.redirect_stdout(io.StringIO()):
        pytest.main(words)


def perform() -> None:
    """What `run` and the CI lane do once the connector is driven, with a report in every format."""
    Path("report").mkdir()
    request = RunRequest(
        folder=Path("report"),
        options=RunOptions(report="report"),
        target=targets.load("reference"),
        recordings=FILES,
    )
    RunPerformance(request).write()


@pytest.mark.parametrize("report", [check, run_under_pytest, perform])
def test_nothing_is_read_twice(report: Callable[[], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each trace becomes one recording, and each of its bodies is looked into once."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTEST_XDIST_WORKER"):
        monkeypatch.delenv(name, raising=False)
    exchanges = [exchange for file in FILES for exchange in read(file).exchanges]
    messages = [message for each in exchanges for message in (each.request, each.response) if message is not None]
    built: Counter[str | None] = Counter()
    bodies = 0
    build, parse = Recording.__init__, Body._object

    def building(self: Recording, trace: Trace, *others: Any, **named: Any) -> None:
        built[trace.path] += 1
        build(self, trace, *others, **named)

    def parsing(self: Body) -> Any:
        nonlocal bodies
        bodies += 1
        return parse(self)

    monkeypatch.setattr(Recording, "__init__", building)
    monkeypatch.setattr(Body, "_object", parsing)
    report()
    assert built == dict.fromkeys(FILES, 1)
    assert bodies == sum(message.body is not None for message in messages)
