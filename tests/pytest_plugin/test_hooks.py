"""How pytest imports the kit's own modules."""

from __future__ import annotations

import sys
from importlib.machinery import SourceFileLoader

from signet_conformance import selftest
from signet_conformance.pytest_plugin.hooks import plain_imports


def test_only_the_kit_is_imported_without_rewriting() -> None:
    """A module of the kit has Python's own loader meanwhile; those of others, and what comes after, are pytest's."""
    finders = list(sys.meta_path)
    with plain_imports():
        # Asked of the finder: a module that another test has imported keeps the loader that it came with.
        own = sys.meta_path[0].find_spec("signet_conformance.selftest.matrix", list(selftest.__path__))
        assert own is not None
        assert type(own.loader) is SourceFileLoader
        assert sys.meta_path[0].find_spec("tests.support.drives") is None
    assert sys.meta_path == finders
