"""The prose check reads docstrings and pages, names the passage and the remedy, and fails over its bound."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.tools import tool

ROOM = "conformance/signet_conformance"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / ROOM).mkdir(parents=True)
    (tmp_path / "docs").mkdir()
    return tmp_path


def run(checkout: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    status = tool("plain_english").main(["--root", str(checkout), *arguments])
    return status, capsys.readouterr().out


def test_a_docstring_over_the_bound_fails_and_is_listed_with_its_remedy(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (checkout / ROOM / "steps.py").write_text('"""Steps."""\n\ndef f() -> None:\n    """Whoever calls it."""\n')
    status, out = run(checkout, capsys, "--check", "--list")
    assert status == 1
    assert "code: 1 of 2 passages" in out
    assert f"{ROOM}/steps.py:4: Whoever calls it.  ->  the program or the person" in out


def test_plain_docstrings_pass(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (checkout / ROOM / "steps.py").write_text('"""Run the steps until one blocks."""\n')
    status, out = run(checkout, capsys, "--check")
    assert status == 0
    assert "code: 0 of 1 passages" in out


def test_code_blocks_of_a_page_are_not_prose_and_lines_keep_their_numbers(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (checkout / "docs" / "page.md").write_text("# Page\n\n```\nnobody\n```\n\n- plain\n- nobody\n  knows\n")
    _, out = run(checkout, capsys, "--list")
    assert "docs: 1 of 3 passages" in out
    assert "docs/page.md:8: - nobody knows" in out
    assert "page.md:4" not in out


def test_a_message_and_a_text_of_a_requirement_are_prose(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (checkout / ROOM / "steps.py").write_text('def f(x: str) -> None:\n    print(f"nobody has asked for {x}")\n')
    area = checkout / "schemas" / "requirements" / "START.json"
    area.parent.mkdir(parents=True)
    area.write_text('{"requirements": [{"title": "One start a session", "why": "Whoever waits, waits."}]}')
    status, out = run(checkout, capsys, "--check", "--list")
    assert status == 1
    assert "messages: 2 of 3 passages" in out
    assert f"{ROOM}/steps.py:2: nobody has asked for X" in out
