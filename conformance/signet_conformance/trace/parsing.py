"""JSON as traces hold it: half emoji and NaN are read, as JavaScript writes them; depth is bounded."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from msgspec import MsgspecError
from msgspec.json import decode

from signet_conformance.errors import printable

MAX_DEPTH = 200

JSONValue = Any
"""A parsed JSON value: dict, list, str, int, float, bool or None."""


class NotJSONError(ValueError):
    """Why some bytes cannot be read as JSON."""


def parse(raw: bytes) -> JSONValue:
    """The value of some bytes of UTF-8; raise NotJSONError where they are not JSON, or nested too deep."""
    # Nearly all that is read is plain JSON.
    if is_shallow(raw):
        with suppress(MsgspecError, UnicodeError):
            return decode(raw)
    return _parse_leniently(raw)


def is_shallow(raw: bytes) -> bool:
    """Whether so few objects and arrays begin in some JSON that it cannot be nested deeper than MAX_DEPTH."""
    # Both characters are rare: to take them out is twice as fast as to count them.
    rest = raw.replace(b"{", b"", MAX_DEPTH + 1).replace(b"[", b"", MAX_DEPTH + 1)
    return len(raw) - len(rest) <= MAX_DEPTH


def _parse_leniently(raw: bytes) -> JSONValue:
    # Not at the top: importing it takes longer than reading a recording, and few recordings need it.
    from pydantic_core import from_json

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
