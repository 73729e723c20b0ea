"""All four entrances say the same of the same recordings: `check`, pytest, `run` and the CI lane."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from signet_conformance import targets
from signet_conformance.cli.commands import commands
from signet_conformance.outcome.baseline_documents import Entry
from signet_conformance.outcome.broken_off import BrokenOff, Shortfall
from signet_conformance.outcome.known_failures import KnownFailures
from signet_conformance.outcome.options import KnownOptions
from signet_conformance.running.performance import DrivenPerformance, RunPerformance
from signet_conformance.running.request import RunOptions, RunRequest
from tests.support import session_recordings

TODAY = datetime.now(UTC).date()
LATER, BEFORE = TODAY + timedelta(days=400), TODAY - timedelta(days=1)
FAILING, WARNING, PASSING, ABANDONED = "SIG-END-001", "SIG-START-003", "SIG-HTTP-001", "SIG-FAIL-002"
SETTINGS = """\
[targets.acme]
command = ["{{python}}", "{{root}}/driver.py"]
harness = "openclaw"
agents = ["atlas-agent"]
bounds_s = {{{bounds}}}
"""


@dataclass(frozen=True)
class Said:
    """What an entrance says of a run. `because` is what fails it beside its verdicts."""

    status: int
    because: str
    verdicts: Mapping[str, str]


@dataclass(frozen=True)
class Case:
    """Recordings by name, with what a run is asked for; `status` and `because` are what it comes to.

    `known` and `flaky` are requirements with the last day of their entries. `broken_off` names recordings whose
    scenario was not performed to its end. `target` are the bounds that the target `acme` declares, `header` those of
    the recordings, None where neither is to be named.
    """

    name: str
    calls: Mapping[str, Iterable[session_recordings.Call]]
    status: int
    because: str = ""
    strict: bool = False
    coverage: str | None = None
    known: Mapping[str, Any] = field(default_factory=dict)
    flaky: Mapping[str, Any] = field(default_factory=dict)
    broken_off: tuple[str, ...] = ()
    target: str | None = None
    header: Mapping[str, float] | None = None
    verdict: tuple[str, str] | None = None
    """A requirement with the verdict that it has."""


GOOD = {"good": session_recordings.CONFORMING}
POOR = {"poor": session_recordings.IMPERFECT}
BAD = {"bad": session_recordings.BREACHING}
SILENT: Mapping[str, Iterable[session_recordings.Call]] = {"silent": ()}

CASES = (
    Case("conforming", GOOD, 0),
    Case("nothing recorded", SILENT, 3),
    Case("nothing recorded, coverage bound", SILENT, 3, coverage="50"),
    Case("nothing recorded, strict", SILENT, 3, strict=True),
    Case("nothing recorded, an entry", SILENT, 3, known={FAILING: LATER}),
    Case("nothing recorded, expired entry", SILENT, 1, "1 expired entry", known={FAILING: BEFORE}),
    Case("too little coverage", GOOD, 1, "too little coverage", coverage="99"),
    Case("enough coverage", GOOD, 0, coverage="1"),
    Case("a warning", POOR, 0, verdict=(WARNING, "WARN")),
    Case("a warning, strict", POOR, 1, strict=True),
    Case("a known warning, strict", POOR, 0, strict=True, known={WARNING: LATER}),
    Case("a breach", BAD, 1, verdict=(FAILING, "FAIL")),
    Case("a breach beside what conforms", GOOD | BAD, 1, verdict=(FAILING, "FAIL")),
    Case("a breach, too little coverage", BAD, 1, "too little coverage", coverage="99"),
    Case("a known breach", BAD, 0, known={FAILING: LATER}),
    Case("a known breach, strict", BAD, 1, strict=True, known={FAILING: LATER}),
    Case("a known breach, too little coverage", BAD, 1, "too little coverage", coverage="99", known={FAILING: LATER}),
    Case("a stale entry", GOOD, 1, "1 stale entry", known={PASSING: LATER}),
    Case("an expired entry", BAD, 1, "1 expired entry", known={FAILING: BEFORE}),
    Case(
        "a stale entry, too little coverage",
        GOOD,
        1,
        "1 stale entry and too little coverage",
        coverage="99",
        known={PASSING: LATER},
    ),
    Case("a flaky breach", BAD, 0, flaky={FAILING: LATER}),
    Case("a flaky breach, strict", BAD, 1, strict=True, flaky={FAILING: LATER}),
    Case("a flaky breach, too little coverage", BAD, 1, "too little coverage", coverage="99", flaky={FAILING: LATER}),
    Case("an expired flaky entry", BAD, 1, "1 expired entry", flaky={FAILING: BEFORE}),
    Case("a flaky breach, a stale entry", BAD, 1, "1 stale entry", known={PASSING: LATER}, flaky={FAILING: LATER}),
    Case("a flaky requirement that passes", GOOD, 0, flaky={PASSING: LATER}),
    Case("a scenario that broke off", GOOD | BAD, 4, "1 scenario that broke off", broken_off=("bad",)),
    Case("a scenario that broke off, a breach", BAD | POOR, 4, "1 scenario that broke off", broken_off=("poor",)),
    Case(
        "a scenario that broke off, strict",
        POOR | BAD,
        4,
        "1 scenario that broke off",
        strict=True,
        broken_off=("bad",),
    ),
    Case("all scenarios broke off", BAD, 4, "1 scenario that broke off", broken_off=("bad",)),
    Case(
        "a scenario that broke off, a stale entry",
        GOOD | BAD,
        4,
        "1 scenario that broke off and 1 stale entry",
        broken_off=("bad",),
        known={PASSING: LATER},
    ),
)

SLOW = {
    "slow": (session_recordings.HEALTH, session_recordings.START, session_recordings.PROMPT, session_recordings.END)
}
"""Its prompt takes eight seconds while the kit delays the answer."""

DECLARED = (
    Case("a bound of the header", SLOW, 1, header={"prompt": 2}, verdict=(ABANDONED, "FAIL")),
    Case("a bound of the target", SLOW, 1, target="prompt = 2", header={}, verdict=(ABANDONED, "FAIL")),
    Case(
        "bounds of both, by name",
        SLOW,
        1,
        target="start = 5",
        header={"prompt": 2},
        verdict=(ABANDONED, "FAIL"),
    ),
    Case(
        "the target before the header",
        SLOW,
        0,
        target="prompt = 60",
        header={"prompt": 2},
        verdict=(ABANDONED, "INCONCLUSIVE"),
    ),
)


class Entrances:
    """One case in a folder of its own, and the ways to have it judged."""

    def __init__(self, case: Case, folder: Path) -> None:
        self.case = case
        self.traces = folder / "traces"
        self.traces.mkdir()
        self.files = [self._recording(name, calls) for name, calls in case.calls.items()]
        self.known = self._entries(folder / "known.json", "signet-baseline/1", case.known)
        self.flaky = self._entries(folder / "flaky.json", "signet-flaky/1", case.flaky)
        if case.target is not None:
            (folder / "signet-conformance.toml").write_text(SETTINGS.format(bounds=case.target))

    def _recording(self, name: str, calls: Iterable[session_recordings.Call]) -> Path:
        declared = {"agents": ["atlas-agent"], "harness": "openclaw"}
        path = session_recordings.write(
            self.traces / f"{name}.jsonl",
            calls,
            declared if self.case.header is None else {**declared, "bounds_s": self.case.header},
        )
        header, *lines = (json.loads(line) for line in path.read_text().splitlines())
        if name == "slow":
            (prompt,) = (line for line in lines if line["request"]["path"].endswith("user-prompt-submit"))
            prompt.update(t1=prompt["t0"] + 8, fault={"kind": "delay", "delay_s": 8})
        error = "acme ended with status 1" if name in self.case.broken_off else None
        lines.append({"kind": "mark", "seq": 99, "t": 99.0, "name": "scenario_end", "data": {"error": error}})
        path.write_text("".join(f"{json.dumps(line)}\n" for line in (header, *lines)))
        return path

    @staticmethod
    def _entries(path: Path, form: str, days: Mapping[str, Any]) -> str | None:
        if not days:
            return None
        rows = (Entry(name, "*", "ada", "next release", BEFORE, day).to_json() for name, day in days.items())
        path.write_text(json.dumps({"format": form, "entries": list(rows)}))
        return str(path)

    def options(self, prefix: str = "--") -> list[str]:
        """The options of the case."""
        given = {
            "coverage-fail-under": self.case.coverage,
            "baseline": self.known,
            "flaky": self.flaky,
            "target": None if self.case.target is None else "acme",
        }
        words = [word for name, value in given.items() if value is not None for word in (prefix + name, value)]
        return [*words, *([f"{prefix}strict"] if self.case.strict else [])]

    def check(self) -> tuple[Said, str]:
        """`check` over the recordings, and what it prints."""
        words = [*map(str, self.files), *self.options(), "--json", "--output", "check.json"]
        done = CliRunner().invoke(commands, ["check", *words])
        text = CliRunner().invoke(commands, ["check", *words[:-3]]).stdout
        return _said(Path("check.json"), done.exit_code, done.stdout), text

    def pytest(self) -> tuple[Said, str]:
        """Pytest over the recordings, and what it prints."""
        words = ["-p", "signet_conformance.pytest_plugin.hooks", "-p", "no:cacheprovider", "-p", "no:faulthandler"]
        words += ["--signet-conformance", "--signet-report", "report", *self.options("--signet-")]
        words += [word for file in self.files for word in ("--signet-trace", str(file))]
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            status = pytest.main(words)
        return _said(Path("report", "report.json"), int(status), shown.getvalue()), shown.getvalue()

    def _write_shortfall(self, folder: Path) -> None:
        if self.case.broken_off:
            broken = (BrokenOff(name, "step 1 (prompt)", "it ended", (), "acme", "") for name in self.case.broken_off)
            Shortfall(tuple(broken), len(self.case.calls)).write(folder)

    def drive(self, performance: RunPerformance) -> None:
        """Leave the recordings where driving leaves them."""
        for file in self.files:
            shutil.copy(file, performance.request.folder)
        self._write_shortfall(performance.request.folder)

    @property
    def _target(self) -> str:
        return "acme" if self.case.target is not None else "reference"

    def run(self) -> Said:
        """`run` over what driving leaves."""
        options = [word for word in self.options() if word not in ("--target", "acme")]
        words = ["run", self._target, "--scenarios", "0", "--report", "run-report", "--quiet", *options]
        done = CliRunner().invoke(commands, words)
        return _said(Path("run-report", "report.json"), done.exit_code, done.stdout)

    def lane(self, monkeypatch: pytest.MonkeyPatch) -> Said | None:
        """The lane over what driving leaves; None where it has no input for what the case asks for."""
        if self.case.coverage is not None or self.flaky is not None:
            return None
        inputs = {"TARGET": self._target, "SCENARIOS": "0", "REPORT": "lane-report"}
        inputs |= {"STRICT": "true"} if self.case.strict else {}
        inputs |= {} if self.known is None else {"BASELINE": Path(self.known).name}
        for name, value in inputs.items():
            monkeypatch.setenv(f"SIGNET_LANE_{name}", value)
        done = CliRunner().invoke(commands, ["lane"])
        assert f"(exit {done.exit_code})" in done.stdout.splitlines()[-1]
        return _said(Path("lane-report", "report.json"), done.exit_code, done.stdout)

    def driven(self) -> Said:
        """What `run` and the CI lane make of the recordings that driving a connector has left in a folder."""
        case = self.case
        self._write_shortfall(self.traces)
        known = KnownOptions(baseline=self.known, flaky=self.flaky)
        request = RunRequest(
            folder=self.traces,
            options=RunOptions(strict=case.strict, known=KnownFailures.parse(known)),
            target=targets.load(self._target),
            least_coverage=None if case.coverage is None else float(case.coverage),
        )
        said = RunPerformance(request).conclusion
        return Said(said.status, said.because, {name: verdict.value for name, verdict in said.verdicts.items()})


def _said(report: Path, status: int, shown: str) -> Said:
    document = json.loads(report.read_bytes())
    assert document["exit"] == status
    (closing,) = (line for line in shown.splitlines() if line.endswith(f"(exit {status})") and " trace" in line)
    because = re.search(r"failed by (.+?)(?:, with .*|; .*| \(exit.*)$", closing)
    verdicts = {name: judgement["verdict"] for name, judgement in document["together"].items()}
    return Said(status, "" if because is None else because[1], verdicts)


Entering = Callable[[Case], Entrances]


@pytest.fixture(name="entering")
def make_entering(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Entering:
    """Write the recordings of a case; whoever judges them stands in their folder, in a plain environment.

    To drive means to leave them where driving does.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    for name in (
        *("PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTEST_XDIST_WORKER"),
        *("CI", "GITHUB_ACTIONS", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_WORKSPACE"),
    ):
        monkeypatch.delenv(name, raising=False)

    def enter(case: Case) -> Entrances:
        entrances = Entrances(case, tmp_path)
        monkeypatch.setattr(DrivenPerformance, "drive", lambda performance, *_: entrances.drive(performance))
        return entrances

    return enter


def by_name(case: Case) -> str:
    """The case in the names of tests."""
    return case.name


@pytest.mark.parametrize("case", CASES, ids=by_name)
def test_all_entrances_say_the_same(entering: Entering, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Status, verdicts and what fails the run beside them are the same in `check`, pytest, `run` and the lane.

    The latter two find the recordings where driving leaves them.
    """
    entrances = entering(case)
    driven = entrances.driven()
    assert (driven.status, driven.because) == (case.status, case.because)
    # What a run lacks is told in lines of its own, where anything was tested.
    because = "" if case.broken_off and driven.verdicts else driven.because
    expected = Said(driven.status, because, driven.verdicts)
    assert entrances.check()[0] == expected
    assert entrances.pytest()[0] == expected
    assert entrances.run() == expected
    assert entrances.lane(monkeypatch) in (expected, None)
    if case.verdict is not None:
        name, verdict = case.verdict
        assert driven.verdicts[name] == verdict


def test_what_a_target_declares_counts_where_it_is_driven(entering: Entering, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stands in the headers of what `run` and the lane drive, which therefore say what `check` says."""
    entrances = entering(DECLARED[0])
    checked, _ = entrances.check()
    assert entrances.run() == checked
    assert entrances.lane(monkeypatch) == checked


@pytest.mark.parametrize("case", DECLARED, ids=by_name)
def test_what_is_declared_counts_alike(entering: Entering, case: Case) -> None:
    """Target before header, bounds by name: `check`, pytest and the commands that either prints agree."""
    entrances = entering(case)
    name, verdict = case.verdict or ("", "")
    for said, shown in (entrances.check(), entrances.pytest()):
        assert (said.status, said.verdicts[name]) == (case.status, verdict)
        commands_shown = replays(shown, name)
        assert len(commands_shown) == (verdict == "FAIL")
        for command in commands_shown:
            assert CliRunner().invoke(commands, command).exit_code == 1


def test_an_option_counts_before_the_target(entering: Entering) -> None:
    """`check --bound` replaces the bound of that name, of target and header, and the replay says it again."""
    entrances = entering(DECLARED[-1])
    words = ["check", str(entrances.files[0]), "--target", "acme", "--bound", "prompt=3"]
    shown = CliRunner().invoke(commands, words)
    assert shown.exit_code == 1
    (replay,) = replays(shown.stdout, ABANDONED)
    assert {"--target=acme", "--bound=prompt=3"} <= set(replay)
    assert CliRunner().invoke(commands, replay).exit_code == 1


def replays(shown: str, requirement: str) -> list[list[str]]:
    """The commands that replay a requirement, each without the program's name."""
    text = " ".join(shown.split())
    pattern = rf"signet-conformance (check (?:(?!signet-conformance).)*?-k {requirement})\b"
    return [shlex.split(line) for line in dict.fromkeys(re.findall(pattern, text))]
