"""All pytest hooks of the kit. Everything else is imported only in runs with `--signet-conformance`.

Without it this module only adds a few options: neither Hypothesis, nor mitmproxy, nor the engine is imported.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from signet_conformance.pytest_plugin.run import ConformanceRun

_SWITCH = "--signet-conformance"
_RUN = "signet-conformance-run"
_OPTIONS: Sequence[Mapping[str, Any]] = json.loads(Path(__file__).with_name("options.json").read_bytes())
"""Each option's name, its short name if it has one, and the arguments of `addoption`.

The kit itself refuses `--signet-target` without a value, like an unknown name: pytest would end with its own status.
"""
_taken_key = pytest.StashKey[list[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register the options that never clash with a repository's own."""
    group = parser.getgroup("signet-conformance", "Signet contract conformance")
    for option in _OPTIONS:
        group.addoption(option["name"], **_arguments(option))


def _arguments(option: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in option.items() if name not in ("name", "short")}


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> Generator[None]:
    """Register the short options in runs with `--signet-conformance`, unless the repository owns them.

    Node ids of the kit do not name files; this replaces them by the options that they mean.
    """
    # pytest.main takes paths too.
    args[:] = map(os.fspath, args)
    previous = ["", *args]
    args[:] = [
        word
        for option, given in zip(previous, args, strict=False)
        for word in ([given] if option in _WITH_NODE_IDS else options_of(given, args))
    ]
    yield
    if _SWITCH not in args:
        return
    group = parser.getgroup("signet-conformance")
    short = {option["short"]: option for option in _OPTIONS if "short" in option}
    owned = [name for name in short if _is_known(parser, f"--{name}")]
    for name, option in short.items():
        if name not in owned:
            arguments = {**_arguments(option), "help": f"short for {option['name']}"}
            group.addoption(f"--{name}", dest=f"signet_short_{name}", **arguments)
    early_config.stash[_taken_key] = owned


_WITH_NODE_IDS = ("--deselect", "-k", "--ignore", "--ignore-glob")
"""Options of pytest whose value may be a node id."""
_NODE = re.compile(r"(?:.*/)?signet-conformance/(?P<target>[^/:@]+)(?:@(?P<face>[^/:]+))?(?:::(?P<id>[A-Z0-9-]+))?/?")


def options_of(given: str, args: Sequence[str]) -> Sequence[str]:
    """Return the options that a node id of the kit means; return any other word unchanged."""
    node = _NODE.fullmatch(given)
    if node is None or os.path.lexists(given.partition("::")[0]):
        return [given]
    words = [] if _SWITCH in args else [_SWITCH]
    names_target = any(word.partition("=")[0] in ("--signet-target", "--target", "--signet-trace") for word in args)
    words += [] if names_target else [f"--signet-target={node['target']}"]
    words += [f"--signet-face={node['face']}"] if node["face"] and "--signet-face" not in args else []
    return [*words, *([f"--signet-requirement={node['id']}"] if node["id"] else [])]


def _is_known(parser: pytest.Parser, option: str) -> bool:
    # Found out by parsing: some versions of pytest report a clash of names at once, others later.
    given = f"{option}=x"
    try:
        return given not in parser.parse_known_and_unknown_args([given])[1]
    except pytest.UsageError:
        # The option is known, but refuses this value.
        return True


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Set the kit's run up, in runs with `--signet-conformance`.

    This is not done when pytest is configured: `--help` and the like are configured too, but start no session.
    """
    config = session.config
    if not config.getoption("signet_conformance", default=False):
        _refuse_unused_options(session)
        return
    importing = ExitStack()
    importing.enter_context(plain_imports())
    config.add_cleanup(importing.close)
    if not hasattr(config, "workerinput") and not config.option.collectonly:
        _warm_up(config)
    from signet_conformance.pytest_plugin.run import ConformanceRun

    taken = config.stash.get(_taken_key, None) or []
    config.pluginmanager.register(RunHooks(config, ConformanceRun.all_of(session, taken)), _RUN)


def _refuse_unused_options(session: pytest.Session) -> None:
    """End a run that has options of the kit, but not `--signet-conformance`: it would pass without any test.

    Options in `addopts` are allowed: they are for other runs.
    """
    words = (os.fspath(word).partition("=")[0] for word in session.config.invocation_params.args)
    given = [word for word in words if word in {option["name"] for option in _OPTIONS}]
    if given and not hasattr(session.config, "workerinput"):
        from signet_conformance.errors import UsageError
        from signet_conformance.pytest_plugin.run import end_run

        end_run(session, UsageError(f"does nothing without {_SWITCH}", where=given[0], remedy=f"add {_SWITCH}"))


def _warm_up(config: pytest.Config) -> None:
    """Let a fork server import the modules of a driven run's programs while the rest is imported here."""
    from signet_conformance.children.forks import warmed

    def text_option(name: str) -> str | None:
        value: str | None = config.getoption(f"signet_{name}")
        return config.getoption(f"signet_short_{name}", default=None) if value is None else value

    if text_option("target") and not config.getoption("signet_trace"):
        stack = ExitStack()
        stack.enter_context(warmed(text_option("target"), text_option("daemon")))
        config.add_cleanup(stack.close)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell an xdist worker where the traces of each run will be."""
    hooks: RunHooks | None = node.config.pluginmanager.get_plugin(_RUN)
    if hooks is not None:
        node.workerinput["signet_conformance_folders"] = [str(run.folder) for run in hooks.runs]


class RunHooks:
    """The hooks of runs with `--signet-conformance`, registered only there; each calls the kit's runs.

    There is one run, or one for each face that is played.
    """

    def __init__(self, config: pytest.Config, runs: Sequence[ConformanceRun]) -> None:
        self.runs = runs
        self._config = config

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Generator[None, Any, Any]:
        """Add the kit's items to the session's other collectors."""
        report = yield
        if isinstance(collector, pytest.Session) and report.outcome == "passed":
            report.result = [*report.result, *(run.collector(collector) for run in self.runs)]
        return report

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, Any, Any]:
        """Perform the scenarios, or read the recordings, before the first item."""
        for run in self.runs:
            run.begin(session)
        return (yield)

    def pytest_report_header(self) -> list[str]:
        """Report the played host and the command that repeats the run."""
        return [line for run in self.runs if (line := run.header()) is not None]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
        """Give inconclusive requirements an outcome of their own; let pytest fold skipped ones by reason."""
        from signet_conformance.pytest_plugin.items import report_by_id

        report = yield
        return report_by_id(report, item, call)

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport | pytest.CollectReport) -> tuple[str, str, str] | None:
        """Name the outcome that pytest does not know."""
        from signet_conformance.pytest_plugin.items import is_inconclusive

        return ("inconclusive", "I", "INCONCLUSIVE") if is_inconclusive(report) else None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect the verdicts, wherever the items ran."""
        for run in self.runs:
            run.note_verdict(report)

    def pytest_terminal_summary(self, terminalreporter: Any, exitstatus: int) -> None:
        """Show the conclusion of each run."""
        for run in self._tested:
            if run.has_summary and not self._config.option.collectonly:
                from signet_conformance.pytest_plugin.run import write_summary

                write_summary(run, terminalreporter, exitstatus)

    @property
    def _tested(self) -> Sequence[ConformanceRun]:
        """The runs with a tested item, or that were ended; else the first.

        The user may have selected the items of only one of several runs.
        """
        return [run for run in self.runs if run.is_tested or not run.has_summary] or self.runs[:1]

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """End with the kit's own statuses; write the reports."""
        if session.config.option.collectonly:
            return
        # Imported here, so that runs without the kit import nothing.
        from signet_conformance.running.request import worst

        session.exitstatus = worst([run.finish(exitstatus) for run in self._tested])


_PACKAGES = ("signet_conformance", "signet_recording_proxy", "hypothesis")


class _PlainFinder:
    """Finds the modules of those packages on the path, before pytest does."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The module's place; None leaves it to the other finders."""
        return PathFinder.find_spec(name, path, target) if name.partition(".")[0] in _PACKAGES else None


@contextmanager
def plain_imports() -> Iterator[None]:
    """During the block, import modules of the kit and of Hypothesis without pytest's assertion rewriting."""
    finder = _PlainFinder()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
