"""Runs: what they measure, what is kept when one ends early, and errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from signet_reference_harness.bench.command import own_suite
from signet_reference_harness.bench.log import NAME, BenchFailureError
from signet_reference_harness.bench.result import write_text
from signet_reference_harness.errors import ConfigError
from tests.reference_harness.bench.suites import data, hut_lines, result, run
from tests.reference_harness.recording_daemon import RECALL, REMEMBER, Answer, RecordingDaemon
from tests.support.small_files import small_files


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No Signet variable is set."""
    for name in ("SIGNET_TOKEN", "SIGNET_API_KEY", "SIGNET_DAEMON_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("subject", ["fts5", "bm25s", "recent"])
def test_a_baseline_ranks_the_facts_of_its_scenario(subject: str, tmp_path: Path) -> None:
    """Each question has its ranks; one without evidence is listed separately, and assertions do not apply."""
    assert run(hut_lines(), tmp_path / "out", subject=subject) == 0
    written = result(tmp_path / "out")
    assert written["overall"]["questions"] == 9
    assert len(written["questions_without_evidence"]) == 3
    assert written["assertions"] == {"held": 0, "failed": 0}
    ranks = [question["rank"] for question in written["questions"]]
    assert ranks == ([4, 3, 2] * 3 if subject == "recent" else [1] * 9)


def test_the_own_suite_holds_on_the_embedded_daemon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Assertions on compaction, agents, sessions and forgetting hold; figures and times are printed."""
    monkeypatch.chdir(tmp_path)
    assert run([], tmp_path / "out", suite=None, clock="fixed") == 0
    written = result(tmp_path / "out")
    assert written["assertions"] == {"held": own_suite().counts()["assertions"], "failed": 0}
    assert written["subject"]["kind"] == "embedded"
    assert 0 < written["overall"]["figures"]["mrr@10"] < written["overall"]["figures"]["hit@10"] < 1
    printed = capsys.readouterr().out
    assert "hit@10" in printed
    assert "memory-recall" in printed
    assert list((tmp_path / "out" / "databases").iterdir()) == []


def test_a_run_killed_at_any_moment_comes_to_the_same_figures(tmp_path: Path) -> None:
    """After any part of the log, the same command continues to an equal result."""
    whole = tmp_path / "whole"
    assert run(hut_lines(), whole, subject="fts5") == 0
    log = (whole / NAME).read_bytes()
    for number, cut in enumerate(range(0, len(log), len(log) // 15)):
        out = tmp_path / str(number)
        out.mkdir()
        (out / NAME).write_bytes(log[:cut])
        assert run(hut_lines(), out, subject="fts5") == 0
        assert (out / "result.json").read_bytes() == (whole / "result.json").read_bytes(), cut


def test_a_finished_run_is_not_done_again(tmp_path: Path) -> None:
    """Its log has every database, so nothing is added."""
    out = tmp_path / "out"
    run(hut_lines(), out, subject="fts5")
    before = (out / NAME).read_bytes()
    assert run(hut_lines(), out, subject="fts5") == 0
    assert (out / NAME).read_bytes() == before


def test_a_folder_takes_one_run(tmp_path: Path) -> None:
    """Another subject, suite or setting needs another folder."""
    run(hut_lines(), tmp_path / "out", subject="fts5")
    for given in ({"subject": "recent"}, {"subject": "fts5", "limit": 3}):
        with pytest.raises(ConfigError, match="holds another run"):
            run(hut_lines(), tmp_path / "out", **given)
    with pytest.raises(ConfigError, match="holds another run"):
        run(hut_lines(4), tmp_path / "out", subject="fts5")


def test_a_full_disk_ends_a_run_that_can_go_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The status is 1, the message names the file, and the written records count."""
    (tmp_path / "huts.jsonl").write_bytes(data(hut_lines()))
    with small_files(2048):
        assert run(hut_lines(), tmp_path / "out", subject="fts5") == 1
    said = capsys.readouterr().err
    assert NAME in said
    assert "File too large" in said
    assert "run the same command again: it continues" in said
    assert run(hut_lines(), tmp_path / "out", subject="fts5") == 0
    assert result(tmp_path / "out")["overall"]["questions"] == 9


def test_a_result_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    """A missing folder is an error that names the file; no part of it is left."""
    with pytest.raises(BenchFailureError, match=r"gone/result.json: cannot be written"):
        write_text("x", tmp_path / "gone" / "result.json")
    assert list(tmp_path.iterdir()) == []


def test_a_daemon_at_a_url_is_written_to_only_when_that_is_allowed(
    daemon: RecordingDaemon, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its workspace is printed first; without consent only /health is called."""
    daemon.always["/health"] = Answer({"status": "healthy", "agentsDir": "/home/ann/.agents"})
    with pytest.raises(ConfigError, match=r"its workspace is /home/ann/.agents"):
        run(hut_lines(1), tmp_path / "out", daemon=daemon.origin)
    assert daemon.paths() == []
    assert not (tmp_path / "out").exists()
    assert run(hut_lines(1), tmp_path / "out", daemon=daemon.origin, allow_writes=True) == 1
    assert "/home/ann/.agents" in capsys.readouterr().err
    agents = {request.body["agentId"] for request in daemon.requests if request.path == REMEMBER}
    assert len(agents) == 1
    assert agents.pop().startswith("bench-valley-0-")


@pytest.mark.parametrize("path", [REMEMBER, RECALL])
def test_a_daemon_that_dies_is_told_with_the_line(
    path: str, daemon: RecordingDaemon, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The status is 1; earlier answers are in the log, and the run can be continued."""
    good = Answer({"id": "m-1"}) if path == REMEMBER else Answer({"results": []})
    daemon.answers[path] = [good, Answer(fault="reset"), Answer(fault="reset")]
    assert run(hut_lines(1), tmp_path / "out", daemon=daemon.origin, allow_writes=True) == 1
    said = capsys.readouterr().err
    line = 4 if path == REMEMBER else 8
    assert f"scenario valley-0, line {line}: the daemon is gone: " in said
    assert "the same command" in said
    questions = [json.loads(text) for text in (tmp_path / "out" / NAME).read_text().splitlines()]
    assert sum(each["kind"] == "question" for each in questions) == (0 if path == REMEMBER else 1)
    assert not (tmp_path / "out" / "result.json").exists()


def test_a_refusal_of_the_daemon_is_told_with_the_line(
    daemon: RecordingDaemon, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A refused save would falsify every later figure: the run ends."""
    daemon.answers[REMEMBER] = [Answer({"error": "frozen"}, 503)]
    assert run(hut_lines(1), tmp_path / "out", daemon=daemon.origin, allow_writes=True) == 1
    assert "line 3: the daemon refused or broke off: hooks-remember: http: status 503 frozen" in capsys.readouterr().err


def test_a_failed_assertion_is_told_and_is_the_exit_status(
    daemon: RecordingDaemon, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its line and the missing memory are printed."""
    daemon.always[REMEMBER] = Answer({"ids": ["m-1"]})
    assert run(hut_lines(1), tmp_path / "out", daemon=daemon.origin, allow_writes=True) == 1
    assert "line 7, scenario valley-0: red is missing" in capsys.readouterr().out


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    """The error names it, before anything is started."""
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"file/out: Not a directory"):
        run(hut_lines(1), tmp_path / "file" / "out", subject="fts5", suite=None)


def test_an_unknown_subject_is_refused(tmp_path: Path) -> None:
    """The error lists the known ones."""
    with pytest.raises(ConfigError) as raised:
        run(hut_lines(1), tmp_path / "out", subject="elastic")
    assert "fts5" in str(raised.value.remedy)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"subject": "fts5", "daemon": "x"}, "both say what is measured"),
        ({"subject": "fts5", "clock": "fixed"}, "only the embedded daemon's clock"),
        ({"subject": "fts5", "record": True}, "--record: a baseline has no daemon"),
        ({"subject": "fts5", "from_db": Path(__file__)}, "--from-db .* is not an SQLite database|has no daemon"),
        ({"daemon": "a 'b"}, "No closing quotation"),
        ({"daemon": " "}, "--daemon is empty"),
        ({"daemon": "http://127.0.0.1:99999"}, "--daemon is not an http or https URL"),
        ({"daemon": "http://"}, "--daemon is not an http or https URL"),
        ({"judge": "x:y"}, "--judge without a model"),
        ({"answer": True, "model": "m", "judge": "nowhere:X"}, "--judge: cannot be made from nowhere:X"),
    ],
)
def test_options_that_contradict_each_other_are_refused(given: dict[str, Any], told: str, tmp_path: Path) -> None:
    """Before anything is started or written, with a remedy."""
    with pytest.raises(ConfigError, match=told) as raised:
        run(hut_lines(1), tmp_path / "out", **given)
    assert raised.value.remedy
    assert not (tmp_path / "out").exists()


def test_an_embedded_daemon_of_no_known_version_is_wrong_usage(tmp_path: Path) -> None:
    """An unknown version is wrong usage, not a failed assertion of the suite; the error names the known versions."""
    with pytest.raises(ConfigError, match=r"--subject embedded:9: .*'9' is not one of '0.58'") as raised:
        run(hut_lines(1), tmp_path / "out", subject="embedded:9")
    assert raised.value.remedy == "name a version that it knows, or leave it out"


@pytest.mark.parametrize(
    ("command", "told"), [("false", "ended before it answered"), ("./nothing", "cannot be started: ./nothing")]
)
def test_a_command_that_starts_no_daemon_is_told(
    command: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error has the program's last output and a remedy."""
    assert run(hut_lines(1), tmp_path / "out", daemon=command) == 1
    said = capsys.readouterr().err
    assert told in said
    assert "SIGNET_PORT" in said
