"""The tables of a connector's page come from its report; notes stay as they were written."""

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
    (tmp_path / "docs" / "README.md").write_text("| [mine](mine.md) | command | 7 | 7 |\n")
    folder = tmp_path / "report"
    folder.mkdir()
    step = {"kind": "mark", "seq": 1, "name": "step", "data": {"step": "start", "index": 0}}
    lines = [{"kind": "header"}, step, {"kind": "exchange", "seq": 2, "request": START}]
    (folder / "plain.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    document = {
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
    assert overview == "| [mine](mine.md) | command | 0 | 1 |\n"


def test_an_endpoint_says_its_requests_and_what_names_them(report: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page, _ = renew(report, monkeypatch)
    assert "| session-start | partial | 1 | SIG-START-003 |" in page
    assert "| session-end | never | 0 | \N{EN DASH} |" in page
    assert "Beyond these: memory-list." in page


def test_notes_stay(report: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page, _ = renew(report, monkeypatch)
    assert page.endswith("## Notes\n\n- by hand\n")
    assert "old" not in page
