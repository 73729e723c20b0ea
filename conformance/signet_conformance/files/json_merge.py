"""One JSON value laid over another, member by member."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def merged(value: Any, over: Any) -> Any:
    """`value` with `over` laid upon it: objects are merged, anything else of `over` takes the place of what was."""
    if not isinstance(value, Mapping) or not isinstance(over, Mapping):
        return over
    return {**value, **{name: merged(value[name], each) if name in value else each for name, each in over.items()}}
