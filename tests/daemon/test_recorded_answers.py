"""The embedded daemon answers every recorded request as the real one did."""

from __future__ import annotations

import asyncio
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from .replay import Got, replayed, rows, shape

RELEASES = ("0.58.1", "0.109.15", "0.145.7")
GROUPS = ("local", "team")

#: Rows that the embedded daemon cannot answer alike, with the reason.
APART = {
    ("0.58.1", "local", "secrets-exec/shell-metacharacters"): "needs a shell, which the embedded daemon never starts",
    ("0.58.1", "local", "forget/(setup)", "48e5abd6"): "names a row that was saved by a request outside the table",
    ("0.109.15", "local", "forget/(setup)", "413e6f31"): "names a row that was saved by a request outside the table",
    ("0.109.15", "local", "recall/limit-negative"): "how many rows a limit below zero leaves is not known well enough",
    ("0.58.1", "team", "session-start/team:-connector-key"): "shows rows that requests outside the table saved",
}

PROBES = [
    (release, group, index, row["id"])
    for release in RELEASES
    for group in GROUPS
    for index, row in enumerate(rows(release, group))
]

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
def _answers(release: str, group: str) -> list[Got]:
    with TemporaryDirectory() as workspace:
        return asyncio.run(replayed(release, group, Path(workspace)))


def _apart(release: str, group: str, row: dict[str, Any]) -> str | None:
    for (of, within, name, *part), reason in APART.items():
        if (of, within, name) == (release, group, row["id"]) and all(text in str(row["request"]) for text in part):
            return reason
    return None


@pytest.mark.parametrize(
    ("release", "group", "index"),
    [probe[:3] for probe in PROBES],
    ids=[":".join(map(str, (*p[:2], p[3]))) for p in PROBES],
)
def test_recorded_answer(release: str, group: str, index: int) -> None:
    """Status, headers, keys, types, error texts and flags are those of the real daemon."""
    row, got = rows(release, group)[index], _answers(release, group)[index]
    assert got.status == row["status"]
    reason = _apart(release, group, row)
    if reason:
        pytest.skip(reason)
    # How long a connection lives is the server's affair, not the daemon's.
    expected = {name: value for name, value in row["response_headers"].items() if name != "connection"}
    assert {name: got.headers.get(name) for name in expected} == expected
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
