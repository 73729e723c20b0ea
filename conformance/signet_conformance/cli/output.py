"""Where a report goes: stdout or a file. A file replaces another only with --force, and is never left incomplete."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, TextIO

from signet_conformance.errors import UsageError
from signet_conformance.files import private_opener


def demand_distinct_files(outputs: Sequence[str | None], inputs: Iterable[str | None]) -> None:
    """Raise UsageError when two outputs are the same file, or an output is also an input. None means no file.

    An empty name, as an unset shell variable leaves, is an error, and so is a dash, which elsewhere means stdout.
    """
    if "" in outputs:
        raise UsageError(
            "an empty name does not name a file", remedy="name a file for the report, or leave its option out"
        )
    if "-" in outputs:
        raise UsageError("a dash does not name a file, which this report needs", remedy="name a file; ./- is one too")
    files = [os.path.realpath(path) for path in outputs if path is not None]
    if len(set(files)) < len(files):
        raise UsageError("two reports go to one file", remedy="name a file for each")
    for path in inputs:
        if path is not None and os.path.realpath(path) in files:
            raise UsageError(
                "is read by this run, and a report would replace it",
                where=path,
                remedy="write the report to another file",
            )


@contextmanager
def report_stream(path: str | None, force: bool, *, private: bool = False) -> Iterator[TextIO]:
    """Open the file `path`, or stdout without one. If the block raises, no new file stays and no old one changes.

    A `private` file is readable by its owner alone, as recordings are. Raises UsageError if the file exists and `force`
    is off, or if it cannot be written.
    """
    if path is None:
        yield sys.stdout
        return
    # An existing file is replaced only when the new one is complete. A device cannot be replaced by renaming.
    replaces = force and Path(path).is_file()
    target = Path(f"{path}.{os.getpid()}.part" if replaces else path)
    mode: Literal["w", "x"] = "w" if force and not replaces else "x"
    created = False
    try:
        opener = private_opener if private else None
        with open(target, mode, encoding="utf-8", errors="backslashreplace", opener=opener) as stream:
            created = target.is_file()
            yield stream
        if replaces:
            target.replace(path)
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
                target.unlink()
