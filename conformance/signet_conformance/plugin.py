"""The pytest hooks of the kit. Everything else is imported only in a run that asks for it.

Without `--signet-conformance` this module adds a handful of options and nothing more: neither
Hypothesis, nor mitmproxy, nor the engine is imported.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from signet_conformance.pytest_run import ConformanceRun

_ASKED = "--signet-conformance"
_RUN = "signet-conformance-run"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register the options that never clash with a repository's own."""
    group = parser.getgroup("signet-conformance", "Signet contract conformance")
    group.addoption(_ASKED, action="store_true", help="judge a connector against the Signet contract, one item a requirement")
    group.addoption("--signet-target", metavar="NAME", help="the connector to drive (signet-conformance targets lists them)")
    group.addoption(
        "--signet-daemon",
        metavar="WHERE",
        help="embedded (the default), the URL of a running daemon, or a command that starts one",
    )
    group.addoption("--signet-trace", metavar="FILE", action="append", default=[], help="judge this recording instead of driving")
    group.addoption("--signet-report", metavar="DIR", help="write report.json and the traces there")
    group.addoption("--signet-strict", action="store_true", help="a WARN fails the run too")


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> Generator[None]:
    """Register `--target` and `--daemon` in runs that ask for the kit, unless the repository owns them."""
    yield
    if _ASKED not in args:
        return
    group = parser.getgroup("signet-conformance")
    taken = []
    for short in ("--target", "--daemon"):
        try:
            group.addoption(short, dest=f"signet_short_{short[2:]}", metavar="NAME", help=f"short for --signet-{short[2:]}")
        except ValueError:
            taken.append(short)
    early_config.stash[_taken_key] = taken


_taken_key = pytest.StashKey[list[str]]()


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Set the run up, in a run that asks for one."""
    if not config.getoption("signet_conformance", default=False):
        return
    from signet_conformance.pytest_run import ConformanceRun

    config.pluginmanager.register(ConformanceRun.from_config(config, config.stash.get(_taken_key, [])), _RUN)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell an xdist worker where the traces of this run will be."""
    run: ConformanceRun | None = node.config.pluginmanager.get_plugin(_RUN)
    if run is not None:
        node.workerinput["signet_conformance_folder"] = str(run.folder)

