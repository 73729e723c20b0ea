"""What a run leaves for programs: the JSON report and the JUnit file."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import jsonschema

from signet_conformance.contract import document, requirements
from tests.support.repository import Repository
from tests.support.small_files import NOTHING_COMPILED

from .conftest import JudgedRun

SCHEMA = "report/signet-report-1.schema.json"


def report_in(folder: Path) -> dict[str, Any]:
    """The report, checked against its schema."""
    report: dict[str, Any] = json.loads((folder / "report.json").read_bytes())
    jsonschema.Draft202012Validator(document(SCHEMA)).validate(report)
    return report


def test_report_says_what_the_items_said(distributed_run: JudgedRun) -> None:
    """The report meets its schema, and has the verdicts and the status of the run, wherever the items ran."""
    folder = distributed_run.repository.folder / "report"
    report = report_in(folder)
    assert report["exit"] == distributed_run.done.status == 1
    assert [listed["file"] for listed in report["traces"]] == [str(distributed_run.recording)]
    assert {name: judgement["verdict"] for name, judgement in report["together"].items()} == {
        name: case.verdict for name, case in distributed_run.cases.items()
    }
    assert f"report: {folder / 'report.json'}" in distributed_run.done.out


def test_report_goes_into_an_empty_folder_that_is_there(repository: Repository, conforming: Path) -> None:
    """A folder that exists and is empty takes the report; one that is not there is made, with those above it."""
    (repository.folder / "report").mkdir()
    for folder in ("report", "out/report"):
        assert repository.conform("--signet-trace", conforming, "--signet-report", folder, "-k", "HTTP").status == 0
        assert report_in(repository.folder / folder)["exit"] == 0


def test_reports_tell_of_what_was_selected_alone(repository: Repository, breaching: Path) -> None:
    """Every report has the requirements that -k selected; the breach of another one is in none of their tables."""
    done = repository.conform("--signet-trace", breaching, "--signet-report", "report", "-k", "SIG-HTTP")
    assert done.status == 0, done.everything
    folder = repository.folder / "report"
    report = report_in(folder)
    selected = {name for name in requirements() if name.startswith("SIG-HTTP-")}
    assert selected == set(report["together"]) == set(report["traces"][0]["verdicts"])
    assert "SIG-END-001" not in {cause["requirement"] for cause in report["causes"]}
    for name in ("report.md", "report.html", "report.xml"):
        assert "SIG-END-001" not in (folder / name).read_text("utf-8"), name


def test_second_report_overwrites_nothing(repository: Repository, conforming: Path, breaching: Path) -> None:
    """A run with the folder of an earlier report ends with 2 and leaves that report as it was."""
    assert repository.judge(conforming, "--signet-report", "report")[0].status == 0
    first = (repository.folder / "report" / "report.json").read_bytes()
    done = repository.conform("--signet-trace", breaching, "--signet-report", "report")
    assert done.status == 2
    assert "is not empty" in done.err
    assert (repository.folder / "report" / "report.json").read_bytes() == first


def test_report_that_does_not_fit_is_no_report(repository: Repository, conforming: Path) -> None:
    """Where the disk refuses the report, the run says so and ends with 2, and no half of it passes for one."""
    limited = (
        "import resource, sys, pytest; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)); "
        "sys.exit(pytest.main(sys.argv[1:]))"
    )
    words = ("--signet-conformance", "--signet-trace", str(conforming), "--signet-report", "report")
    done = repository.launch([sys.executable, "-c", limited, *words], **NOTHING_COMPILED)
    assert done.status == 2, done.everything
    assert "report: the report cannot be written: File too large" in done.err
    assert "Traceback" not in done.everything
    assert not (repository.folder / "report" / "report.json").exists()


def test_own_failing_test_is_the_status_of_the_report(repository: Repository, conforming: Path) -> None:
    """The report's status is that of the run."""
    repository.write("test_own.py", "def test_own():\n    assert 0\n")
    done, _ = repository.judge(conforming, "--signet-report", "report", "test_own.py")
    assert report_in(repository.folder / "report")["exit"] == done.status == 1


def test_junit_holds_every_verdict(breaching_run: JudgedRun) -> None:
    """Each requirement is a test case of its own name, with its verdict as a property."""
    assert list(breaching_run.cases) == list(requirements())
    assert {(case.verdict, case.outcome) for case in breaching_run.cases.values()} == {
        ("PASS", "passed"),
        ("FAIL", "failure"),
        ("WARN", "passed"),
        ("NOT-APPLICABLE", "skipped"),
        ("INCONCLUSIVE", "skipped"),
    }
    assert breaching_run.cases["SIG-COV-001"].text.startswith("INCONCLUSIVE: ")


def test_junit_names_the_target_as_the_class(repository: Repository, breaching: Path) -> None:
    """The class of a test case is the kit with the target, so that two targets can be told apart."""
    repository.judge(breaching, "-k", "SIG-END-001")
    case = next(ET.parse(repository.folder / "junit.xml").iter("testcase"))  # noqa: S314 - ours
    assert case.attrib["classname"] == "signet-conformance.recording"
    assert case.attrib["name"] == "SIG-END-001"
