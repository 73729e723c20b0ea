"""A sweep runs a suite with several settings, and shows their figures side by side."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from signet_reference_harness.bench.command import perform_sweep, read_sweep
from signet_reference_harness.errors import HarnessError

from .suites import hut_lines


def sweep_file(folder: Path, text: str) -> Path:
    """The settings file, beside a suite of huts."""
    (folder / "huts.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in hut_lines()))
    path = folder / "settings.yaml"
    path.write_text(text)
    return path


def test_each_setting_is_a_row_with_intervals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Table, document and plot have all settings; finished runs are not repeated."""
    path = sweep_file(
        tmp_path, "suite: huts.jsonl\nruns:\n  words: {subject: fts5}\n  newest: {subject: recent, limit: 2}\n"
    )
    assert perform_sweep(path, tmp_path / "out", jobs=1, quiet=True, page_file=tmp_path / "plot.html") == 0
    shown = capsys.readouterr().out
    assert [line.split()[0] for line in shown.splitlines()] == [
        *("run", "words", "newest"),
        "newest:",
        *("mrr@10", "first", "hut"),
    ]
    assert shown.count(" to ") == 5, "two figures of each run, and their difference"
    kept = json.loads((tmp_path / "out" / "sweep.json").read_text())["runs"]
    assert kept["words"]["figures"]["hit@10"] >= kept["newest"]["figures"]["hit@10"]
    assert "words" in (tmp_path / "plot.html").read_text()
    log = (tmp_path / "out" / "words" / "log.jsonl").read_bytes()
    assert perform_sweep(path, tmp_path / "out", jobs=1, quiet=True, page_file=None) == 0
    assert (tmp_path / "out" / "words" / "log.jsonl").read_bytes() == log
    assert capsys.readouterr().out == shown


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("runs: {}", "runs"),
        ("runs: {a: {subjekt: fts5}}", "subjekt"),
        ("runs: {../a: {subject: fts5}}", "cannot be a folder"),
        ("runs: {a: {subject: fts5, agent: {}}}", "only a daemon of its own reads 'agent'"),
        ("runs: [", "settings.yaml"),
    ],
)
def test_settings_that_cannot_be_used_are_named(tmp_path: Path, text: str, told: str) -> None:
    """The error names the file and the problem."""
    with pytest.raises(HarnessError) as refused:
        read_sweep(sweep_file(tmp_path, text))
    assert told in refused.value.message
