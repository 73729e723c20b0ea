"""A run does not touch the user's own Signet, and parallel runs do not affect each other."""

from __future__ import annotations

import asyncio
import hashlib
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from signet_reference_harness import guardian
from signet_reference_harness.bench.daemons import DaemonOptions, EmbeddedDaemon
from signet_reference_harness.bench.log import BenchFailureError, Record
from signet_reference_harness.bench.performing import perform
from signet_reference_harness.bench.programs import Database, DatabaseFolder
from signet_reference_harness.errors import ConfigError
from tests.reference_harness.bench.suites import hut_lines, suite
from tests.support.processes import Watched, descendants


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of a Signet user, with a database that is not empty."""
    folder = tmp_path / "home"
    memory = folder / ".agents" / "memory"
    memory.mkdir(parents=True)
    with sqlite3.connect(memory / "memories.db") as database:
        database.execute("CREATE TABLE memories (content TEXT)")
        database.execute("INSERT INTO memories VALUES ('the real life of Ann')")
    database.close()
    (folder / ".agents" / "AGENTS.md").write_text("Ann's own rules")
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("SIGNET_PATH", str(folder / ".agents"))
    monkeypatch.setenv("SIGNET_WORKSPACE", str(folder / ".agents"))
    return folder


def hashes(folder: Path) -> dict[str, str]:
    """The hash of every file in a folder."""
    return {
        str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def open_files(processes: Iterable[int]) -> Iterator[Path]:
    """The files that processes have open."""
    for process in processes:
        for entry in Path(f"/proc/{process}/fd").glob("*"):
            target = entry.readlink()
            if target.is_absolute() and target.is_file():
                yield target


def test_daemons_of_a_run_keep_to_their_folders(home: Path, tmp_path: Path) -> None:
    """Two parallel daemons have files and memories of their own, and touch no file of the user."""
    before = hashes(home)
    running_before = descendants(os.getpid())  # other tests of this process may have a daemon too
    scenario_runs = suite(hut_lines(2)).scenario_runs
    notes: dict[int, list[Record]] = {0: [], 1: []}
    opened_files: list[Path] = []

    async def hold(number: int, met: asyncio.Barrier) -> None:
        subject = EmbeddedDaemon(None, DaemonOptions(limit=10))
        async with subject.open(tmp_path / f"run-{number}", "same name", 1) as opened:
            await perform(
                scenario_runs[number], opened.player(scenario_runs[number]), notes[number].append, lambda: None
            )
            await met.wait()
            if number == 0:
                opened_files.extend(open_files(descendants(os.getpid()) - running_before))
            await met.wait()

    async def both() -> None:
        met = asyncio.Barrier(2)
        async with asyncio.TaskGroup() as group:
            group.create_task(hold(0, met))
            group.create_task(hold(1, met))

    asyncio.run(both())
    assert hashes(home) == before
    databases = [file for file in opened_files if file.name.startswith("memories.db")]
    assert {file.relative_to(tmp_path).parts[0] for file in databases} == {"run-0", "run-1"}
    assert not [file for file in opened_files if file.is_relative_to(home)]
    for number in (0, 1):
        items = {row[0] for note in notes[number] if note["kind"] == "question" for row in note["rows"]}
        assert items
        assert not [item for item in items if item.startswith("other:")]


def test_a_program_of_a_run_sees_no_place_of_the_user(home: Path, tmp_path: Path) -> None:
    """Home, workspace and settings are in the run's folder, and no Signet variable of the user is passed on."""
    environment = DatabaseFolder(tmp_path / "run").environment()
    assert not [name for name, value in environment.items() if str(home) in value]
    assert environment["SIGNET_PATH"].startswith(str(tmp_path / "run"))
    assert environment["HOME"].startswith(str(tmp_path / "run"))


def test_a_database_to_begin_with_is_only_read(home: Path, tmp_path: Path) -> None:
    """It is opened for reading, never by SQLite, and the copy has the same content."""
    path = home / ".agents" / "memory" / "memories.db"
    events: list[tuple[str, Any]] = []
    watching = True

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if watching and event in {"open", "sqlite3.connect"}:
            events.append((event, args))

    sys.addaudithook(hook)
    before = hashes(home)
    place = DatabaseFolder(tmp_path / "run")
    place.prepare(Database.load(path), "memory/memories.db")
    watching = False
    assert hashes(home) == before
    touched = [args for event, args in events if event == "open" and str(home) in str(args[0])]
    assert touched
    assert all(flags & os.O_ACCMODE == os.O_RDONLY for _, _, flags in touched)
    assert not [event for event, _ in events if event == "sqlite3.connect"]
    copy = sqlite3.connect(place.workspace / "memory" / "memories.db")
    assert copy.execute("SELECT content FROM memories").fetchall() == [("the real life of Ann",)]
    copy.close()


def test_a_database_that_is_written_meanwhile_is_refused(home: Path, tmp_path: Path) -> None:
    """A copy with half of a change would be neither the old nor the new database."""
    path = home / ".agents" / "memory" / "memories.db"
    database = Database.load(path)
    path.write_bytes(path.read_bytes() + b"\0" * 4096)
    with pytest.raises(BenchFailureError, match="was changed while the run read it"):
        DatabaseFolder(tmp_path / "run").prepare(database, "memories.db")


@pytest.mark.parametrize("content", [None, b"", b"not a database at all"])
def test_a_file_without_a_database_is_refused(content: bytes | None, tmp_path: Path) -> None:
    """Before anything is started."""
    path = tmp_path / "memories.db"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"--from-db .*memories.db: "):
        Database.load(path)


def test_what_a_run_started_ends_with_it() -> None:
    """However the run ends, its programs get the end of their standard input, and are killed as a group."""
    keeper = subprocess.Popen(
        [
            *(sys.executable, "-I", "-S", guardian.__file__, "0", "5"),
            *("sh", "-c", "sleep 600 & echo '{}'; wait"),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert keeper.stdin is not None
    assert keeper.stdout is not None
    assert keeper.stdout.readline() == b"{}\n"
    with Watched(descendants(keeper.pid)) as children:
        assert len(children) == 2
        keeper.stdin.close()
        assert children.left() == []
    keeper.wait()
    keeper.stdout.close()
