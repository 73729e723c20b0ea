"""The releases of hosts and connectors, in order."""

from __future__ import annotations

import re


def numbers(release: str) -> list[int]:
    """The numbers of a release, by which releases are in order."""
    return [int(part) for part in re.findall(r"\d+", release)]
