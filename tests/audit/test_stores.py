"""Data sets in object stores: whatever the store does, each recording counts once, and says the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from signet_conformance.audit import stores
from signet_conformance.errors import UsageError
from tests.support.command_line import Invoke
from tests.support.data_sets import conforming, table
from tests.support.object_store import BUCKET, Trouble, object_store

COUNT = 9
OUT = Path("out")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data set that a bucket holds."""
    conforming(tmp_path / BUCKET / "day", COUNT)
    return tmp_path / BUCKET


@pytest.fixture
def trouble() -> Trouble:
    """What the store does."""
    return Trouble()


@pytest.fixture
def _served(folder: Path, trouble: Trouble, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The bucket at a loopback address, which s3fs is told by its environment; pauses between tries are short."""
    fsspec = pytest.importorskip("fsspec")
    s3fs = pytest.importorskip("s3fs")
    with object_store(folder, trouble) as address:
        told = {"endpoint_url": address, "key": "k", "secret": "s", "config_kwargs": {"retries": {"max_attempts": 0}}}
        monkeypatch.setitem(fsspec.config.conf, "s3", told)
        monkeypatch.setattr(stores, "FIRST_PAUSE_S", 0.001)
        monkeypatch.setattr(s3fs.S3FileSystem, "retries", 1)  # of its own, with pauses of its own
        stores._store_of.cache_clear()
        yield
        stores._store_of.cache_clear()
        for store in list(s3fs.S3FileSystem._cache.values()):
            if store._s3 is not None:
                fsspec.asyn.sync(store.loop, store._s3.__aexit__, None, None, None)
        s3fs.S3FileSystem.clear_instance_cache()
        _end_thread()


def _end_thread() -> None:
    """End the thread in which fsspec asks stores: tests that fork come later in this process."""
    from fsspec import asyn

    loop, thread = asyn.loop[0], asyn.iothread[0]
    if loop is not None and thread is not None:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()
    asyn.loop[0] = asyn.iothread[0] = None


@pytest.mark.usefixtures("_served")
def test_a_store_that_fails_cuts_and_stalls_loses_and_repeats_nothing(
    invoke: Invoke, folder: Path, trouble: Trouble
) -> None:
    """The results are, byte for byte, those of the same recordings on this machine."""
    trouble.turns = (429, None, 503, "cut", None, "slow", 500, 429, None)
    trouble.listing = (503, 503, None)
    result = invoke("audit", f"s3://{BUCKET}/day", "--workers", 1, "--out", "out")
    assert result.exit_code == 0, result.output
    assert set(trouble.answered) == {"429", "503", "500", "cut", "slow"}
    assert len({row["recording"] for row in table(OUT, "recordings")}) == COUNT
    invoke("audit", folder / "day", "--workers", 1, "--out", "here")
    for path in (OUT / "results").iterdir():
        assert path.read_bytes() == Path("here", "results", path.name).read_bytes(), path.name


@pytest.mark.usefixtures("_served")
def test_what_a_store_never_delivers_is_a_row(
    invoke: Invoke, trouble: Trouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Patience has an end; the recording is counted and named, and exit 2 says so."""
    monkeypatch.setattr(stores, "TRIES", 2)
    trouble.turns = (503,)
    result = invoke("audit", f"s3://{BUCKET}/day", "--workers", 1, "--out", "out")
    assert result.exit_code == 2
    assert f"unreadable (not-delivered): s3://{BUCKET}/day/0000.jsonl" in result.output
    assert [row["why"] for row in table(OUT, "recordings")] == ["not-delivered"] * COUNT


@pytest.mark.usefixtures("_served")
def test_a_glob_of_a_bucket_and_a_recording_of_it_are_shown(invoke: Invoke, folder: Path) -> None:
    """A pattern chooses objects; the command of the summary shows one though it lies elsewhere."""
    del folder
    result = invoke("audit", f"s3://{BUCKET}/d*/000[1-3].jsonl", "--workers", 1, "--out", "out")
    assert result.exit_code == 0, result.output
    first = table(OUT, "recordings")[0]["recording"]
    assert len(table(OUT, "recordings")) == 3
    assert "session-start" in invoke("audit", "show", first, "--out", "out").output


@pytest.mark.parametrize("address", ["memory://bucket/day", "memory:///bucket/day", "memory://bucket/d?y"])
def test_a_recording_is_named_below_its_data_set_however_the_store_writes_addresses(address: str) -> None:
    """A store may list objects under another spelling of the address that it was given."""
    memory = pytest.importorskip("fsspec").filesystem("memory")
    memory.pipe("/bucket/day/run.jsonl", b"{}\n")
    try:
        (listed,) = stores.recordings_of(address)
    finally:
        memory.rm("/bucket", recursive=True)
    assert listed.name == ("day/run.jsonl" if "?" in address else "run.jsonl")


def test_a_pattern_in_a_bucket_s_name_is_no_crash() -> None:
    """An address with a bracket is not read as one of IPv6."""
    pytest.importorskip("fsspec")
    with pytest.raises(UsageError):
        stores.recordings_of("memory://[bucket/x")


def test_patience_pauses_twice_as_long_each_time_and_ends() -> None:
    """What may pass is asked for again; what is so for good is not."""
    pauses: list[float] = []

    def busy() -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        stores.with_retries(busy, pauses.append)
    assert pauses == [0.1, 0.2, 0.4, 0.8]

    def gone() -> None:
        raise FileNotFoundError

    with pytest.raises(FileNotFoundError):
        stores.with_retries(gone, pauses.append)
    assert len(pauses) == stores.TRIES - 1
