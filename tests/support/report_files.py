"""Reports on disk, for tests of what reads them back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from signet_conformance.contract import requirements


def report(
    path: Path,
    *,
    target: str = "openclaw",
    observed: Any = (),
    declared: Any = None,
    real: str | None = None,
    **verdicts: str,
) -> Path:
    """A report in which every requirement passes but those that `verdicts` names, with _ for -.

    `real` is the release of the target's program where that was launched.
    """
    finding = {"exchanges": [1], "side": "connector", "pointer": "", "expected": "", "received": None, "message": "x"}
    rows = {name: {"verdict": "PASS", "reason": "conforming", "findings": []} for name in requirements()}
    for name, verdict in verdicts.items():
        findings = [finding] if verdict in ("FAIL", "WARN") else []
        rows[name.replace("_", "-")] = {"verdict": verdict, "reason": "breach", "findings": findings}
    trace = {
        "file": "t.jsonl",
        "target": target,
        "declared": {} if declared is None else {"capabilities": list(declared)},
        "operations": dict.fromkeys(observed, 1),
        "verdicts": rows,
    }
    document = {"format": "signet-report/1", "contract": "0.145", "kit": "0.1.0", "traces": [trace], "together": rows}
    played = [] if real is None else [{"host": target, "release": real, "newer": [], "real": True}]
    path.write_text(json.dumps({**document, "played": played, "exit": 0}))
    return path
