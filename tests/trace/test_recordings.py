"""A recording is the same whether it is plain, packed or comes through a pipe; damage and bombs are refused."""

from __future__ import annotations

import gzip
import os
import threading
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from signet_conformance.errors import TraceError
from signet_conformance.trace import Trace, read, recordings
from signet_conformance.trace.recordings import MODEL_SUFFIX, daemon_side, model_side, open_recording, recordings_in

PACKED = {".gz": gzip.compress, ".zst": zstandard.ZstdCompressor().compress}


def lines(count: int) -> bytes:
    """A recording of so many exchanges, none like another, which packs badly."""
    noise = "".join(f"{zlib.crc32(str(number).encode()):08x}" for number in range(400))
    exchange = (
        '{"kind":"exchange","seq":%d,"t0":0,"t1":1,"request":{"method":"GET","path":"/health","headers":[["x","%s"]]}}'
    )
    written = (exchange % (number, noise[number % 1000 :][:1500]) for number in range(1, count + 1))
    return "\n".join(['{"kind":"header","format":"signet-trace/1"}', *written, ""]).encode()


def numbers(trace: Trace) -> list[int]:
    """The numbers of the exchanges that were read."""
    return [exchange.seq for exchange in trace.exchanges]


@pytest.mark.parametrize("suffix", PACKED)
def test_packed_recording_is_read_as_the_plain_one(tmp_path: Path, suffix: str) -> None:
    """What is packed tells the same exchanges, whatever its name says."""
    for name in (f"a.jsonl{suffix}", "plain.jsonl"):
        file = tmp_path / name
        file.write_bytes(PACKED[suffix](lines(30)))
        assert numbers(read(file)) == list(range(1, 31))


@pytest.mark.parametrize("pack", PACKED.values())
def test_streams_one_after_the_other_are_one_recording(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    """Packed pieces that were appended to each other are read as one file, and zeros at the end mean nothing."""
    whole = lines(20)
    file = tmp_path / "a.jsonl"
    file.write_bytes(pack(whole[:5000]) + pack(whole[5000:]) + bytes(512))
    assert numbers(read(file)) == list(range(1, 21))


def test_packed_file_that_ends_early_is_a_torn_recording(tmp_path: Path) -> None:
    """What a packed file holds before it is cut off counts, and a warning tells that it was cut."""
    file = tmp_path / "a.jsonl.gz"
    packed = gzip.compress(lines(200))
    file.write_bytes(packed[: len(packed) // 2])
    torn = read(file)
    assert 10 < len(torn.exchanges) < 200
    assert "torn" in torn.warnings[0]
    file.write_bytes(packed[:-4])
    (warning,) = read(file).warnings
    assert "the gzip data ends early" in warning


def test_nothing_of_a_cut_file_can_be_unpacked(tmp_path: Path) -> None:
    """A zstd file that is cut within its only block says so, and not that it is empty."""
    file = tmp_path / "a.jsonl.zst"
    file.write_bytes(PACKED[".zst"](lines(5))[:100])
    with pytest.raises(TraceError, match="ends before anything of it could be unpacked"):
        read(file)


@pytest.mark.parametrize("suffix", PACKED)
def test_damage_is_told_with_its_place(tmp_path: Path, suffix: str) -> None:
    """Damage before the end of a packed file is an error that names the file and about where it is."""
    packed = PACKED[suffix](lines(3000))
    damaged = packed[: len(packed) // 2] + b"\xff" * 40 + packed[len(packed) // 2 + 40 :]
    file = tmp_path / f"a.jsonl{suffix}"
    file.write_bytes(damaged)
    with pytest.raises(TraceError) as caught:
        read(file)
    assert f"a.jsonl{suffix}" in str(caught.value.where)
    assert caught.value.remedy


def test_small_file_that_unpacks_to_very_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that unpacks to more than any recording does is refused before it fills the disk."""
    monkeypatch.setattr(recordings, "_ALWAYS_FITS_BYTES", 1 << 20)
    file = tmp_path / "a.jsonl.zst"
    file.write_bytes(PACKED[".zst"](bytes(200 << 20)))
    with pytest.raises(TraceError, match="unpacks to more than 250 times its size"):
        read(file)


def test_packing_that_this_python_lacks_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing unpacks zstd, the message names the extra that does."""

    def absent(name: str) -> object:
        raise ImportError(name)

    monkeypatch.setattr(recordings.importlib, "import_module", absent)
    file = tmp_path / "a.jsonl.zst"
    file.write_bytes(PACKED[".zst"](lines(5)))
    with pytest.raises(TraceError, match="nothing that unpacks it") as caught:
        read(file)
    assert "[codings]" in str(caught.value.remedy)


def test_pipe_is_read_to_its_end() -> None:
    """A recording may come through a pipe, packed or not."""
    for content in (lines(30), gzip.compress(lines(30))):
        ours, theirs = os.pipe()
        with os.fdopen(theirs, "wb") as stream:
            writer = threading.Thread(target=lambda: (stream.write(content), stream.close()))  # noqa: B023 - joined
            writer.start()
            assert len(read(f"/dev/fd/{ours}").exchanges) == 30
            writer.join()
        os.close(ours)


def test_sides_of_a_packed_recording() -> None:
    """The model's side of a packed recording is packed alike."""
    assert model_side("runs/a.jsonl.gz") == "runs/a.model.jsonl.gz"
    assert daemon_side("runs/a.model.jsonl.zst") == "runs/a.jsonl.zst"
    assert daemon_side(f"a{MODEL_SUFFIX}") == "a.jsonl"
    assert model_side("a.model.jsonl.gz") is None


def test_packed_recordings_of_a_folder(tmp_path: Path) -> None:
    """A folder's recordings are the plain and the packed ones."""
    for name in ("a.jsonl", "b.jsonl.gz", "c.jsonl.zst", "c.model.jsonl.zst", "d.json.gz"):
        (tmp_path / name).touch()
    assert [path.name for path in recordings_in(tmp_path)] == ["a.jsonl", "b.jsonl.gz", "c.jsonl.zst"]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(lambda _: None, "not JSON", id="unchanged"),
        pytest.param(
            lambda path: path.write_bytes(b"{"),
            "the file changed while it was read, and has 1 bytes instead of 3: not JSON",
            id="cut",
        ),
        pytest.param(
            lambda path: os.utime(path, ns=(0, 0)), "the file changed while it was read: not JSON", id="written over"
        ),
    ],
)
def test_damage_is_told_with_what_happened_to_the_file(
    tmp_path: Path, change: Callable[[Path], None], expected: str
) -> None:
    """A line that cannot be read is the recording's fault, or that of whoever writes to the file."""
    name = tmp_path / "a.jsonl"
    name.write_bytes(b"{}\n")
    with open_recording(str(name), beyond=100) as recording:
        change(name)
        damage = recording.damage("not JSON", f"{name}:1")
    assert (damage.message, damage.where) == (expected, f"{name}:1")
    assert damage.remedy.startswith("remove the line" if expected == "not JSON" else "check it again")


def test_change_of_a_packed_file_damages_nothing(tmp_path: Path) -> None:
    """What was unpacked of it before is what is read."""
    name = tmp_path / "a.jsonl.gz"
    name.write_bytes(gzip.compress(b"{}\n"))
    with open_recording(str(name), beyond=100) as recording:
        name.write_bytes(b"")
        assert recording.damage("not JSON", f"{name}:1").message == "not JSON"
