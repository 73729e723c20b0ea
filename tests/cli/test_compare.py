"""`signet-conformance compare` and `trend`: what they print, write and exit with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command_line import Invoke
from tests.support.trace_files import BREACHING, CONFORMING, HEADER, Line, recall, write


def run_of(invoke: Invoke, folder: Path, lines: list[Line], created: str) -> Path:
    """The folder of a run: a recording and its report."""
    folder.mkdir(parents=True)
    recording = write(folder / "a.jsonl", lines, {**HEADER, "created": created})
    invoke("check", recording, "--json", "--output", folder / "report.json")
    return folder


@pytest.fixture
def old(invoke: Invoke, tmp_path: Path) -> Path:
    """A run that conforms."""
    return run_of(invoke, tmp_path / "runs" / "old", CONFORMING, "2026-11-20T10:00:00Z")


@pytest.fixture
def new(invoke: Invoke, tmp_path: Path) -> Path:
    """A later run that forgets the agent of its recalls."""
    return run_of(invoke, tmp_path / "runs" / "new", BREACHING, "2026-11-21T10:00:00Z")


def test_what_is_new_fails_and_says_why(invoke: Invoke, old: Path, new: Path) -> None:
    """A new FAIL ends with 1, and is shown with the changed request and a remedy."""
    done = invoke("compare", old, new)
    text = " ".join(done.stdout.split())
    assert done.exit_code == 1
    assert "new FAIL SIG-AGENT-002 what memory-recall runs as 'default'" in text
    assert 'because request body /agentId: "atlas-agent" became nothing: it is absent' in text
    assert done.stdout.splitlines()[-1].startswith("2 new, 0 fixed, ")


def test_a_change_that_many_calls_show_is_reported_once(invoke: Invoke, tmp_path: Path) -> None:
    """Two recalls without their agent are one cause, in the terminal and in the comment."""
    twice = [CONFORMING[0], CONFORMING[1], CONFORMING[2], CONFORMING[2], CONFORMING[3]]
    before = run_of(invoke, tmp_path / "runs" / "before", twice, "2026-11-20T10:00:00Z")
    new = run_of(invoke, tmp_path / "runs" / "new", BREACHING, "2026-11-21T10:00:00Z")
    text = " ".join(invoke("compare", before, new, "--markdown", "comment.md").stdout.split())
    told = text.partition("new FAIL SIG-AGENT-002")[2].partition("page ")[0]
    assert told.count("because request body /agentId") == 1
    assert "and others like it" in told
    block = Path("comment.md").read_text(encoding="utf-8").partition("### FAIL SIG-AGENT-002")[2].partition("###")[0]
    assert block.count("**because**") == 1


def test_operations_with_the_same_breach_are_reported_together(invoke: Invoke, old: Path, tmp_path: Path) -> None:
    """A connector that no longer names its runtime path has one breach, in however many hooks it shows."""
    pathless = json.loads(json.dumps(CONFORMING))
    for line in pathless:
        line["request"]["headers"] = [["content-type", "application/json"]]
    new = run_of(invoke, tmp_path / "runs" / "new", pathless, "2026-11-21T10:00:00Z")
    done = invoke("compare", old, new, "--markdown", "comment.md")
    text = " ".join(done.stdout.split())
    assert text.count("new WARN SIG-HTTP-006") == 1
    assert "never claimed also session-start #2 where" in text
    comment = Path("comment.md").read_text(encoding="utf-8")
    assert comment.count("SIG-HTTP-006\n") == 1
    assert "- **also**: `session-start #2`" in comment or "- **also**: session-start #2" in comment


def test_a_fixed_breach_does_not_fail(invoke: Invoke, old: Path, new: Path) -> None:
    """In the other direction nothing is new: the status is 0, and both breaches are listed as fixed."""
    done = invoke("compare", new, old)
    assert done.exit_code == 0
    assert "fixed: SIG-AGENT-002 memory-recall runs as 'default'" in done.stdout


def test_a_comment_says_only_what_is_new(invoke: Invoke, old: Path, new: Path) -> None:
    """Without a new breach, one line says so; remaining breaches are a number."""
    invoke("compare", old, new, "--markdown", "comment.md")
    assert "### FAIL SIG-AGENT-002" in Path("comment.md").read_text(encoding="utf-8")
    invoke("compare", new, new, "--markdown", "same.md")
    same = Path("same.md").read_text(encoding="utf-8")
    assert "Nothing new is breached." in same
    assert "SIG-AGENT" not in same


@pytest.mark.usefixtures("new")
def test_a_trend_is_in_the_order_of_time(invoke: Invoke, old: Path) -> None:
    """Each run is a line with its changes; an unreadable report is reported, and the status is 2."""
    done = invoke("trend", old.parent)
    rows = [line.split() for line in done.stdout.splitlines()[1:]]
    assert [(row[0], row[-1]) for row in rows] == [("2026-11-20", "old"), ("2026-11-21", "new")]
    assert "+2" in rows[1]
    assert [row[3] for row in rows] == ["openclaw", "openclaw"]
    (old.parent / "broken").mkdir()
    (old.parent / "folder.json").mkdir()  # no report
    (old.parent / "broken" / "report.json").write_text("{}")
    broken = invoke("trend", old.parent)
    assert (broken.exit_code, len(broken.stdout.splitlines())) == (2, 3)
    assert "error: " in broken.stderr


@pytest.mark.usefixtures("new")
def test_a_trend_compares_a_connector_with_itself(invoke: Invoke, old: Path, tmp_path: Path) -> None:
    """A breach of another connector between two runs is neither new nor fixed in them."""
    header = {**HEADER, "created": "2026-11-20T20:00:00Z", "target": "pi"}
    (tmp_path / "runs" / "pi").mkdir()
    recording = write(tmp_path / "runs" / "pi" / "a.jsonl", BREACHING, header)
    invoke("check", recording, "--json", "--output", recording.with_name("report.json"))
    rows = [line.split() for line in invoke("trend", old.parent).stdout.splitlines()[1:]]
    assert [(row[3], row[-1]) for row in rows] == [("openclaw", "old"), ("pi", "pi"), ("openclaw", "new")]
    assert [[word for word in row if word[0] in "+-" and word[1:].isdigit()] for row in rows] == [[], [], ["+2", "-0"]]


@pytest.mark.parametrize("words", [("compare", "gone.json", "gone.json"), ("trend", "gone"), ("trend", ".")])
def test_what_is_no_report_is_refused(invoke: Invoke, words: tuple[str, ...]) -> None:
    """Another file, and a folder without a report, end with 2 and a remedy."""
    done = invoke(*words)
    assert done.exit_code == 2
    assert "\ntry: " in done.stderr


def test_a_run_without_a_report_is_compared_as_far_as_it_goes(invoke: Invoke, old: Path, tmp_path: Path) -> None:
    """Finished scenarios count; the one that was cut short does not."""
    folder = tmp_path / "killed"
    folder.mkdir()
    for name, lines in (("plain", BREACHING), ("tools", BREACHING)):
        begin = {"kind": "mark", "t": 0.5, "name": "scenario", "data": {"name": name}}
        over = {"kind": "mark", "t": 99.0, "name": "scenario_end", "data": {"name": name, "error": None}}
        write(folder / f"{name}.jsonl", [begin, *lines, *([over] if name == "plain" else [])])
    (folder / "begun.jsonl").write_text("")
    done = invoke("compare", old, folder)
    assert done.exit_code == 4, done.stderr
    assert "not judged whole" in done.stdout
    assert "judged for the first time: FAIL SIG-AGENT-002" in done.stdout
    assert "tools" not in done.stdout
    assert invoke("compare", folder, folder).stdout.splitlines()[-1].startswith("0 new, 0 fixed, ")


HIDDEN = recall(agentId="atlas-agent")
HIDDEN["request"]["body"] = {"cut": True, "size": 9, "sha256": "0" * 64, "text": "", "undecoded": "br"}


@pytest.mark.parametrize(
    ("before", "after", "status"),
    [
        ([*CONFORMING, HIDDEN], [*CONFORMING, HIDDEN], 0),
        ([*CONFORMING, HIDDEN], [*CONFORMING, HIDDEN, HIDDEN], 0),
        ([*BREACHING, HIDDEN], [*CONFORMING, HIDDEN], 0),
        (CONFORMING, [*CONFORMING, HIDDEN], 4),
        (BREACHING, [*BREACHING, HIDDEN], 4),
        ([*BREACHING, HIDDEN], [*BREACHING, HIDDEN], 0),
    ],
    ids=[
        "as before",
        "once more",
        "as before, beside a mend",
        "new",
        "new beside a known breach",
        "as before beside it",
    ],
)
def test_what_the_old_run_could_not_judge_either_fails_nothing(
    invoke: Invoke, tmp_path: Path, before: list[Line], after: list[Line], status: int
) -> None:
    """A body that only the new run could not decode ends with 4, whatever the status of the new run."""
    old = run_of(invoke, tmp_path / "old", before, "2026-11-20T10:00:00Z")
    new = run_of(invoke, tmp_path / "new", after, "2026-11-21T10:00:00Z")
    done = invoke("compare", old, new, "--markdown", "comment.md")
    assert done.exit_code == status, done.stdout
    told = "not judged any more: not decoded, POST memory-recall, in recordings"
    assert (told in done.stdout) is (status == 4)
    assert (told in Path("comment.md").read_text(encoding="utf-8")) is (status == 4)


def test_a_recording_that_cannot_be_read_any_more_ends_with_2(invoke: Invoke, old: Path, tmp_path: Path) -> None:
    """The report names it; if the old run could not read it either, nothing is lost."""
    new = tmp_path / "new"
    new.mkdir()
    recording = write(new / "a.jsonl", CONFORMING)
    (new / "b.jsonl").write_text("no recording\n")
    checked = invoke("check", recording, new / "b.jsonl", "--json", "--output", new / "report.json")
    assert checked.exit_code == 2
    done = invoke("compare", old, new)
    assert done.exit_code == 2, done.stdout
    assert "could not be read: " in " ".join(done.stdout.split())
    assert "b.jsonl:1" in done.stdout
    assert invoke("compare", new, new).exit_code == 0


def scenario(folder: Path, name: str, lines: list[Line], error: str | None = None) -> None:
    """The recording of a scenario, which may be broken off."""
    folder.mkdir(exist_ok=True)
    begin = {"kind": "mark", "t": 0.5, "name": "scenario", "data": {"name": name}}
    over = {"kind": "mark", "t": 99.0, "name": "scenario_end", "data": {"name": name, "error": error}}
    write(folder / f"{name}.jsonl", [begin, *lines, over])


@pytest.mark.parametrize(
    ("before", "after", "status"),
    [
        ({"plain": None, "tools": "died"}, {"plain": None, "tools": "died"}, 0),
        ({"plain": None, "tools": None}, {"plain": None, "tools": "died"}, 4),
        ({"plain": "died", "tools": None}, {"plain": None, "tools": "died"}, 4),
        ({"plain": None, "tools": "died"}, {"plain": None, "tools": None}, 0),
        ({"plain": None}, {"plain": None, "tools": "died"}, 0),
    ],
    ids=["as before", "anew", "another one", "fixed", "one that is new"],
)
def test_a_scenario_that_broke_off_before_too_fails_nothing(
    invoke: Invoke, tmp_path: Path, before: dict[str, str | None], after: dict[str, str | None], status: int
) -> None:
    """A scenario that only the old run could judge is named, and the status is 4."""
    for name, performed in (("old", before), ("new", after)):
        for each, error in performed.items():
            scenario(tmp_path / name, each, CONFORMING, error)
        files = sorted((tmp_path / name).glob("*.jsonl"))
        invoke("check", *files, "--json", "--output", tmp_path / name / "report.json")
    done = invoke("compare", tmp_path / "old", tmp_path / "new")
    assert done.exit_code == status, done.stdout
    assert ("not judged any more: scenario tools" in done.stdout) is (status == 4)


def test_a_report_without_reasons_is_judged_by_its_status(invoke: Invoke, old: Path, tmp_path: Path) -> None:
    """A report of an earlier kit says only that not everything was judged."""
    folder = run_of(invoke, tmp_path / "earlier", CONFORMING, "2026-11-20T10:00:00Z")
    document = json.loads((folder / "report.json").read_text())
    del document["lacks"]
    (folder / "report.json").write_text(json.dumps({**document, "exit": 4}))
    assert invoke("compare", old, folder).exit_code == 4
    assert invoke("compare", folder, folder).exit_code == 0
    assert invoke("compare", folder, old).exit_code == 0
