"""The source files of a connector, and waiting until its author saves one.

The files are polled for their times, since a recursive watch would also register every folder of node_modules.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from signet_conformance.errors import TargetError, UsageError
from signet_conformance.targets.files import find_file, installed_program, package_folder
from signet_conformance.targets.settings import read_settings

if TYPE_CHECKING:
    from signet_conformance.targets import Target

_POLL_S = 0.1
_SETTLED_S = 0.1
"""How long no file may change before a change counts as complete: editors and compilers write several files in turn."""
_REST = 20
"""The pause between two polls, in multiples of the duration of a poll."""
_SOURCE = re.compile(r"[^.].*\.(?:pyi?|[cm]?[jt]sx?|json|toml|ya?ml|sh|rs|go|rb|lua|wasm|node|so)|[^.]+")
"""The polled files, including those without a suffix. A connector may write logs and databases beside its sources."""
_JAVASCRIPT, _TYPESCRIPT = re.compile(r".*\.[cm]?jsx?"), re.compile(r".*\.[cm]?tsx?")
_NO_SOURCES = re.compile(
    r"\..*|node_modules|__pycache__|venv|site-packages|signet-(?:failures|report.*|(?:conformance|traces)-[0-9a-f]{16})"
)
"""Folders that are not polled: hidden ones, those of installed packages, and those that the kit writes."""


class SourceFiles:
    """The files of a target's connector: those in its package, and beside its settings if these name a program.

    Raises UsageError if no folder is known.
    """

    def __init__(self, target: Target) -> None:
        settings = read_settings(target.root).path
        self.settings = None if settings is None else settings.resolve()
        """The file of the target's settings, or None."""
        self.places = _places(target, self.settings)
        self.compiled = _is_compiled(target)
        """Whether the connector is loaded as JavaScript, so that a change of TypeScript matters only once compiled."""
        self._known = self._poll()

    def __len__(self) -> int:
        return len(self._known)

    def await_change(self) -> Sequence[Path]:
        """Wait for a change, and return the files changed, created or removed since the last call."""
        while not (changed := self._changed()):
            time.sleep(self._pause_s)
        now = self._poll()
        while True:
            time.sleep(_SETTLED_S)
            before, now = now, self._poll()
            if before == now:
                break
        changed = _differing(self._known, now) or changed
        self._known = now
        return changed

    @contextmanager
    def watching(self, on_change: Callable[[], None]) -> Iterator[None]:
        """Within the block, call `on_change` at the first change, from another thread."""
        ended = threading.Event()

        def look() -> None:
            while not ended.wait(self._pause_s):
                if self._changed():
                    on_change()
                    return

        thread = threading.Thread(target=look, name="signet files", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _changed(self) -> Sequence[Path]:
        return _differing(self._known, self._poll())

    def _poll(self) -> Mapping[str, tuple[int, int]]:
        began = time.monotonic()
        files: dict[str, tuple[int, int]] = {}
        for place in self.places:
            for path in _files_below(place):
                if self.compiled and _TYPESCRIPT.fullmatch(path):
                    continue
                with suppress(OSError):
                    status = os.stat(path)  # noqa: PTH116 - thousands of files, several times a second
                    files[path] = (status.st_mtime_ns, status.st_size)
        self._pause_s = max(_POLL_S, _REST * (time.monotonic() - began))
        return files


def _places(target: Target, settings: Path | None) -> Sequence[Path]:
    places: dict[Path, None] = {}
    with suppress(TargetError):
        file = find_file(target)
        script = _JAVASCRIPT.fullmatch(file.name) or _TYPESCRIPT.fullmatch(file.name)
        places[package_folder(file) if script else file.parent] = None
    for name in target.profile.programs:
        if isinstance(program := installed_program(target, name), Path):
            places[program.parent] = None
    if settings is not None:
        own = target.kind.own_program or not places
        places[settings.parent if own else settings] = None
    if not places:
        raise UsageError(
            "the kit knows no file of this connector, so it cannot watch any",
            where=f"--watch {target.name}",
            remedy="leave --watch out, or name the connector's file or driver in signet-conformance.toml",
        )
    return [place for place in places if not any(other in place.parents for other in places)]


def _is_compiled(target: Target) -> bool:
    loaded = list(target.command)
    with suppress(TargetError):
        loaded.append(str(find_file(target)))
    return any(map(_JAVASCRIPT.fullmatch, loaded)) and not any(map(_TYPESCRIPT.fullmatch, loaded))


def _files_below(place: Path) -> Iterator[str]:
    if place.is_file():
        yield str(place)
    for folder, folders, files in os.walk(place):
        folders[:] = [name for name in folders if not _NO_SOURCES.fullmatch(name)]
        if "pyvenv.cfg" in files:
            folders.clear()
            continue
        yield from (os.path.join(folder, name) for name in files if _SOURCE.fullmatch(name))  # noqa: PTH118 - as above


def _differing(before: Mapping[str, object], now: Mapping[str, object]) -> Sequence[Path]:
    return [Path(path) for path in sorted({*before, *now}) if before.get(path) != now.get(path)]
