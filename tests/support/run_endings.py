"""The end of a run over judged traces, as the writers of reports get it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from signet_conformance.engine import JudgedTrace
from signet_conformance.outcome.conclusion import Judging, Terms
from signet_conformance.outcome.identity import Identity
from signet_conformance.reports.ending import RunEnding


def ending_of(
    judged: Sequence[JudgedTrace] = (),
    status: int | None = None,
    *,
    terms: Terms | None = None,
    known: Mapping[str, str] | None = None,
    identity: Identity | None = None,
    selftest: Mapping[str, Any] | None = None,
    **told: Any,
) -> RunEnding:
    """The end of a run that nothing identifies; `told` are further members of its conclusion."""
    judging = Judging(terms or Terms())
    for each in judged:
        judging.add(each)
    conclusion = replace(judging.conclude(), **told)
    # Worked out of files and of the folder of a run, which there are none of here.
    conclusion.__dict__.update(known_reasons=known or {}, identity=identity or Identity())
    return RunEnding(conclusion, selftest, ended_with=status)
