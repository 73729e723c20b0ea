"""The stores of data sets: local folders, and object stores by fsspec, listed and read with retries.

A call that meets a busy or broken store is made again, after a pause that doubles. An object that arrives short counts
as not delivered. No result depends on how often a store was asked.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from functools import cache
from glob import glob, has_magic
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

from signet_conformance.audit import import_extra
from signet_conformance.audit.rows import Unreadable
from signet_conformance.errors import UsageError, os_errors, pip_install, printable
from signet_conformance.trace.recordings import is_model_side, is_recording, model_side

TRIES = 5
"""Our own tries; a store's package may make several in each."""
FIRST_PAUSE_S = 0.1
MOST_PAUSE_S = 10.0
_PERMANENT = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError, NotImplementedError)
"""Errors that another try does not mend. The package of a store raises the last for what the store cannot do."""
_SETTING = re.compile(r"[\w-]+=")
"""The beginning of a query, as it follows a question mark: sig=…"""
_PART_BYTES = 8 * 1024 * 1024

_UNLISTED = "check the path and its rights"
Result = TypeVar("Result")


class ObjectLostError(Exception):
    """A recording that was listed cannot be read; `why` is the code that its row gives."""

    def __init__(self, why: Unreadable) -> None:
        self.why = why
        super().__init__(why)


class ListedRecording(Struct, frozen=True):
    """A recording of a data set: its name below the data set, its path or address, and its size in bytes.

    `model_size` is the size of its model's side, None where no model was recorded.
    """

    name: str
    place: str
    size: int
    model_size: int | None = None


def is_remote(place: str) -> bool:
    """Return whether the address has a SCHEME:// and so names an object store."""
    return "://" in place


def recordings_of(dataset: str) -> list[ListedRecording]:
    """The recordings of a folder, a file, a glob, or a prefix of an object store, by name.

    Raises UsageError for a data set that cannot be listed or holds no recording.
    """
    sizes = _remote_files(dataset) if is_remote(dataset) else _local_files(dataset)
    root = _root(dataset)
    listed = [
        ListedRecording(
            place.removeprefix(root).lstrip("/") or place.rpartition("/")[2],
            place,
            size,
            sizes.get(model_side(place) or ""),
        )
        for place, size in sizes.items()
        if not is_model_side(place)
    ]
    if not listed:
        raise UsageError("holds no recording", where=dataset, remedy="name a folder, glob or prefix of *.jsonl")
    return sorted(listed, key=lambda each: each.name)


def _root(dataset: str) -> str:
    """Return the folder that the names of a data set omit: up to the first part with a pattern."""
    if is_remote(dataset):
        store, path = _store(dataset)
        # As the store writes the addresses that it lists: gcs:// becomes gs://.
        fixed = str(store.unstrip_protocol(path))
    else:
        fixed = os.path.abspath(dataset)  # noqa: PTH100 - no link is followed
    while has_magic(fixed):
        fixed = fixed.rpartition("/")[0]
    return fixed.rstrip("/")


# -- this machine


def _local_files(dataset: str) -> dict[str, int]:
    if not dataset:
        raise UsageError("an empty argument names no data set", remedy="name a folder, a glob or a prefix")
    path = Path(dataset)
    matches = [dataset] if os.path.lexists(path) or not has_magic(dataset) else glob(dataset, recursive=True)  # noqa: PTH207 - Path.glob takes no absolute pattern
    files: dict[str, int] = {}
    for match in matches:
        if Path(match).is_dir():
            files.update(_below(match))
        elif match == dataset or is_recording(match):
            with os_errors("cannot be listed", where=match, remedy=_UNLISTED):
                files[os.path.abspath(match)] = Path(match).stat().st_size  # noqa: PTH100 - no link is followed
    for place in [each for each in files if not is_model_side(each)]:
        beside = model_side(place)
        if beside is not None and beside not in files and Path(beside).is_file():
            files[beside] = Path(beside).stat().st_size
    return files


def _below(folder: str) -> Iterator[tuple[str, int]]:
    def unreadable(failure: OSError) -> None:
        with os_errors("cannot be listed", where=failure.filename or folder, remedy=_UNLISTED):
            raise failure

    for parent, _, names in os.walk(os.path.abspath(folder), onerror=unreadable):  # noqa: PTH100 - no link is followed
        for name in names:
            if is_recording(name):
                place = os.path.join(parent, name)  # noqa: PTH118 - once a recording of a fleet
                try:
                    status = os.stat(place)  # noqa: PTH116 - once a recording of a fleet
                except OSError:
                    yield place, 0  # it cannot be read either, and that will be its row
                    continue
                yield place, status.st_size


# -- object stores


def _remote_files(dataset: str) -> dict[str, int]:
    if _may_hold_secret(dataset):
        raise UsageError(
            "an address with a secret in it would be kept beside the results",
            where=f"{dataset.partition('://')[0]}://…",
            remedy="leave it out, and give the store's credentials by its environment variables or its own file",
        )
    store, root = _store(dataset)
    try:
        objects = with_retries(lambda: _find(store, root))
    except _PERMANENT as failure:
        raise UsageError(
            f"cannot be listed: {type(failure).__name__}",
            where=dataset,
            remedy="check the prefix, and the credentials in the environment",
        ) from None
    except Exception as failure:  # noqa: BLE001 - each store raises errors of its own
        raise UsageError(
            f"cannot be listed, after {TRIES} tries: {printable(failure, 200)}",
            where=dataset,
            remedy="the same command tries again",
        ) from None
    return {store.unstrip_protocol(path): size for path, size in objects.items() if is_recording(path)}


def _may_hold_secret(address: str) -> bool:
    """Whether an address names a user, or has a query; outside of HTTP a question mark is a pattern."""
    scheme, _, rest = address.partition("://")
    query = rest.partition("?")[2]
    return "@" in rest.partition("/")[0] or bool(query if scheme in ("http", "https") else _SETTING.match(query))


def _find(store: Any, root: str) -> dict[str, int]:
    store.invalidate_cache()
    if has_magic(root):
        matches = store.glob(root, detail=True)
        files = {path: info for path, info in matches.items() if info.get("type") != "directory"}
        for folder in [path for path, info in matches.items() if info.get("type") == "directory"]:
            files.update(store.find(folder, detail=True))
    else:
        files = store.find(root, detail=True)
    return {path: int(info.get("size") or 0) for path, info in files.items()}


@cache
def _store_of(scheme: str, process: int) -> Any:
    """The store of a scheme, opened anew in each process, since processes cannot share its connections."""
    del process
    fsspec = import_extra("fsspec", f"a data set at {scheme}://")
    try:
        return fsspec.filesystem(scheme, use_listings_cache=False)
    except ImportError as absent:
        missing = f"the package {absent.name.partition('.')[0]}" if absent.name else "a package"
        raise UsageError(
            f"a data set at {scheme}:// needs {printable(missing, 200)} that is not installed",
            remedy=f"{pip_install('fleet')}, and the package of the store, such as s3fs or gcsfs",
        ) from None
    except ValueError:
        raise UsageError(
            f"no store is known for {printable(scheme, 40)}://",
            remedy="name one that fsspec knows, such as s3://BUCKET/PREFIX",
        ) from None


def _store(place: str) -> tuple[Any, str]:
    scheme = place.partition("://")[0]
    store = _store_of(scheme, os.getpid())
    return store, store._strip_protocol(place)  # noqa: SLF001 - fsspec's own way for its implementations


def copy(place: str, size: int, to: Path) -> None:
    """Copy an object of `size` bytes, as it was listed, to a file of ours.

    Raises ObjectLostError when it is gone, may not be read, differs from its listing, or was never delivered whole.
    """
    store, path = _store(place)
    try:
        with_retries(lambda: _copy(store, path, size, to))
    except FileNotFoundError:
        raise ObjectLostError("gone") from None
    except PermissionError:
        raise ObjectLostError("refused") from None
    except Exception:  # noqa: BLE001 - each store raises errors of its own
        raise ObjectLostError("not-delivered") from None


def _copy(store: Any, path: str, size: int, to: Path) -> None:
    """Copy an object whole; raise EOFError when less, or more, came than was listed."""
    written = 0
    with to.open("wb") as stream:
        while written < size:
            part = store.cat_file(path, start=written, end=min(size, written + _PART_BYTES))
            if not part:
                break
            stream.write(part)
            written += len(part)
    if written != size:
        raise EOFError(f"{written} of {size} bytes")


def with_retries(ask: Callable[[], Result], pause: Callable[[float], None] = time.sleep) -> Result:
    """Return what `ask` returns. Ask again after an error that may pass, and raise that of the last try."""
    pause_s = FIRST_PAUSE_S
    for _ in range(TRIES - 1):
        try:
            return ask()
        except _PERMANENT:
            raise
        except Exception:  # noqa: BLE001 - each store raises errors of its own
            pause(pause_s)
            pause_s = min(2 * pause_s, MOST_PAUSE_S)
    return ask()
