"""Fixtures of the plugin's tests: a repository, and recordings beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support import session_recordings
from tests.support.inner_pytest import Finished
from tests.support.repository import Case, Repository


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """An empty repository."""
    folder = tmp_path / "repository"
    folder.mkdir()
    return Repository(folder)


@pytest.fixture
def conforming(tmp_path: Path) -> Path:
    """A recording of one session that breaches nothing."""
    return session_recordings.write(tmp_path / "conforming.jsonl", session_recordings.CONFORMING)


@pytest.fixture
def imperfect(tmp_path: Path) -> Path:
    """A recording whose exchange 2 breaches SIG-START-003, a SHOULD, and nothing else."""
    return session_recordings.write(tmp_path / "imperfect.jsonl", session_recordings.IMPERFECT)


@pytest.fixture
def breaching(tmp_path: Path) -> Path:
    """A recording whose exchange 4 breaches SIG-END-001, a MUST, and exchange 2 a SHOULD."""
    return session_recordings.write(tmp_path / "breaching.jsonl", session_recordings.BREACHING)


OWNS_TARGET = """
def pytest_addoption(parser):
    parser.addoption("--target", default="production")
"""
FAILING = "def test_own():\n    assert 0, 'their own failure'\n"


@dataclass(frozen=True)
class JudgedRun:
    """A run that judged one recording, for tests that only look at what it left."""

    recording: Path
    done: Finished
    cases: Mapping[str, Case]
    repository: Repository


def _judged(folder: Path, calls: Iterable[session_recordings.Call]) -> JudgedRun:
    recording = session_recordings.write(folder / "recording.jsonl", calls)
    repository = Repository(folder / "repository")
    repository.folder.mkdir()
    return JudgedRun(recording, *repository.judge(recording), repository)


@pytest.fixture(scope="session")
def conforming_run(tmp_path_factory: pytest.TempPathFactory) -> JudgedRun:
    """The run of the recording that conforms, for all tests that only look at it."""
    return _judged(tmp_path_factory.mktemp("conforming"), session_recordings.CONFORMING)


@pytest.fixture(scope="session")
def imperfect_run(tmp_path_factory: pytest.TempPathFactory) -> JudgedRun:
    """The run of the recording with a WARN, for all tests that only look at it."""
    return _judged(tmp_path_factory.mktemp("imperfect"), session_recordings.IMPERFECT)


@pytest.fixture(scope="session")
def breaching_run(tmp_path_factory: pytest.TempPathFactory) -> JudgedRun:
    """The run of the recording with a FAIL and a WARN, for all tests that only look at it."""
    return _judged(tmp_path_factory.mktemp("breaching"), session_recordings.BREACHING)


@pytest.fixture(scope="session")
def distributed_run(tmp_path_factory: pytest.TempPathFactory) -> JudgedRun:
    """The same with two xdist workers, in a repository that owns --target and whose own tests fail; with a report."""
    folder = tmp_path_factory.mktemp("distributed")
    repository = Repository(folder / "repository")
    repository.write("conftest.py", OWNS_TARGET)
    repository.write("pytest.ini", "[pytest]\ntestpaths = tests\n")
    repository.write("tests/test_own.py", FAILING)
    recording = session_recordings.write(folder / "recording.jsonl", session_recordings.BREACHING)
    return JudgedRun(recording, *repository.judge(recording, "-n", "2", "--signet-report=report"), repository)


@pytest.fixture
def silent(tmp_path: Path) -> Path:
    """A recording of a connector that never called."""
    return session_recordings.write(tmp_path / "silent.jsonl", ())
