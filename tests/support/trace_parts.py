"""Small traces for tests of the engine, made of the trace's own parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from signet_conformance.trace import Body, Declared, Exchange, Header, Mark, Request, Response, Trace

START = "/api/hooks/session-start"


def exchange(seq: int, path: str = START, method: str = "POST", **body: Any) -> Exchange:
    """One exchange that was answered 200 with an empty object."""
    sent = Body(json=body) if method == "POST" else None
    request = Request(headers=(("content-type", "application/json"),), body=sent, method=method, path=path)
    answer = Response(body=Body(json={}), status=200)
    return Exchange(seq=seq, conn=1, t0=float(seq), t1=seq + 0.5, request=request, response=answer, line=seq + 1)


def trace(
    *exchanges: Exchange,
    marks: Sequence[Mark] = (),
    daemon_version: str | None = None,
    capabilities: tuple[str, ...] | None = None,
) -> Trace:
    """A trace of these exchanges with one declared agent."""
    declared = Declared(agents=("atlas-agent",), harness="openclaw", capabilities=capabilities)
    return Trace(Header(daemon_version=daemon_version, declared=declared), exchanges, tuple(marks))
