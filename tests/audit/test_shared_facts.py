"""Rules between recordings: what no recording shows alone, and what a recording alone would be blamed for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command_line import Invoke
from tests.support.data_sets import begun, breached, conforming, ended, header, prompt, put, save, table


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data set that conforms, to be made worse."""
    return conforming(tmp_path / "set", 3)


def audited(invoke: Invoke, folder: Path) -> set[tuple[str, str]]:
    """What an audit of a data set finds breached."""
    result = invoke("audit", folder, "--workers", 1, "--out", "out")
    assert result.exit_code in (0, 1), result.output
    return breached(Path("out"))


def test_sessions_with_keys_of_their_own_breach_nothing_between_recordings(invoke: Invoke, folder: Path) -> None:
    """Even if two recorders see them at the same time."""
    put(folder, "beside.jsonl", header("r-beside", 0), [*begun("s-beside"), *ended("s-beside")])
    assert audited(invoke, folder) == set()


def test_a_session_that_is_split_over_files_is_joined_before_its_end_counts(invoke: Invoke, folder: Path) -> None:
    """The first file lacks the end and the second the start: of the session as a whole, nothing is missing."""
    put(folder, "a.jsonl", header("r-1", 100), begun("s-split"))
    put(folder, "b.jsonl", header("r-1", 110), [prompt("s-split", known=False), *ended("s-split")])
    assert audited(invoke, folder) == set()
    rows = {row["recording"]: row for row in table(Path("out"), "recordings")}
    parts = [rows[row["recording"]] for row in table(Path("out"), "sessions") if row["starts"] != row["ends"]]
    assert len(parts) == 2
    assert all("SIG-END-005" in row["passed"] or not row["failed"] + row["warned"] for row in parts)


def test_without_its_second_file_a_split_session_lacks_its_end(invoke: Invoke, folder: Path) -> None:
    """What is joined is what would be blamed."""
    put(folder, "a.jsonl", header("r-1", 100), begun("s-split"))
    assert audited(invoke, folder) == {("SIG-END-005", "alone")}


def test_a_split_session_that_never_ends_is_blamed_where_it_stops(invoke: Invoke, folder: Path) -> None:
    """Its last part alone holds no start, so alone it would owe no end."""
    put(folder, "a.jsonl", header("r-1", 100), begun("s-split"))
    put(folder, "b.jsonl", header("r-1", 110), [prompt("s-split")])
    assert audited(invoke, folder) == {("SIG-END-005", "between")}
    (row,) = (row for row in table(Path("out"), "breaches") if row["between"])
    assert row["exchanges"] == [1]


def test_one_key_on_two_recorders_at_one_time_is_warned_of(invoke: Invoke, folder: Path) -> None:
    """Each recording conforms; together they show that two sessions share a key."""
    for recorder in ("r-1", "r-2"):
        put(folder, f"{recorder}.jsonl", header(recorder, 100), [*begun("s-shared"), *ended("s-shared")])
    assert audited(invoke, folder) == {("SIG-SESS-001", "between")}


def test_a_session_that_is_resumed_later_is_not_two(invoke: Invoke, folder: Path) -> None:
    """A recorder that was started again is another one: the same key after the end of the first is a resume."""
    for recorder, minute in (("r-1", 100), ("r-2", 160)):
        put(folder, f"{recorder}.jsonl", header(recorder, minute), [*begun("s-resumed"), *ended("s-resumed")])
    assert audited(invoke, folder) == set()


def test_one_key_for_two_projects_on_two_recorders_is_warned_of(invoke: Invoke, folder: Path) -> None:
    """At whatever time: one session has one project."""
    for recorder, minute in (("r-1", 100), ("r-2", 160)):
        project = f"/srv/{recorder}"
        lines = [*begun("s-shared", project=project), *ended("s-shared")]
        lines[-1]["request"]["body"]["json"]["cwd"] = project
        put(folder, f"{recorder}.jsonl", header(recorder, minute), lines)
    assert audited(invoke, folder) == {("SIG-SESS-001", "between")}


@pytest.mark.parametrize(("second", "expected"), [("B", {("SIG-REM-002", "between")}), ("A", set())])
def test_one_idempotency_key_for_two_contents_is_warned_of(
    invoke: Invoke, folder: Path, second: str, expected: set[tuple[str, str]]
) -> None:
    """The daemon answers the second with the row of the first; the same content twice is what the key is for."""
    for number, content in enumerate(("A", second)):
        key = f"s-save-{number}"
        lines = [*begun(key), save(key, "note-1", f"Content {content}"), *ended(key)]
        put(folder, f"save-{number}.jsonl", header(f"r-save-{number}", 100 + number), lines)
    assert audited(invoke, folder) == expected
