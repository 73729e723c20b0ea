"""Where the recordings and facts of real programs lie: see tests/evidence/README.md."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

EVIDENCE = Path(__file__).resolve().parents[1] / "evidence"
TRACES = EVIDENCE / "traces"
EXPECTED = TRACES / "expected"
PAIRS = TRACES / "pairs"
HOOK_RUNS = EVIDENCE / "hook-runs"
HOST_EVENTS = EVIDENCE / "host-events"
CLAIMS = EVIDENCE / "claims.jsonl"
MCP_TOOLS = EVIDENCE / "mcp-tools" / "0.145.jsonl"
LAW = EVIDENCE / "law.json"


def recordings() -> list[Path]:
    """The recordings whose verdicts people judged, by name."""
    return sorted(TRACES.glob("*.jsonl"))


def json_lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a file that holds one a line."""
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
