"""Answers that the recorder makes up, and true ones that a fault adds to, as mitmproxy carries them."""

from __future__ import annotations

from mitmproxy.http import Response

from signet_recording_proxy.faults import Answer, Fault


def made_up(answer: Answer) -> Response:
    """The answer with the headers that it has, and no others."""
    response = Response.make(answer.status, answer.body)
    response.headers.clear()
    for name, value in answer.fields:
        response.headers[name] = value
    return response


def add_members(response: Response, fault: Fault) -> bool:
    """Add the fault's unknown members to an answer that is a JSON object; False for any other answer."""
    try:
        changed = fault.with_unknown_members(response.content or b"")
    except ValueError:  # not in the content coding that it claims
        return False
    if changed is None:
        return False
    response.content = changed
    return True
