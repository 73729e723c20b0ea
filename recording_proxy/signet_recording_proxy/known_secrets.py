"""The forms in which a secret that is known by its value may occur in traffic."""

from __future__ import annotations

import base64
import json
import math
from urllib.parse import quote, quote_plus


def forms(secret: str) -> tuple[str, ...]:
    """`secret` as it is, JSON-escaped (once and twice), URL-encoded and in base64; the longest first."""
    found = {secret}
    for plain in (True, False):
        once = _escaped(secret, plain)
        found |= {once, _escaped(once, plain)}
    for encoded in (quote(secret, safe=""), quote(secret), quote_plus(secret)):
        found |= {encoded, _lower_hex(encoded)}
    raw = secret.encode("utf-8", "surrogatepass")
    for offset in range(3):
        standard = _base64_core(raw, offset)
        found |= {standard, standard.replace("+", "-").replace("/", "_")}
    return tuple(sorted(found, key=lambda form: (-len(form), form)))


def _escaped(text: str, ascii_only: bool) -> str:
    return json.dumps(text, ensure_ascii=ascii_only)[1:-1]


def _lower_hex(encoded: str) -> str:
    head, *rest = encoded.split("%")
    return "%".join([head, *(part[:2].lower() + part[2:] for part in rest)])


def _base64_core(raw: bytes, offset: int) -> str:
    """The characters that `raw` alone decides when it stands `offset` bytes after a multiple of three."""
    text = base64.b64encode(b"\0" * offset + raw).decode("ascii")
    return text[math.ceil(offset * 8 / 6) : (offset + len(raw)) * 8 // 6]
