"""The report for programs as a test reads it: written by the kit, read back as JSON."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

from signet_conformance.engine import JudgedTrace, exit_status, fold_run
from signet_conformance.outcome.conclusion import Terms
from signet_conformance.reports.json_document import JsonReport
from tests.support.run_endings import ending_of


def json_report(judged: Sequence[JudgedTrace], contract: str | None = None, *, strict: bool = False) -> dict[str, Any]:
    """The document of a run over these traces, which ends with the status that their verdicts give."""
    recorded = any(each.trace.exchanges for each in judged)
    status = exit_status([whole.verdict for whole in fold_run(judged).values()], strict=strict, recorded=recorded)
    stream = io.StringIO()
    writer = JsonReport(stream)
    for each in judged:
        writer.add(each, {})
    writer.close(ending_of(judged, status, terms=Terms(contract=contract)))
    document: dict[str, Any] = json.loads(stream.getvalue())
    return document
