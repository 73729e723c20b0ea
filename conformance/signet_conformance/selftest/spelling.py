"""The same message in other letters: what it says to a reader of HTTP and JSON stays as it was."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import httpx

from signet_conformance.files.json_values import put, value_at
from signet_conformance.selftest.messages import Outgoing
from signet_conformance.selftest.mutants import Change

_MARK = "\ue000"
"""Stands for a byte that is not UTF-8 until the text has become bytes."""


def spelled(request: Outgoing, change: Change, like: httpx.Request) -> httpx.Request:
    """The request for httpx, to where `like` goes, as a `spell` writes it."""
    plain = request.to_httpx(like)
    content = request.content
    if content and request.json is not None and "body" in change:
        content = BODIES[change["body"]](request.json)
    if content and "not_utf8" in change:
        content = _with_stray_bytes(request.json, change["not_utf8"])
    coding = {}
    if content and "coding" in change:
        content, coding = CODINGS[change["coding"]](content), {"content-encoding": change["coding"]}
    url = plain.url
    if change.get("path") == "percent":
        url = url.copy_with(raw_path=url.raw_path.replace(b"-", b"%2D"))
    headers = list({**request.headers, **coding}.items())
    if "header_names" in change:
        headers = [(HEADER_NAMES[change["header_names"]](name), value) for name, value in headers]
    if change.get("header_order") == "reversed":
        headers.reverse()
    headers += [(name, value) for name, value in change.get("more_headers", ())]
    return httpx.Request(
        request.method, url, headers=headers, content=content or None, extensions=dict(like.extensions)
    )


def _with_stray_bytes(body: Any, pointers: list[str]) -> bytes:
    for pointer in pointers:
        if isinstance(value := value_at(body, pointer), str):
            put(body, pointer, value + _MARK)
    return _raw(body).replace(_MARK.encode(), b"\xff")


def _raw(body: Any) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _escaped(value: Any) -> str:
    """A JSON text in which every character of every string is an escape."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{_escaped(name)}:{_escaped(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_escaped, value)) + "]"
    if isinstance(value, str):
        units = value.encode("utf-16-be", "surrogatepass").hex()
        return '"' + "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4)) + '"'
    return json.dumps(value)


def _floats(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _floats(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_floats(item) for item in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _twice(body: Any) -> str:
    members = [f"{json.dumps(name)}:{json.dumps(value)}" for name, value in body.items()]
    return "{" + ",".join(member for pair in zip(members, members, strict=True) for member in pair) + "}"


BODIES: Mapping[str, Callable[[Any], bytes]] = {
    "raw": _raw,
    "escaped": lambda body: _escaped(body).encode("ascii"),
    "indented": lambda body: b"\r\n\t " + json.dumps(body, indent=4).encode("ascii") + b"\n",
    "reversed": lambda body: json.dumps(dict(reversed(body.items()))).encode("ascii"),
    "floats": lambda body: json.dumps(_floats(body)).encode("ascii"),
    "twice": lambda body: _twice(body).encode("ascii"),
}
CODINGS: Mapping[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "deflate": zlib.compress}
HEADER_NAMES: Mapping[str, Callable[[str], str]] = {"upper": str.upper, "title": str.title}
