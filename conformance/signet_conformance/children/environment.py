"""What a child process sees of our environment."""

from __future__ import annotations

import os
from pathlib import Path

_INHERITED = (
    "PATH",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "PYTHONPATH",
    "PYTHONHASHSEED",
    "VIRTUAL_ENV",
    "COVERAGE_PROCESS_START",
)
"""What a child may see of our environment: never a credential, never the user's own Signet settings."""


def clean_environment(home: Path, **extra: str) -> dict[str, str]:
    """An environment for a child: a home of its own, no inherited credentials."""
    kept = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return {**kept, "HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config"), "NO_COLOR": "1", **extra}
