"""Answers that the recorder makes up, and true ones that a fault adds to, as mitmproxy carries them."""

from __future__ import annotations

import json

from mitmproxy.http import Response

from signet_recording_proxy.body import parse_json
from signet_recording_proxy.faults import Answer, Fault


def made_up(answer: Answer) -> Response:
    """The answer with the headers that it has, and no others."""
    text = json.dumps(answer.json) if answer.text is None else answer.text
    response = Response.make(answer.status, text.encode())
    response.headers.clear()
    if answer.media_type is not None:
        response.headers["content-type"] = answer.media_type
    response.headers["content-length"] = str(len(text.encode()) if answer.promised is None else answer.promised)
    for name, value in answer.headers:
        response.headers[name] = value
    return response


def refused_page() -> Response:
    """The answer to a foreign page."""
    return made_up(Answer(403, json={"error": "origin not allowed"}, headers=(("connection", "close"),)))


def add_members(response: Response, fault: Fault) -> bool:
    """Add the fault's unknown members to an answer that is a JSON object; False for any other answer."""
    try:
        is_json, value = parse_json((response.content or b"").decode())
    except ValueError:  # not in the content coding that it claims, or not UTF-8
        return False
    if not is_json or not isinstance(value, dict):
        return False
    response.content = json.dumps({**value, **fault.unknown_members()}, ensure_ascii=False).encode()
    return True
