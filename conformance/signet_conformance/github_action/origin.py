"""Where the installed kit came from: the repository and commit by which a workflow can pin its action."""

from __future__ import annotations

import json
import re
import subprocess
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from signet_conformance.errors import UsageError, printable

_DISTRIBUTION = "signet-conformance"
_PIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100}@[0-9a-f]{40}")
_ADDRESS = re.compile(r"(?:https://|ssh://git@|git@)github\.com[/:]([A-Za-z0-9-]+/[A-Za-z0-9._-]+?)(?:\.git)?/?")


def checked_pin(text: str) -> str:
    """A pin as a user writes it, OWNER/REPOSITORY@COMMIT. Raises UsageError for anything else, a tag included."""
    if _PIN.fullmatch(text) is None:
        raise UsageError(
            f"{printable(text, 120)!r} is not OWNER/REPOSITORY@COMMIT with all 40 digits of the commit",
            where="--kit",
            remedy="a tag can be moved; git rev-parse HEAD in the kit's checkout prints the commit",
        )
    return text


def installed_pin() -> str | None:
    """The pin of the kit that runs: from what pip noted of its source, or the checkout that it was installed from.

    None where the kit came from a package index, or from a checkout that has no commit or no such remote.
    """
    try:
        noted: Any = json.loads(distribution(_DISTRIBUTION).read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, OSError, ValueError):
        return None
    address = str(noted.get("url", ""))
    if "vcs_info" in noted:
        return _pin(address, str(noted["vcs_info"].get("commit_id", "")))
    parts = urlsplit(address)
    if parts.scheme != "file" or "dir_info" not in noted:
        return None
    folder = Path(unquote(parts.path))
    return _pin(_git(folder, "config", "--get", "remote.origin.url"), _git(folder, "rev-parse", "HEAD"))


def _pin(address: str, commit: str) -> str | None:
    origin = _ADDRESS.fullmatch(address)
    pin = f"{origin[1]}@{commit}" if origin is not None else ""
    return pin if _PIN.fullmatch(pin) is not None else None


def _git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
