"""Facts about known failures of a target that is run in several releases of its harness."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from signet_conformance.finding import Verdict
from signet_conformance.outcome.known_failures import KnownFailures
from signet_conformance.outcome.options import KnownOptions

OLD, NEW = "openclaw-2026.6.1", "openclaw-2026.9.6"


def known(folder: Path, face: str | None) -> KnownFailures:
    """A baseline of one failure, of a face or of every one."""
    entry = {
        "requirement": "SIG-END-003",
        "target": "mine",
        "owner": "me",
        "reason": "mended in the next release",
        "created": "2026-01-01",
        "expires": "2999-01-01",
        **({} if face is None else {"face": face}),
    }
    path = folder / "known.json"
    path.write_text(json.dumps({"format": "signet-baseline/1", "entries": [entry]}))
    return KnownFailures.parse(KnownOptions(baseline=str(path)))


@pytest.mark.parametrize(("face", "covered"), [(None, True), (NEW, True), (OLD, False)])
def test_entry_counts_in_its_face(tmp_path: Path, face: str | None, covered: bool) -> None:
    """An entry without a face counts in each."""
    held = known(tmp_path, face).of_face(NEW, alone=True).in_run({"mine": {"SIG-END-003": Verdict.FAIL}})
    assert bool(held.covered) is covered


@pytest.mark.parametrize(
    ("face", "alone", "stale"), [(None, True, True), (None, False, False), (NEW, False, True), (OLD, False, False)]
)
def test_entry_is_stale_where_it_speaks_of_that_run_alone(
    tmp_path: Path, face: str | None, alone: bool, stale: bool
) -> None:
    """What passes in one face may fail in another that is run beside it."""
    held = known(tmp_path, face).of_face(NEW, alone=alone).in_run({"mine": {"SIG-END-003": Verdict.PASS}})
    assert held.fails is stale


def test_entry_is_written_without_a_face(tmp_path: Path) -> None:
    """Files of people who run one face stay as they are."""
    (entry,) = known(tmp_path, None).files[0].entries
    assert "face" not in entry.to_json()
