"""How `check` is asked for a report, whatever its format."""

from __future__ import annotations

from signet_conformance.reports import Format


def asking_for(kind: Format, file: str) -> list[str]:
    """The words of a command line that write a report of this format to `file`."""
    return [f"--{kind.name}", "--output", file] if kind.in_place_of_text else [f"--{kind.name}", file]
