"""The embedded daemon answers every recorded request as the real one did."""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from signet_conformance.probing.replay import ProbeAnswer, Row, differences, recorded

from .replay import replayed

pytestmark = pytest.mark.waits

RELEASES = ("0.58.1", "0.109.15", "0.145.7")
GROUPS = ("local", "team")

#: Rows that the embedded daemon cannot answer alike, with the reason.
APART = {
    ("0.58.1", "local", "secrets-exec/shell-metacharacters"): "needs a shell, which the embedded daemon never starts",
    ("0.58.1", "local", "forget/(setup)", "48e5abd6"): "names a row that was saved by a request outside the table",
    ("0.109.15", "local", "forget/(setup)", "413e6f31"): "names a row that was saved by a request outside the table",
    ("0.58.1", "team", "session-start/team:-connector-key"): "shows rows that requests outside the table saved",
}


def _answers(release: str, group: str) -> list[ProbeAnswer]:
    with TemporaryDirectory() as workspace:
        return asyncio.run(replayed(release, group, Path(workspace)))


def _apart(release: str, group: str, row: Row) -> str | None:
    for (of, within, name, *part), reason in APART.items():
        if (of, within, name) == (release, group, row["id"]) and all(text in str(row["request"]) for text in part):
            return reason
    return None


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("group", GROUPS)
def test_recorded_answers(release: str, group: str) -> None:
    """Status, headers, keys, types, error texts and flags are those of the real daemon; its status even where APART."""
    differing = []
    apart = set()
    for row, got in zip(recorded(release, group), _answers(release, group), strict=True):
        reason = _apart(release, group, row)
        apart |= {reason} if reason else set()
        if got.status != row["status"]:
            differing.append((row["id"], row["request"], f"status {got.status}, not {row['status']}"))
        elif reason is None:
            differing += [(row["id"], row["request"], said) for said in differences(row, got)]
    assert differing == []
    assert apart == {reason for (of, within, *_), reason in APART.items() if (of, within) == (release, group)}
