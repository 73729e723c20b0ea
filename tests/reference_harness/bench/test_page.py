"""The page on the benchmark: its suite is valid, and its commands run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from signet_reference_harness.bench.pairs import read_pairs
from signet_reference_harness.cli import commands

PAGE = Path(__file__).parents[3] / "docs" / "harness" / "bench.md"


def test_the_commands_of_the_page_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each marked command runs on the page's suite, and its output is as shown."""
    text = PAGE.read_text("utf-8")
    monkeypatch.chdir(tmp_path)
    (lines,) = re.findall(r"```jsonl\n(.*?)```", text, re.DOTALL)
    Path("suite.jsonl").write_text(lines)
    blocks = re.findall(r"<!-- executed -->\n```sh\n(.*?)```", text, re.DOTALL)
    for command in "".join(blocks).splitlines():
        program, *words = shlex.split(command)
        assert program == "signet-harness"
        assert commands.main(words, prog_name=program, standalone_mode=False) == 0
    said = capsys.readouterr().out
    assert "suite.jsonl: hut: scenarios: 1, databases: 1, facts: 5" in said
    (shown,) = re.findall(r"```text\n(hut: .*?)```", text, re.DOTALL)
    printed = set(said.splitlines())
    assert [line for line in shown.splitlines() if line not in printed] == [], "the page shows what is printed"
    assert Path("comparison.html").is_file()
    assert len(list(read_pairs(Path("pairs.jsonl")))) == 4
