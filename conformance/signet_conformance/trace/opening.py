"""How the file of a recording is opened: a plain one as it is, a pipe or a packed one through a temporary file.

Packed files are known by their first bytes, whatever their names. A packed file that ends early is read as far as it
goes, as a recording is that lost its last line; damage before its end is an error.
"""

from __future__ import annotations

import importlib
import os
import shutil
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, Protocol

from msgspec import Struct

from signet_conformance.errors import TraceError, printable

HELD_BYTES = 32 * 1024 * 1024
"""More than this of what comes out of a pipe or a packed file goes to a temporary file."""
_BUFFER_BYTES = 256 * 1024
"""What is read at once: lines have some kilobytes."""
_CHUNK_BYTES = 1024
"""So little at a time that what a made-up file unpacks to stays small until it is looked at."""
_ALWAYS_FITS_BYTES = 1 << 30
_MOST_TIMES = 250
"""How many times its own size a packed recording may unpack to, where that is more than fits always."""


class Unpacker(Protocol):
    """What undoes one packed stream, piece by piece."""

    @property
    def eof(self) -> bool:
        """Whether the end of the packed stream was seen."""

    @property
    def unused_data(self) -> bytes:
        """What came after that end."""

    def decompress(self, data: bytes, /) -> bytes:
        """What some more bytes unpack to."""


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


class Opened(Struct):
    """An open recording: a stream at its first byte that can be read anywhere, and how many bytes it holds.

    `cut_short` is the name of the packing where the packed data ends early, else None.
    """

    stream: IO[bytes]
    size: int
    cut_short: str | None = None


@contextmanager
def opened(name: str, *, beyond: int) -> Iterator[Opened]:
    """Open a recording for reading; raise OSError, ValueError or TraceError.

    One of more than `beyond` bytes stays open for as long as its stream is kept; any other is closed at the end.
    """
    with ExitStack() as stack:
        stream: IO[bytes] = stack.enter_context(Path(name).open("rb", buffering=_BUFFER_BYTES))
        status = os.fstat(stream.fileno())
        beginning = stream.peek(4)[:4] if hasattr(stream, "peek") else b""
        packing = next((each for each in PACKINGS if beginning.startswith(each.magic)), None)
        if packing is None and stat.S_ISREG(status.st_mode):
            recording = Opened(stream, status.st_size)
        else:
            spool = stack.enter_context(SpooledTemporaryFile(HELD_BYTES))
            cut_short = None
            if packing is None:
                shutil.copyfileobj(stream, spool)
            else:
                cut_short = _unpack(stream, spool, packing, name)
            recording = Opened(spool, spool.tell(), cut_short)
            spool.seek(0)
        if recording.size > beyond:
            stack.pop_all()
        yield recording


def first_bytes(path: str, size: int) -> bytes:
    """What a file begins with, unpacked; raise OSError or ValueError where it cannot be read."""
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
                    break  # what pads a file on a tape
                unpacker = _unpacker(packing, name)
            try:
                to.write(unpacker.decompress(chunk))
            except OSError:
                raise
            except Exception as failure:  # noqa: BLE001 - each package raises an error of its own
                raise TraceError(
                    f"the {packing.name} data is damaged: {printable(failure, 160)}",
                    where=f"{printable(name, 400)}, before byte {read}",
                    remedy="copy the file again from where it was made, or unpack what can be saved of it",
                ) from None
            chunk = unpacker.unused_data if unpacker.eof else b""
        if to.tell() > max(_ALWAYS_FITS_BYTES, _MOST_TIMES * read):
            raise TraceError(
                f"unpacks to more than {_MOST_TIMES} times its size, which no recording does",
                where=printable(name, 400),
                remedy=f"look at it with: {packing.name} -dc FILE | head, and name the unpacked file if it is one",
            )
    return None if unpacker.eof else packing.name


def _unpacker(packing: Packing, name: str) -> Unpacker:
    try:
        return packing.unpacker()
    except ImportError:
        raise TraceError(
            f"is packed with {packing.name}, and this Python has nothing that unpacks it",
            where=printable(name, 400),
            remedy="install it with: pip install 'signet-conformance[codings]'; or unpack the file first",
        ) from None
