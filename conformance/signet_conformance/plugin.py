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
_taken_key = pytest.StashKey[list[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register the options that never clash with a repository's own."""
    group = parser.getgroup("signet-conformance", "Signet contract conformance")
    group.addoption(
        _ASKED, action="store_true", help="judge a connector against the Signet contract, one item a requirement"
    )
    group.addoption(
        "--signet-target", metavar="NAME", help="the connector to drive (signet-conformance targets lists them)"
    )
    group.addoption(
        "--signet-daemon",
        metavar="WHERE",
        help="embedded (the default), the URL of a running daemon, or a command that starts one",
    )
    group.addoption(
        "--signet-trace",
        metavar="FILE",
        action="append",
        default=[],
        help="judge this recording instead of driving; repeatable",
    )
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
    taken: list[str] = []
    for name, metavar in (("target", "NAME"), ("daemon", "WHERE")):
        try:
            group.addoption(
                f"--{name}", dest=f"signet_short_{name}", metavar=metavar, help=f"short for --signet-{name}"
            )
        except ValueError:
            taken.append(name)
    early_config.stash[_taken_key] = taken


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Set the run up, in a run that asks for one.

    Not while pytest is being configured: `--help` and the like are configured too, and start no session.
    """
    config = session.config
    if not config.getoption("signet_conformance", default=False):
        return
    from signet_conformance.pytest_run import ConformanceRun  # noqa: PLC0415 - a run that asks for nothing pays nothing

    taken = config.stash.get(_taken_key, None) or []
    config.pluginmanager.register(ConformanceRun.from_config(config, taken), _RUN)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell an xdist worker where the traces of this run will be."""
    run: ConformanceRun | None = node.config.pluginmanager.get_plugin(_RUN)
    if run is not None:
        node.workerinput["signet_conformance_folder"] = str(run.folder)
