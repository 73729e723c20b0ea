"""Has pytest import the kit as any module is, without rewriting its assertions.

pytest rewrites every module of each installed distribution that has a plugin: those of the kit, and of Hypothesis. They
hold no test, and in the first run on a machine rewriting them is a third of what the kit itself computes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

_PACKAGES = ("signet_conformance", "signet_recording_proxy", "hypothesis")


class _PlainFinder:
    """Finds the modules of those packages on the path, before pytest does."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The module's place; None leaves it to the other finders."""
        return PathFinder.find_spec(name, path, target) if name.partition(".")[0] in _PACKAGES else None


@contextmanager
def plain_imports() -> Iterator[None]:
    """Within it, modules of the kit and of Hypothesis are imported as they are."""
    finder = _PlainFinder()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
