"""The embedded daemon answers every recorded request as the real one did."""

from __future__ import annotations

import asyncio
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from .replay import Got, replayed, rows, shape

PROBES = [(group, index, row["id"]) for group in ("local", "team") for index, row in enumerate(rows(group))]

#: Fields whose very value is part of the contract, beside every `error` and every flag.
_EXACT = (
    "claimedBy",
    "contextEpoch",
    "count",
    "deleted",
    "endedBy",
    "engine",
    "memoriesSaved",
    "method",
    "provider",
    "timeoutMs",
)


@cache
def _answers(group: str) -> list[Got]:
    with TemporaryDirectory() as workspace:
        return asyncio.run(replayed(group, Path(workspace)))


@pytest.mark.parametrize(
    ("group", "index"), [probe[:2] for probe in PROBES], ids=[f"{probe[0]}:{probe[2]}" for probe in PROBES]
)
def test_recorded_answer(group: str, index: int) -> None:
    """Status, headers, keys, types, error texts and flags are those of the real daemon."""
    row, got = rows(group)[index], _answers(group)[index]
    assert got.status == row["status"]
    assert {name: got.headers.get(name) for name in row["response_headers"]} == row["response_headers"]
    if not row["response_is_json"]:
        assert got.body == row["response_body"]
        return
    assert shape(got.body, row["response_shape"]) == row["response_shape"]
    for name, value in row["response_body"].items() if isinstance(row["response_body"], dict) else ():
        if name == "error" or isinstance(value, bool) or name in _EXACT:
            assert got.body[name] == value, name
        if name in ("memories", "results") and not _is_clipped(value):
            assert len(got.body[name]) == len(value), name


def _is_clipped(values: list[Any]) -> bool:
    return bool(values) and isinstance(values[-1], str)
