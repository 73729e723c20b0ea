"""What a driver remarks of a connector's installation, such as a timeout in a wrong unit: notes, never verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from signet_conformance.trace import Trace


def remarks(traces: Iterable[Trace]) -> Sequence[str]:
    """The remarks of some traces, each once, in the order in which they were made."""
    marks = (mark for trace in traces for mark in trace.marks if mark.name == "remark")
    return list(dict.fromkeys(str(mark.data["text"]) for mark in marks if "text" in mark.data))
