"""The files that `signet-conformance init` writes."""

from __future__ import annotations

from pathlib import Path

WORKFLOW = Path(".github", "workflows", "signet-conformance.yml")
IGNORED = "signet-failures/\nsignet-report/\nsignet-report-*/\n.hypothesis/\nsignet-baseline.json.audit.jsonl\n"


def files(folder: Path) -> set[str]:
    """The files below a folder, git's own left out."""
    paths = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return {path for path in paths if not path.startswith(".git/") and "__pycache__" not in path}
