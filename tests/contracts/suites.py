"""A suite run without pytest's collection: what each of its tests says of a plug-in."""

from __future__ import annotations

from collections.abc import Mapping

import pytest


def failures(suite: object) -> Mapping[str, str]:
    """The tests of a suite that fail, with what they say; those that are skipped are in capitals."""
    told: dict[str, str] = {}
    for name in [name for name in dir(suite) if name.startswith("test_")]:
        try:
            getattr(suite, name)()
        except pytest.skip.Exception as skipped:
            told[name.upper()] = str(skipped)
        except (pytest.fail.Exception, Exception) as failure:  # noqa: BLE001 - a plug-in may raise what it likes
            told[name] = str(failure)
    return told
