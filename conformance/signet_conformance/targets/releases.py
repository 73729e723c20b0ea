"""Release numbers of hosts and connectors, and the days of Signet's own releases."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path


def numbers(release: str) -> list[int]:
    """The numbers of a release; releases sort by them."""
    return [int(part) for part in re.findall(r"\d+", release)]


def signet_day(release: str) -> str | None:
    """The day on which a release of Signet's connectors came out; None if the release is not known.

    The file has the first release of each day. Any other release counts as of the day of the last one before it.
    """
    given, known = numbers(release), _days()
    if not given or given[:2] > numbers(list(known)[-1]):
        return None
    return next((known[first] for first in reversed(list(known)) if numbers(first) <= given), None)


@cache
def _days() -> Mapping[str, str]:
    days: dict[str, str] = json.loads((Path(__file__).parent / "days" / "signet.json").read_bytes())
    return days
