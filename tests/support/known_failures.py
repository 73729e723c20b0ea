"""Files of known failures, with days that hold whenever the tests run."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from signet_conformance.outcome.baseline_documents import Entry

BASELINE, FLAKY = "signet-baseline/1", "signet-flaky/1"
TODAY = datetime.now(UTC).date()
LATER, BEFORE = TODAY + timedelta(days=400), TODAY - timedelta(days=1)


def entries(*names: str, target: str = "openclaw", expires: date = LATER) -> list[dict[str, Any]]:
    """Entries as they stand in a file."""
    made = (Entry(name, target, "ada", "next release", BEFORE, expires) for name in names)
    return [entry.to_json() for entry in made]


def listed(path: Path, rows: list[dict[str, Any]], form: str = BASELINE) -> Path:
    """A file of known failures."""
    path.write_text(json.dumps({"format": form, "entries": rows}))
    return path
