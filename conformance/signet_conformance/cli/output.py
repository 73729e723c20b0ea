"""Where a report goes: stdout, or a file, which replaces another only with --force and is never left half written."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, TextIO

from signet_conformance.errors import UsageError
from signet_conformance.files import private_opener


def demand_apart(written: Sequence[str | None], read: Iterable[str | None]) -> None:
    """Raise UsageError when two outputs are the same file, or an output is also an input. None means no file.

    An empty name, as an unset shell variable leaves, is an error, and so is a dash, which elsewhere means stdout.
    """
    if "" in written:
        raise UsageError(
            "an empty name does not name a file", remedy="name a file for the report, or leave its option out"
        )
    if "-" in written:
        raise UsageError("a dash does not name a file, which this report needs", remedy="name a file; ./- is one too")
    files = [os.path.realpath(path) for path in written if path is not None]
    if len(set(files)) < len(files):
        raise UsageError("two reports go to one file", remedy="name a file for each")
    for path in read:
        if path is not None and os.path.realpath(path) in files:
            raise UsageError(
                "is read by this run, and a report would replace it",
                where=path,
                remedy="write the report to another file",
            )


@contextmanager
def report_stream(path: str | None, force: bool, *, private: bool = False) -> Iterator[TextIO]:
    """stdout, or the file `path`, which is there as a whole when the block ends well and not at all otherwise.

    A `private` one is readable by its owner alone, as recordings are.

    Raises UsageError when the file exists and `force` is off, or cannot be written.
    """
    if path is None:
        yield sys.stdout
        return
    # A device cannot be renamed over, and a new name is claimed at once; only a file that is replaced needs a double.
    doubled = force and Path(path).is_file()
    written = Path(f"{path}.{os.getpid()}.part" if doubled else path)
    mode: Literal["w", "x"] = "w" if force and not doubled else "x"
    created = False
    try:
        opener = private_opener if private else None
        with open(written, mode, encoding="utf-8", errors="backslashreplace", opener=opener) as stream:
            created = written.is_file()
            yield stream
        if doubled:
            written.replace(path)
        created = False
    except BrokenPipeError:
        # The reader of stdout has left: the block stopped in the middle, and the file is not at fault.
        raise
    except FileExistsError:
        raise UsageError(
            "exists already", where=path, remedy="choose another name, or overwrite it with --force"
        ) from None
    except OSError as failure:
        raise UsageError(
            f"cannot be written: {failure.strerror or failure}",
            where=path,
            remedy="name a file in a folder that exists and that you may write to",
        ) from None
    finally:
        if created:
            with suppress(OSError):
                written.unlink()
