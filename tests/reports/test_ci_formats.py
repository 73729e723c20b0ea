"""What CI systems hold reports to: two schemas of JUnit files, and the most results that code scanning takes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from signet_conformance.reports import sarif
from tests.cli.conftest import invoke
from tests.support.command_line import Invoke
from tests.support.trace_files import BREACHING, CONFORMING, health, write

__all__ = ["invoke"]
SUITE = {"name", "package", "id", "hostname", "timestamp", "time", "tests", "failures", "errors", "skipped"}


@pytest.mark.parametrize("lines", [CONFORMING, BREACHING, [health()]], ids=["conforming", "breaching", "untested"])
def test_junit_files_are_valid_by_both_schemas(invoke: Invoke, tmp_path: Path, lines: list[dict[str, object]]) -> None:
    """Jenkins' junit-10.xsd knows fewer attributes, Ant's JUnit.xsd demands more and knows no output of a case."""
    invoke("check", write(tmp_path / "a.jsonl", lines), "--junit", "report.xml")
    root = ET.parse(tmp_path / "report.xml").getroot()  # noqa: S314 - our own
    assert (root.tag, root.attrib) == ("testsuites", {})
    (suite,) = root
    assert set(suite.attrib) == SUITE
    assert re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}", suite.attrib["timestamp"])
    assert all(suite.attrib[name].isdigit() for name in ("id", "time", "tests", "failures", "errors", "skipped"))
    tags = [child.tag for child in suite]
    assert tags == ["properties", *["testcase"] * int(suite.attrib["tests"]), "system-out", "system-err"]
    for case in suite.iter("testcase"):
        assert set(case.attrib) == {"name", "classname", "time"}
        assert [child.tag for child in case] in ([], ["skipped"], ["error"], ["failure"])
        assert all({"type", "message"} >= set(child.attrib) for child in case)
    for tag, count in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        assert len(list(suite.iter(tag))) == int(suite.attrib[count])


def test_what_passes_with_a_warning_stands_in_the_output_of_the_suite(invoke: Invoke, tmp_path: Path) -> None:
    """A case that passed has no place for it."""
    invoke("check", write(tmp_path / "a.jsonl", CONFORMING[1:]), "--junit", "report.xml")
    told = ET.parse(tmp_path / "report.xml").getroot().findtext("testsuite/system-out")  # noqa: S314 - our own
    assert told is not None
    assert "SIG-HEALTH-001: WARN" in told


def test_code_scanning_gets_no_more_than_it_takes(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worst are there, whatever was judged first, and the rest is counted."""
    traces = [write(tmp_path / f"{name}.jsonl", lines) for name, lines in (("a", CONFORMING[1:]), ("b", BREACHING))]

    def results() -> tuple[list[str], list[str]]:
        invoke("check", *traces, "--sarif", "report.sarif", "--force")
        (run,) = json.loads((tmp_path / "report.sarif").read_text())["runs"]
        told = [each["message"]["text"] for each in run["invocations"][0]["toolExecutionNotifications"]]
        return [result["level"] for result in run["results"]], [text for text in told if "left out" in text]

    levels, told = results()
    assert told == []
    assert levels == sorted(levels)  # error, note, warning: of these two recordings no note
    worst = levels.count("error")
    assert 0 < worst < len(levels)
    monkeypatch.setattr(sarif, "MAX_RESULTS", worst)
    fewer, told = results()
    assert fewer == levels[:worst]
    (note,) = told
    assert note.startswith(f"{len(levels) - worst} result")
    assert f"left out: code scanning takes {worst}, and the worst are here" in note
