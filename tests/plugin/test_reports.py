"""What a run leaves for programs: the JSON report and the JUnit file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import jsonschema
import pytest

from signet_conformance.contract import document, requirements

from .conftest import JudgedRun
from .repository import Repository

SCHEMA = "report/signet-report-1.schema.json"


def report_in(folder: Path) -> dict[str, Any]:
    """The report, checked against its schema."""
    report: dict[str, Any] = json.loads((folder / "report.json").read_bytes())
    jsonschema.Draft202012Validator(document(SCHEMA)).validate(report)
    return report


@pytest.mark.parametrize("distributed", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_report_says_what_the_items_said(repository: Repository, breaching: Path, distributed: tuple[str, ...]) -> None:
    """The report meets its schema, and has the verdicts and the status of the run."""
    done, found = repository.judge(breaching, "--signet-report", "out/report", *distributed)
    report = report_in(repository.folder / "out" / "report")
    assert report["exit"] == done.status == 1
    assert [one["file"] for one in report["traces"]] == [str(breaching)]
    assert {name: one["verdict"] for name, one in report["together"].items()} == {
        name: case.verdict for name, case in found.items()
    }
    assert f"report: {repository.folder / 'out' / 'report' / 'report.json'}" in done.out


def test_report_goes_into_an_empty_folder_that_is_there(repository: Repository, conforming: Path) -> None:
    """A folder that exists and is empty takes the report."""
    (repository.folder / "report").mkdir()
    assert repository.judge(conforming, "--signet-report", "report")[0].status == 0
    assert report_in(repository.folder / "report")["exit"] == 0


def test_second_report_overwrites_nothing(repository: Repository, conforming: Path, breaching: Path) -> None:
    """A run with the folder of an earlier report ends with 2 and leaves that report as it was."""
    assert repository.judge(conforming, "--signet-report", "report")[0].status == 0
    first = (repository.folder / "report" / "report.json").read_bytes()
    done = repository.conform("--signet-trace", breaching, "--signet-report", "report")
    assert done.status == 2
    assert "is not empty" in done.err
    assert (repository.folder / "report" / "report.json").read_bytes() == first


def test_own_failing_test_is_the_status_of_the_report(repository: Repository, conforming: Path) -> None:
    """The report's status is that of the run."""
    repository.write("test_own.py", "def test_own():\n    assert 0\n")
    done, _ = repository.judge(conforming, "--signet-report", "report", "test_own.py")
    assert report_in(repository.folder / "report")["exit"] == done.status == 1


def test_junit_holds_every_verdict(breaching_run: JudgedRun) -> None:
    """Each requirement is a test case of its own name, with its verdict as a property."""
    assert list(breaching_run.found) == list(requirements())
    assert {(case.verdict, case.outcome) for case in breaching_run.found.values()} == {
        ("PASS", "passed"),
        ("FAIL", "failure"),
        ("WARN", "passed"),
        ("NOT-APPLICABLE", "skipped"),
        ("INCONCLUSIVE", "skipped"),
    }
    assert breaching_run.found["SIG-COV-001"].text.startswith("INCONCLUSIVE: ")


def test_junit_names_the_target_as_the_class(repository: Repository, breaching: Path) -> None:
    """The class of a test case is the kit with the target, so that two targets can be told apart."""
    repository.judge(breaching, "-k", "SIG-END-001")
    case = next(ET.parse(repository.folder / "junit.xml").iter("testcase"))  # noqa: S314 - ours
    assert case.attrib["classname"] == "signet-conformance.recording"
    assert case.attrib["name"] == "SIG-END-001"
