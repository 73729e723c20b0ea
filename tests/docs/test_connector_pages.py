"""What a run decides on a connector's page comes from its report; notes stay as they were written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.tools import tool

PAGE = "# mine\n\n## Parity\n\nold\n\n## Findings\n\nold\n\n## Notes\n\n- by hand\n"
START = {"method": "POST", "path": "/api/hooks/session-start"}
FOUND = {
    "file": "/elsewhere/plain.jsonl",
    "exchanges": [2],
    "kind": "breach",
    "message": "the project is absent | blank",
}


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """A report of the target `mine`, whose one start breaches SIG-START-003, beside pages in `docs`."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "mine.md").write_text(PAGE)
    (tmp_path / "docs" / "README.md").write_text("| [mine](mine.md) | command | 1.0 | never | 7 | 7 |\n")
    folder = tmp_path / "report"
    folder.mkdir()
    step = {"kind": "mark", "seq": 1, "name": "step", "data": {"step": "start", "index": 0}}
    lines = [{"kind": "header"}, step, {"kind": "exchange", "seq": 2, "request": START}]
    (folder / "plain.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    document = {
        "kit": "0.1.0",
        "contract": "0.145",
        "run": {"created": "2026-02-03T04:05:06.789Z", "connector": "2.0"},
        "played": [{"host": "shell", "release": "7", "real": False}],
        "traces": [{"target": "mine", "operations": {"session-start": 1, "memory-list": 2}}],
        "together": {
            "SIG-START-003": {"verdict": "WARN", "findings": [FOUND]},
            "SIG-START-001": {"verdict": "PASS", "findings": []},
        },
    }
    (folder / "report.json").write_text(json.dumps(document))
    return folder


def renew(report: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """The page and the overview after the tool has read the report."""
    pages = report.parent / "docs"
    made = tool("connector_pages")
    monkeypatch.setattr(made, "PAGES", pages)
    made.renew(report)
    return (pages / "mine.md").read_text(), (pages / "README.md").read_text()


def test_a_breach_is_a_row_with_its_first_evidence(report: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page, overview = renew(report, monkeypatch)
    assert "| the project is absent \\| blank | plain #2 POST hooks/session-start, step 0 start |" in page
    assert "SIG-START-001" not in page
    assert overview == "| [mine](mine.md) | command | 2.0 | 2026-02-03 | 0 | 1 |\n"


def test_a_breach_of_the_whole_run_has_no_first_evidence(report: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = json.loads((report / "report.json").read_text())
    uncalled = {"exchanges": [], "kind": "never called", "message": "declared but never seen: session-end"}
    document["together"]["SIG-COV-001"] = {"verdict": "FAIL", "findings": [uncalled]}
    (report / "report.json").write_text(json.dumps(document))
    page, _ = renew(report, monkeypatch)
    assert "| declared but never seen: session-end | \N{EN DASH} |" in page
    assert "| session-start | partial | 1 | SIG-START-003 |" in page


def test_an_endpoint_says_its_requests_and_what_names_them(report: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page, _ = renew(report, monkeypatch)
    assert "| session-start | partial | 1 | SIG-START-003 |" in page
    assert "| session-end | never | 0 | \N{EN DASH} |" in page
    assert "Other operations: memory-list." in page


def test_notes_stay(report: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page, _ = renew(report, monkeypatch)
    assert page.endswith("## Notes\n\n- by hand\n")
    assert "old" not in page


def test_a_page_says_when_and_what_was_driven(report: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page, _ = renew(report, monkeypatch)
    driven = "connector 2.0, as shell 7 runs it, contract 0.145, kit 0.1.0, through 1 scripted scenarios."
    assert f"## Run\n\nDriven on 2026-02-03 04:05 UTC: {driven}\n" in page


def test_a_page_says_what_changed_since_the_one_before(report: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = "| FAIL | SIG-END-001 | ends once | two ends | plain #4 |\n| FAIL | SIG-START-003 | a | b | c |"
    path = report.parent / "docs" / "mine.md"
    path.write_text(PAGE.replace("## Findings\n\nold", f"## Findings\n\n{before}"))
    page, _ = renew(report, monkeypatch)
    changed = "breached no longer SIG-END-001 (FAIL); judged differently SIG-START-003 (FAIL, now WARN)"
    assert f"\n\nSince the page before: {changed}.\n\n## Parity\n" in page
    assert renew(report, monkeypatch)[0] == page, "the same run told again keeps what changed before it"
    later = json.loads((report / "report.json").read_text())
    later["run"] = {"created": "2026-03-03T04:05:06.789Z", "connector": "3.0"}
    later["together"]["SIG-START-003"]["verdict"] = "PASS"
    (report / "report.json").write_text(json.dumps(later))
    page, _ = renew(report, monkeypatch)
    releases = "connector 2.0, as shell 7 runs it, contract 0.145, kit 0.1.0"
    assert f"Since the page of 2026-02-03 ({releases}): breached no longer SIG-START-003 (WARN).\n" in page


def test_a_run_of_the_program_itself_is_refused(report: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = json.loads((report / "report.json").read_text())
    document["played"][0]["real"] = True
    (report / "report.json").write_text(json.dumps(document))
    with pytest.raises(SystemExit, match="drive it without --harness real"):
        renew(report, monkeypatch)
