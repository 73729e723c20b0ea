"""The report for programs as a test reads it: written by the kit, read back as JSON."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

from signet_conformance.engine import JudgedTrace, exit_status
from signet_conformance.outcome.combined_verdict import together
from signet_conformance.reports.ending import RunEnding
from signet_conformance.reports.json_document import JsonReport


def json_report(judged: Sequence[JudgedTrace], contract: str | None = None, *, strict: bool = False) -> dict[str, Any]:
    """The document of a run over these traces, which ends with the status that their verdicts give."""
    recorded = any(each.trace.exchanges for each in judged)
    status = exit_status([whole.verdict for whole in together(judged).values()], strict=strict, recorded=recorded)
    stream = io.StringIO()
    writer = JsonReport(stream)
    for each in judged:
        writer.add(each, {})
    writer.close(RunEnding(judged, status, contract=contract))
    document: dict[str, Any] = json.loads(stream.getvalue())
    return document
