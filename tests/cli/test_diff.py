"""`signet-conformance diff`: output, exit status, and refusals."""

from __future__ import annotations

import json
import re
from html import escape
from pathlib import Path

import jsonschema_rs
import pytest

from tests.support.command_line import Invoke, Process
from tests.support.trace_files import end, health, recall, start, write

SCHEMA = Path(__file__).resolve().parents[2] / "schemas" / "diff" / "signet-diff-1.schema.json"


@pytest.fixture
def same(tmp_path: Path) -> Path:
    """A recording of one session."""
    return write(tmp_path / "a.jsonl", [health(), start(), recall(), end()])


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """The same session with another agent on the recall, a second recall, and another transcript."""
    lines = [health(), start(), recall(agentId="beacon"), recall(), end(transcript="User: Hello")]
    return write(tmp_path / "b.jsonl", lines)


def test_no_difference_exits_0(invoke: Invoke, same: Path) -> None:
    """A recording compared with itself has no difference."""
    result = invoke("diff", same, same)
    assert result.exit_code == 0
    assert result.output.endswith("no difference\n")


def test_two_recordings_without_an_exchange_are_not_compared(invoke: Invoke, same: Path, tmp_path: Path) -> None:
    """Two empty recordings end with 3 in every form; a single empty one is a difference."""
    empty = write(tmp_path / "empty.jsonl", [])
    for words in ((), ("-q",), ("--json",)):
        assert invoke("diff", empty, empty, *words).exit_code == 3
    assert "nothing was compared" in invoke("diff", empty, empty, "-q").output
    assert invoke("diff", same, empty).exit_code == 1
    assert invoke("diff", empty, same).exit_code == 1


def test_a_cosmetic_difference_exits_0(invoke: Invoke, same: Path, tmp_path: Path) -> None:
    """Another text is listed, and the status is 0."""
    changed = write(tmp_path / "c.jsonl", [health(), start(), recall(query="hours"), end()])
    result = invoke("diff", same, changed)
    assert result.exit_code == 0
    assert "0 contract-relevant differences, 1 cosmetic" in result.output


def test_differences_in_memories_are_folded(invoke: Invoke, same: Path, tmp_path: Path) -> None:
    """Answers that differ only in their memories are one line; --all shows each, and the page lists them separately."""
    remembering = recall()
    remembering["response"] = {"status": 200, "headers": [], "body": {"json": {"results": [{"content": "x"}]}}}
    changed = write(tmp_path / "c.jsonl", [health(), start(), remembering, end()])
    told = invoke("diff", same, changed)
    assert told.exit_code == 0
    assert "the daemon's own memories changed 1 answer: --all shows how" in told.output
    assert "answer /results" not in told.output
    assert "answer /results/0" in invoke("diff", same, changed, "--all", "--html", "d.html").output
    assert "changed</h2><details>" in (tmp_path / "d.html").read_text()


def test_a_relevant_difference_exits_1_and_leads_to_its_requirement(invoke: Invoke, same: Path, other: Path) -> None:
    """Each contract-relevant difference names its requirements and the command that explains them."""
    result = invoke("diff", same, other)
    assert result.exit_code == 1
    told = result.output.count("contract-relevant\n")
    assert (
        told
        == len(
            re.findall(
                r"^  explain +signet-conformance explain SIG-[A-Z]+-\d+( SIG-[A-Z]+-\d+)*$", result.output, re.MULTILINE
            )
        )
        > 0
    )
    assert told == len(re.findall(r"^  read by +SIG-", result.output, re.MULTILINE))


def test_json_is_what_the_schema_describes(invoke: Invoke, same: Path, other: Path) -> None:
    """--json writes signet-diff/1, and its summary counts its differences."""
    result = invoke("diff", same, other, "--json")
    document = json.loads(result.output)
    jsonschema_rs.validator_for(json.loads(SCHEMA.read_text())).validate(document)
    assert result.exit_code == 1
    relevant = [difference for difference in document["differences"] if difference["relevant"]]
    assert document["summary"] == {"relevant": len(relevant), "cosmetic": len(document["differences"]) - len(relevant)}


def test_a_pointer_leads_to_what_differs(invoke: Invoke, same: Path, other: Path) -> None:
    """The pointer of a side finds the reported value in the line of that exchange."""
    document = json.loads(invoke("diff", same, other, "--json").output)
    lines = {1: same.read_text().splitlines(), 2: other.read_text().splitlines()}
    followed = 0
    for difference in document["differences"]:
        for number, side in ((1, difference["first"]), (2, difference["second"])):
            if side is not None and "value" in side and side["exchange"] is not None:
                value = json.loads(lines[number][side["exchange"]])
                for part in side["pointer"].split("/")[1:]:
                    value = value[int(part)] if isinstance(value, list) else value[part]
                assert value == side["value"]
                followed += 1
    assert followed >= 2


def test_output_replaces_nothing_without_force(invoke: Invoke, same: Path, other: Path, tmp_path: Path) -> None:
    """--output writes a file once, and again only with --force; the closing line stays on stdout."""
    result = invoke("diff", same, other, "-o", "out.txt")
    assert result.exit_code == 1
    assert result.output.splitlines()[-1] == "differences: out.txt"
    assert "contract-relevant" in (tmp_path / "out.txt").read_text()
    assert invoke("diff", same, other, "-o", "out.txt").exit_code == 2
    assert invoke("diff", same, other, "-o", "out.txt", "--force").exit_code == 1


def test_quiet_shows_the_closing_line_alone(invoke: Invoke, same: Path, other: Path) -> None:
    """-q is one line."""
    assert len(invoke("diff", same, other, "-q").output.splitlines()) == 1


@pytest.mark.parametrize("words", [["--keep", "nope"], ["--volatile", "nope"], ["--volatile", "a=("]])
def test_options_that_cannot_be_used_exit_2(process: Process, same: Path, words: list[str]) -> None:
    """An unknown class and an invalid pattern are errors with a remedy, not a traceback."""
    result = process("diff", same, same, *words)
    assert result.returncode == 2
    assert result.stderr.startswith("error: ")
    assert "\ntry: " in result.stderr
    assert "Traceback" not in result.stderr


def test_a_file_that_is_no_trace_exits_2(process: Process, same: Path, tmp_path: Path) -> None:
    """Either side may be the unreadable one."""
    (tmp_path / "no.jsonl").write_text("hello\n")
    for first, second in ((same, "no.jsonl"), ("no.jsonl", same), (same, "gone.jsonl")):
        result = process("diff", first, second)
        assert result.returncode == 2
        assert "error: " in result.stderr


def test_hostile_text_reaches_no_terminal(process: Process, same: Path, tmp_path: Path) -> None:
    """Escapes, bidirectional marks and huge texts of a recording come out escaped and cut."""
    evil = "\x1b]0;owned\x07\u202e" + "x" * 1_000_000
    lines = [health(), start(project=evil, sessionKey=evil[:40]), recall(query=evil, **{evil[:9]: 1}), end()]
    result = process("diff", same, write(tmp_path / "evil.jsonl", lines), "--all")
    assert result.returncode == 1
    assert not set("\x1b\x07\u202e") & set(result.stdout + result.stderr)
    assert len(result.stdout) < 20_000


def test_a_pipe_and_no_color_get_plain_text(process: Process, same: Path, other: Path) -> None:
    """Without a terminal there is no colour."""
    assert "\x1b" not in process("diff", same, other).stdout


def test_a_page_replaces_neither_recording_and_is_private(invoke: Invoke, same: Path, other: Path) -> None:
    """Not even with --force; and since a page shows the content of recordings, only its owner may read it."""
    before = same.read_bytes()
    for words in (("--html", same), ("--output", same), ("--html", "d.html", "--output", "d.html")):
        assert invoke("diff", same, other, *words, "--force").exit_code == 2
    assert same.read_bytes() == before
    invoke("diff", same, other, "--html", "page.html")
    assert (same.parent / "page.html").stat().st_mode & 0o077 == 0


def test_a_call_that_one_side_lacks_is_shown(invoke: Invoke, same: Path, tmp_path: Path) -> None:
    """Its content is shown below it, in the terminal and on the page."""
    shorter = write(tmp_path / "b.jsonl", [health(), start(), end()])
    text = " ".join(invoke("diff", same, shorter, "--html", "page.html").stdout.split())
    sent = '{"query": "window", "sessionKey": "s-41c7"}'
    assert f"where POST /api/memory/recall A #3 sent {sent}" in text
    assert f"<dt>sent</dt><dd><code>{escape(sent)}</code></dd>" in Path("page.html").read_text(encoding="utf-8")


def test_a_page_has_both_bodies_and_marks_the_lines_that_differ(invoke: Invoke, same: Path, other: Path) -> None:
    """A changed member is marked in the whole body of each side; an exchange of one side has one body."""
    invoke("diff", same, other, "--html", "page.html")
    page = Path("page.html").read_text(encoding="utf-8")
    marked = re.findall("<mark>(.*?)</mark>", page)
    assert len(marked) == 2
    assert all(escape(' "transcript": "User: ') in line for line in marked)
    (added,) = (each for each in page.split("<article") if "added</span>" in each)
    assert "<summary>The body</summary>" in added
    assert added.count("<pre") == 1


def test_the_bodies_of_a_page_are_text(invoke: Invoke, same: Path, tmp_path: Path) -> None:
    """Markup and control characters in a body are shown as text."""
    hostile = write(tmp_path / "c.jsonl", [health(), start(), recall(query="<script>\u202e\u001b[1m"), end()])
    invoke("diff", same, hostile, "--html", "page.html")
    page = Path("page.html").read_text(encoding="utf-8")
    assert "<script>\\" not in page
    assert "\u202e" not in page
    assert "&lt;script&gt;" in page
