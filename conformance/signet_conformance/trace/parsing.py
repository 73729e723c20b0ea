"""JSON as traces hold it: half emoji and NaN are read, as JavaScript writes them; depth is bounded."""

from __future__ import annotations

import json
from typing import Any

from pydantic_core import from_json

from signet_conformance.errors import printable

MAX_DEPTH = 200

JSONValue = Any
"""What a JSON parser returns: dict, list, str, int, float, bool or None."""


class NotJSONError(ValueError):
    """Why some bytes cannot be read as JSON."""


def parse(raw: bytes) -> JSONValue:
    """The value of some bytes of UTF-8; raise NotJSONError where they are not JSON, or nested too deep."""
    try:
        return from_json(raw)
    except ValueError as fast:
        if "recursion limit" in str(fast):
            raise NotJSONError(f"JSON nested deeper than {MAX_DEPTH} levels") from None
        # The fast parser refuses lone surrogates, which JavaScript connectors do send.
        try:
            value = json.loads(raw.decode("utf-8", "surrogatepass"))
        except RecursionError:
            raise NotJSONError(f"JSON nested deeper than {MAX_DEPTH} levels") from None
        except ValueError:
            raise NotJSONError(f"not JSON ({printable(fast, 160)})") from None
        if _depth_exceeds(value, MAX_DEPTH):
            raise NotJSONError(f"JSON nested deeper than {MAX_DEPTH} levels") from None
        return value


def _depth_exceeds(value: JSONValue, limit: int) -> bool:
    level = [value]
    for _ in range(limit):
        level = [
            child
            for parent in level
            for child in (parent.values() if isinstance(parent, dict) else parent if isinstance(parent, list) else ())
            if isinstance(child, (dict, list))
        ]
        if not level:
            return False
    return True
