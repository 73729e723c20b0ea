"""The index of operations, as far as requirements refer to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from signet_conformance.contract.folder import document


@cache
def operation_groups() -> Mapping[str, Sequence[str]]:
    """Operations that requirements speak of together, by the name of the group."""
    groups: Mapping[str, Sequence[str]] = document("operations.json")["groups"]
    return groups
