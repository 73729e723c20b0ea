"""A comparison as one JSON object: `signet-diff/1`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, TextIO

from signet_conformance import __version__
from signet_conformance.diff.alignment import Session, SessionPair
from signet_conformance.diff.difference import Comparison, Difference, SideValue
from signet_conformance.errors import printable, printable_json
from signet_conformance.facts import Recording
from signet_conformance.files.json_values import ABSENT
from signet_conformance.reports.values import shorten

FORMAT = "signet-diff/1"


def write(comparison: Comparison, stream: TextIO) -> None:
    """Write the object; differences one a line, so that many of them need no second copy in memory."""
    relevant = comparison.relevant
    head = {
        "format": FORMAT,
        "kit": __version__,
        "first": _recording(comparison.first),
        "second": _recording(comparison.second),
        "summary": {"relevant": relevant, "cosmetic": len(comparison.differences) - relevant},
        "sessions": [_pair_document(pair) for pair in comparison.sessions],
    }
    stream.write(printable_json(json.dumps(head))[:-1] + ', "differences": [')
    stream.writelines(
        (",\n" if number else "\n") + printable_json(json.dumps(dict(_members(difference))))
        for number, difference in enumerate(comparison.differences)
    )
    stream.write("\n]}\n")


def _recording(recording: Recording) -> dict[str, Any]:
    header = recording.trace.header
    return {
        "trace": printable(recording.trace.path or "", 1000),
        "created": shorten(header.created),
        "target": shorten(header.target),
        "daemon_version": shorten(recording.daemon_version),
        "exchanges": len(recording.calls),
        "warnings": [printable(warning, 1000) for warning in recording.trace.warnings],
    }


def _pair_document(pair: SessionPair) -> dict[str, Any]:
    return {"session": pair.number, "first": _session(pair.first), "second": _session(pair.second)}


def _session(session: Session | None) -> dict[str, Any] | None:
    if session is None:
        return None
    return {
        "key": shorten(session.key),
        "harness": shorten(session.harness),
        "agent": shorten(session.agent),
        "project": shorten(session.project),
        "exchanges": len(session.calls),
    }


def _members(difference: Difference) -> Iterator[tuple[str, Any]]:
    yield "kind", difference.kind.value
    yield "relevant", difference.relevant
    yield "requirements", list(difference.requirements)
    yield "session", difference.session or None
    yield "call", shorten(difference.call)
    yield "member", shorten(difference.member) or None
    yield "first", _side(difference.first)
    yield "second", _side(difference.second)
    if difference.note:
        yield "note", difference.note
    if difference.requirements:
        yield "explain", f"signet-conformance explain {' '.join(difference.requirements)}"


def _side(side: SideValue) -> dict[str, Any] | None:
    if side.exchange is None and not side.pointer:
        return None
    shown: dict[str, Any] = {"exchange": side.exchange, "pointer": side.pointer}
    if side.value is not ABSENT:
        shown["value"] = shorten(side.value)
    return shown
