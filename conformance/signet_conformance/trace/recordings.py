"""The files of recordings: how they are named, recognised and opened.

NAME.jsonl is a recording, and NAME.model.jsonl its model's side, where a model server was recorded too. Each may be
packed, and then has the suffix of the packing as well; packed files are known by their first bytes, whatever their
names. A packed file that ends early is read as far as it goes; damage before its end is an error.
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import stat
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, Protocol

from msgspec import Struct

from signet_conformance.errors import TraceError, pip_install, printable
from signet_conformance.files import is_special
from signet_conformance.trace.model import FORMAT

HELD_BYTES = 32 * 1024 * 1024
"""If a pipe or a packed file yields more than this, the data goes to a temporary file."""
_BUFFER_BYTES = 256 * 1024
"""Bytes per read: lines have some kilobytes."""
_CHUNK_BYTES = 1024
"""Packed bytes per read: so few that a crafted file unpacks to little before its size is checked."""
_ALWAYS_FITS_BYTES = 1 << 30
_MOST_TIMES = 250
"""How many times its own size a packed recording may unpack to, if that is more than _ALWAYS_FITS_BYTES."""


class Unpacker(Protocol):
    """Unpacks one packed stream, piece by piece."""

    @property
    def eof(self) -> bool:
        """Whether the end of the packed stream was seen."""

    @property
    def unused_data(self) -> bytes:
        """The bytes after that end."""

    def decompress(self, data: bytes, /) -> bytes:
        """Unpack some more bytes."""


class Packing(Struct, frozen=True):
    """A way of packing files: its name, the suffix and first bytes of such files, and what unpacks them.

    `unpacker` raises ImportError where this Python lacks what is needed.
    """

    name: str
    suffix: str
    magic: bytes
    unpacker: Callable[[], Unpacker]


def _gzip() -> Unpacker:
    return zlib.decompressobj(wbits=31)


def _zstd() -> Unpacker:
    unpacker: Unpacker
    try:
        unpacker = importlib.import_module("compression.zstd").ZstdDecompressor()
    except ImportError:
        package = importlib.import_module("zstandard")
        unpacker = package.ZstdDecompressor(max_window_size=1 << 27).decompressobj()
    return unpacker


PACKINGS = (Packing("gzip", ".gz", b"\x1f\x8b", _gzip), Packing("zstd", ".zst", b"\x28\xb5\x2f\xfd", _zstd))


class OpenRecording(Struct):
    """An open recording: a stream at its first byte that can be read anywhere, and how many bytes it holds.

    `cut_short` is the name of the packing where the packed data ends early, else None. `modified_ns` is when the file
    was last written before it was opened; None if the stream is a copy of the file.
    """

    stream: IO[bytes]
    size: int
    cut_short: str | None = None
    modified_ns: int | None = None

    def damage(self, why: object, where: str) -> TraceError:
        """The error of a line that cannot be read. It says so if the file was changed while it was read."""
        status = os.fstat(self.stream.fileno()) if self.modified_ns is not None else None
        if status is None or (status.st_size, status.st_mtime_ns) == (self.size, self.modified_ns):
            return TraceError(str(why), where=where, remedy="remove the line, or record the session again")
        sizes = "" if status.st_size == self.size else f", and has {status.st_size:,} bytes instead of {self.size:,}"
        return TraceError(
            f"the file changed while it was read{sizes}: {why}",
            where=where,
            remedy="check it again when no program writes to it, or check a copy",
        )


@contextmanager
def open_recording(name: str, *, beyond: int) -> Iterator[OpenRecording]:
    """Open a recording for reading; raise OSError, ValueError or TraceError.

    One of more than `beyond` bytes stays open for as long as its stream is kept; any other is closed at the end.
    """
    with ExitStack() as stack:
        stream: IO[bytes] = stack.enter_context(Path(name).open("rb", buffering=_BUFFER_BYTES))
        status = os.fstat(stream.fileno())
        beginning = stream.peek(4)[:4] if hasattr(stream, "peek") else b""
        packing = next((each for each in PACKINGS if beginning.startswith(each.magic)), None)
        if packing is None and stat.S_ISREG(status.st_mode):
            recording = OpenRecording(stream, status.st_size, modified_ns=status.st_mtime_ns)
        else:
            spool = stack.enter_context(SpooledTemporaryFile(HELD_BYTES))
            cut_short = None
            if packing is None:
                shutil.copyfileobj(stream, spool)
            else:
                cut_short = _unpack(stream, spool, packing, name)
            recording = OpenRecording(spool, spool.tell(), cut_short)
            spool.seek(0)
        if recording.size > beyond:
            stack.pop_all()
        yield recording


def first_bytes(path: str, size: int) -> bytes:
    """The first bytes of a file, unpacked; raise OSError or ValueError where it cannot be read."""
    with Path(path).open("rb") as stream:
        beginning = stream.read(size)
    packing = next((each for each in PACKINGS if beginning.startswith(each.magic)), None)
    if packing is None:
        return beginning
    try:
        return packing.unpacker().decompress(beginning[:_CHUNK_BYTES])[:size]
    except ImportError:
        return b""
    except Exception as failure:  # noqa: BLE001 - each package raises an error of its own
        raise ValueError(str(failure)) from None


def _unpack(stream: IO[bytes], to: SpooledTemporaryFile[bytes], packing: Packing, name: str) -> str | None:
    """Unpack a file, one packed stream after the other; the name of the packing where the last one is cut short."""
    unpacker = _unpacker(packing, name)
    read = 0
    while chunk := stream.read(_CHUNK_BYTES):
        read += len(chunk)
        while chunk:
            if unpacker.eof:
                if not chunk.strip(b"\0"):
                    break  # padding, as on a tape
                unpacker = _unpacker(packing, name)
            try:
                to.write(unpacker.decompress(chunk))
            except OSError:
                raise
            except Exception as failure:  # noqa: BLE001 - each package raises an error of its own
                raise TraceError(
                    f"the {packing.name} data is damaged: {printable(failure, 160)}",
                    where=f"{printable(name, 400)}, before byte {read}",
                    remedy="copy the file again from where it was made, or unpack what can be recovered",
                ) from None
            chunk = unpacker.unused_data if unpacker.eof else b""
        if to.tell() > max(_ALWAYS_FITS_BYTES, _MOST_TIMES * read):
            raise TraceError(
                f"unpacks to more than {_MOST_TIMES} times its size, which no recording does",
                where=name,
                remedy=f"look at it with: {packing.name} -dc FILE | head, and name the unpacked file if it is one",
            )
    return None if unpacker.eof else packing.name


def _unpacker(packing: Packing, name: str) -> Unpacker:
    try:
        return packing.unpacker()
    except ImportError:
        raise TraceError(
            f"is packed with {packing.name}, and this Python has nothing that unpacks it",
            where=name,
            remedy=f"install it with: {pip_install('codings')}; or unpack the file first",
        ) from None


SUFFIX = ".jsonl"
SUFFIXES = (SUFFIX, *(SUFFIX + packing.suffix for packing in PACKINGS))
"""How the name of a recording ends, packed or not."""
MODEL = "model"
"""The `side` of a recording that was made in front of a model server."""
MODEL_SUFFIX = f".{MODEL}{SUFFIX}"


def is_recording(name: str) -> bool:
    """Whether a file of that name is a recording, by its suffix."""
    return name.endswith(SUFFIXES)


def recordings_in(folder: Path) -> list[Path]:
    """The recordings in a folder, sorted, without the models' sides."""
    return sorted(
        path for path in folder.glob(f"*{SUFFIX}*") if is_recording(path.name) and not is_model_side(path.name)
    )


def is_model_side(name: str) -> bool:
    """Whether a file of that name is the model's side of another."""
    stem, suffix = _stem_and_suffix(name)
    return bool(suffix) and stem.endswith(f".{MODEL}")


def model_side(path: str) -> str | None:
    """The path of the model's side of the recording `path`, which need not exist; None for any other name."""
    stem, suffix = _stem_and_suffix(path)
    return f"{stem}.{MODEL}{suffix}" if suffix and not is_model_side(path) else None


def delete_recording(path: Path) -> None:
    """Delete a recording and its model's side, as far as they exist."""
    path.unlink(missing_ok=True)
    if (beside := model_side(str(path))) is not None:
        Path(beside).unlink(missing_ok=True)


def move_recording(path: Path, to: Path) -> Path:
    """Move a recording, and its model's side if it has one. Returns the new path."""
    beside, beside_to = model_side(str(path)), model_side(str(to))
    if beside is not None and beside_to is not None and Path(beside).exists():
        Path(beside).rename(beside_to)
    return path.rename(to)


def daemon_side(path: str) -> str:
    """The recording beside which the model's side `path` stands."""
    stem, suffix = _stem_and_suffix(path)
    return stem.removesuffix(f".{MODEL}") + suffix


def _stem_and_suffix(name: str) -> tuple[str, str]:
    """A name without the suffix of a recording, and that suffix; empty for another name."""
    suffix = next((suffix for suffix in SUFFIXES if name.endswith(suffix)), "")
    return name[: len(name) - len(suffix)], suffix


_BEGINNING_BYTES = 4096
_NAMED = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{(?:\s*"kind"\s*:\s*"header"\s*,)?\s*"format"\s*:\s*"(signet-[a-z]+)/\d+"')
_HAR = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"log"\s*:\s*\{')
_FLOW = re.compile(rb"\d{1,12}:")
CAPTURES: Mapping[str, str] = {".har": "HAR", ".flow": "flow", ".flows": "flow", ".mitm": "flow", ".dump": "flow"}
"""The suffixes of captures that other programs make, and what kind they are."""


def other_format(path: str) -> str | None:
    """The format of a file by its beginning: `HAR`, `flow` or a format such as `signet-report`.

    None for a recording, for an unknown format, and for a file that is special or cannot be read.
    """
    if is_special(path):
        return None
    try:
        beginning = first_bytes(path, _BEGINNING_BYTES)
    except (OSError, ValueError):
        return None
    capture = CAPTURES.get(Path(path).suffix.lower())
    if _HAR.match(beginning) or (_FLOW.match(beginning) and capture == "flow"):
        return capture or "HAR"
    named = _NAMED.match(beginning)
    form = "" if named is None else named[1].decode()
    return form if form and form != FORMAT.partition("/")[0] else None
