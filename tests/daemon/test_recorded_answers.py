"""The embedded daemon answers every recorded request as the real one did."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
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
    ("0.58.1", "team", "session-start/team:-connector-key"): "shows rows that requests outside the table saved",
}

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


def _answers(release: str, group: str) -> list[Got]:
    with TemporaryDirectory() as workspace:
        return asyncio.run(replayed(release, group, Path(workspace)))


def _apart(release: str, group: str, row: dict[str, Any]) -> str | None:
    for (of, within, name, *part), reason in APART.items():
        if (of, within, name) == (release, group, row["id"]) and all(text in str(row["request"]) for text in part):
            return reason
    return None


def differences(row: dict[str, Any], got: Got) -> Iterator[str]:
    """How an answer differs from the recorded one, in words; nothing where it agrees."""
    # How long a connection lives is the server's affair, not the daemon's.
    headers = {name: value for name, value in row["response_headers"].items() if name != "connection"}
    if (own := {name: got.headers.get(name) for name in headers}) != headers:
        yield f"headers {own}, not {headers}"
    if not row["response_is_json"]:
        if got.body != row["response_body"]:
            yield f"{got.body!r}, not {row['response_body']!r}"
        return
    if (own_shape := shape(got.body, row["response_shape"])) != row["response_shape"]:
        yield f"the shape {own_shape}, not {row['response_shape']}"
        return
    for name, value in row["response_body"].items() if isinstance(row["response_body"], dict) else ():
        if (name == "error" or isinstance(value, bool) or name in _EXACT) and got.body[name] != value:
            yield f"{name} is {got.body[name]!r}, not {value!r}"
        if name in ("memories", "results") and not _is_clipped(value) and len(got.body[name]) != len(value):
            yield f"{len(got.body[name])} {name}, not {len(value)}"


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("group", GROUPS)
def test_recorded_answers(release: str, group: str) -> None:
    """Status, headers, keys, types, error texts and flags are those of the real daemon; its status even where APART."""
    differing = []
    apart = set()
    for row, got in zip(rows(release, group), _answers(release, group), strict=True):
        reason = _apart(release, group, row)
        apart |= {reason} if reason else set()
        if got.status != row["status"]:
            differing.append((row["id"], row["request"], f"status {got.status}, not {row['status']}"))
        elif reason is None:
            differing += [(row["id"], row["request"], said) for said in differences(row, got)]
    assert differing == []
    assert apart == {reason for (of, within, *_), reason in APART.items() if (of, within) == (release, group)}


def _is_clipped(values: list[Any]) -> bool:
    return bool(values) and isinstance(values[-1], str)
