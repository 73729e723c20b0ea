"""The kit's items are pytest items: they are listed, selected, stopped at, repeated and distributed as any other."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from signet_conformance.contract import Requirement, requirements
from signet_conformance.pytest_plugin.hooks import options_of
from signet_conformance.pytest_plugin.items import BreachError, RuleFailedError
from tests.support.inner_pytest import Finished, command
from tests.support.repository import Repository
from tests.support.session_recordings import NAMELESS_END, PROMPT, START, write

from .conftest import FAILING, JudgedRun

ITEM = "signet-conformance/recording::"


def listed(repository: Repository, recording: Path, *arguments: str) -> list[str]:
    """The ids of the requirements that such a run would judge."""
    done = repository.conform("--signet-trace", recording, "--collect-only", "-q", *arguments)
    assert done.status == 0, done.everything
    return [line.removeprefix(ITEM) for line in done.out.splitlines() if line.startswith(ITEM)]


def test_one_item_a_requirement(repository: Repository, conforming: Path) -> None:
    """The items are the requirements of the catalogue, in its order."""
    assert listed(repository, conforming) == list(requirements())


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("SIG-AGENT", lambda requirement: requirement.id.startswith("SIG-AGENT-")),
        ("SHOULD", lambda requirement: requirement.level == "SHOULD"),
        ("MUST and compaction", lambda requirement: requirement.level == "MUST" and requirement.area == "compaction"),
    ],
)
def test_k_selects_by_id_level_and_area(
    repository: Repository, conforming: Path, wanted: str, expected: Callable[[Requirement], bool]
) -> None:
    """-k takes a requirement's id or the beginning of it, its level, and its area."""
    names = [name for name, requirement in requirements().items() if expected(requirement)]
    assert names
    assert listed(repository, conforming, "-k", wanted) == names


def test_deselect_takes_an_item_out_by_its_node_id(repository: Repository, breaching: Path) -> None:
    """A node id as pytest prints it takes its requirement out of the run."""
    _, cases = repository.judge(breaching, "--deselect", f"{ITEM}SIG-END-001")
    assert set(requirements()) - set(cases) == {"SIG-END-001"}


def test_listing_performs_nothing(repository: Repository) -> None:
    """--collect-only lists the items of a target and starts neither daemon nor connector."""
    daemon = repository.write("daemon.py", "open('started', 'w').close()")
    done = repository.conform("--target=reference", f"--daemon={sys.executable} {daemon}", "--collect-only", "-q")
    assert done.status == 0, done.everything
    assert done.out.count("signet-conformance/reference::SIG-") == len(requirements())
    assert not (repository.folder / "started").exists()


def test_nothing_selected_performs_nothing(repository: Repository) -> None:
    """Where -k selects none of the kit's items, nothing is started; the run says why it ends with 3."""
    daemon = repository.write("daemon.py", "open('started', 'w').close()")
    done = repository.conform("--target=reference", f"--daemon={sys.executable} {daemon}", "-k", "no-such-name")
    assert done.status == 3, done.everything
    assert "nothing was tested: no requirement was judged" in done.out
    assert not (repository.folder / "started").exists()


def test_x_stops_at_the_first_failure(repository: Repository, tmp_path: Path) -> None:
    """With -x no requirement is judged after the first that fails, and the status is that of the failure."""
    unkeyed = (*PROMPT[:2], {**PROMPT[2], "userPrompt": 7}, *PROMPT[3:])
    recording = write(tmp_path / "twice.jsonl", (START, unkeyed, NAMELESS_END))
    every, cases = repository.judge(recording)
    failed = [name for name, case in cases.items() if case.verdict == "FAIL"]
    assert every.status == 1
    assert len(failed) > 1
    stopped, cases = repository.judge(recording, "-x")
    assert stopped.status == 1
    assert [name for name, case in cases.items() if case.verdict == "FAIL"] == failed[:1]
    assert list(cases)[-1] == failed[0]


def test_lf_repeats_only_what_failed(repository: Repository, breaching: Path) -> None:
    """--lf judges the requirements that failed in the last run, and the verdict is theirs."""
    assert repository.judge(breaching)[0].status == 1
    again, cases = repository.judge(breaching, "--lf")
    assert again.status == 1
    assert list(cases) == ["SIG-END-001"]


def test_xdist_changes_neither_verdicts_nor_outcomes(distributed_run: JudgedRun, breaching_run: JudgedRun) -> None:
    """Two workers give the verdicts, outcomes and status of one process."""
    assert {name: (case.verdict, case.outcome) for name, case in distributed_run.cases.items()} == {
        name: (case.verdict, case.outcome) for name, case in breaching_run.cases.items()
    }
    assert distributed_run.done.status == breaching_run.done.status == 1


def test_xdist_changes_nothing_in_what_is_told(distributed_run: JudgedRun, breaching_run: JudgedRun) -> None:
    """Failures, warnings, undecided requirements and counts are told once, as without workers."""
    done = distributed_run.done
    assert done.out.count("FAIL SIG-END-001 MUST\n  harness") == 1
    assert done.out.count("ConformanceWarning: SIG-START-003") == 1
    assert "1 FAIL, 1 WARN; " in done.out
    assert undecided(done) == undecided(breaching_run.done) != set()


def undecided(done: Finished) -> set[str]:
    """The lines of the summary that list what could not be decided."""
    return {line for line in done.out.splitlines() if " INCONCLUSIVE: " in line}


@pytest.mark.parametrize("configured", ["", "testpaths = tests\n"], ids=["no-testpaths", "testpaths"])
def test_without_file_arguments_only_the_kit_s_items_run(
    repository: Repository, conforming: Path, configured: str
) -> None:
    """A repository's own failing tests take no part, whether or not it has testpaths."""
    repository.write("pytest.ini", f"[pytest]\n{configured}")
    repository.write("tests/test_own.py", FAILING)
    done, cases = repository.judge(conforming, "-k", "SIG-HTTP or test_own")
    assert done.status == 0, done.everything
    assert cases
    assert {name.rpartition("-")[0] for name in cases} == {"SIG-HTTP"}


def test_without_file_arguments_xdist_s_workers_run_only_the_kit_s_items(distributed_run: JudgedRun) -> None:
    """Workers, too, leave the tests of testpaths alone."""
    assert set(distributed_run.cases) == set(requirements())


def test_with_file_arguments_both_run(repository: Repository, conforming: Path) -> None:
    """File arguments bring the repository's own tests in; one that fails makes the status 1."""
    repository.write("test_own.py", FAILING)
    done, cases = repository.judge(conforming, "test_own.py")
    assert done.status == 1
    assert cases["test_own"].outcome == "failure"
    assert set(cases) == {"test_own", *requirements()}


def test_own_failure_counts_when_nothing_was_tested(repository: Repository, silent: Path) -> None:
    """A failing test of the repository's own is status 1, also when the recording tests nothing."""
    repository.write("test_own.py", FAILING)
    assert repository.judge(silent, "test_own.py")[0].status == 1


def test_broken_test_file_does_not_break_the_kit_s_items(repository: Repository, conforming: Path) -> None:
    """Where pytest goes on after a file that cannot be collected, the requirements are judged as ever."""
    repository.write("test_own.py", "import no_such_module\n")
    done, cases = repository.judge(conforming, "--continue-on-collection-errors", "test_own.py")
    assert done.status == 1
    assert {case.outcome for name, case in cases.items() if name in requirements()} == {"passed", "skipped"}
    assert "INTERNALERROR" not in done.everything


def test_broken_test_file_does_not_keep_the_connector_from_being_driven(repository: Repository) -> None:
    """Where pytest goes on after a file that cannot be collected, the scenarios are performed: here, tried."""
    repository.write("test_own.py", "import no_such_module\n")
    daemon = repository.write("daemon.py", "raise SystemExit('tried')")
    asked = ("--target=reference", f"--daemon={sys.executable} {daemon}", "--continue-on-collection-errors")
    done = repository.conform(*asked, "test_own.py")
    assert done.status == 3, done.everything
    assert "tried" in done.err


def test_a_node_id_that_was_printed_can_be_pasted(repository: Repository, breaching: Path) -> None:
    """Alone with its recording, a node id runs its one requirement; it is taken for no file."""
    for node in (f"{ITEM}SIG-END-001", f"{repository.folder}/{ITEM}SIG-END-001"):
        done = repository.launch(command("--signet-trace", breaching, node))
        assert "1 failed" in done.out, done.everything
        assert "collected 1 item" in done.out


@pytest.mark.parametrize(
    "given",
    [
        ("signet-conformance/recording::SIG-END-999",),
        ("--signet-conformance", "--signet-requirement=SIG-END-999"),
    ],
)
def test_a_requirement_that_does_not_exist_is_named(
    repository: Repository, breaching: Path, given: tuple[str, ...]
) -> None:
    """A run that selects nothing would end with nothing tested, and leave the reader to look for the misspelt id."""
    done = repository.launch(command("--signet-trace", breaching, *given))
    assert done.status == 2, done.everything
    assert "error: --signet-requirement: no requirement is called 'SIG-END-999'" in done.err
    assert "try: list the nearest: signet-conformance explain SIG-END-999" in done.err


@pytest.mark.parametrize(
    ("given", "options"),
    [
        ("signet-conformance/pi::SIG-END-001", ["--signet-target=pi", "--signet-requirement=SIG-END-001"]),
        ("signet-conformance/pi@pi-0.66::SIG-END-001",
         ["--signet-target=pi", "--signet-face=pi-0.66", "--signet-requirement=SIG-END-001"]),
        ("signet-conformance/pi", ["--signet-target=pi"]),
        ("tests/test_own.py::test_own", None),
        ("signet-conformance/test_own.py::test_own", None),
    ],
)  # fmt: skip
def test_a_node_id_stands_for_options(given: str, options: list[str] | None) -> None:
    """Target, face and requirement are in it; what is anybody else's stays as it is."""
    expected = [given] if options is None else ["--signet-conformance", *options]
    assert options_of(given, [given]) == expected


def test_what_was_selected_decides_what_is_performed(repository: Repository) -> None:
    """-k performs the scenarios that can decide the requirements, and no generated session unless asked."""
    done = repository.conform("--target=reference", "-k", "SIG-FAIL-004")
    selected = f"1 of {len(requirements())} requirements: only scenarios that can decide them are performed"
    assert f"{selected}; no generated" in done.out
    assert "conforming; 1 requirement tested in 4 traces (exit 0)" in done.out, done.everything


def test_a_breach_is_a_failed_assertion_and_a_rule_that_fails_is_not() -> None:
    """Whoever reads the results tells by it what failed from what broke."""
    assert issubclass(BreachError, AssertionError)
    assert not issubclass(RuleFailedError, AssertionError)
