"""Release numbers of hosts and connectors."""

from __future__ import annotations

import re


def numbers(release: str) -> list[int]:
    """The numbers of a release; releases sort by them."""
    return [int(part) for part in re.findall(r"\d+", release)]
