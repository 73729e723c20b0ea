"""The server's own paths: what reached the model, and what it answers next."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from signet_reference_harness.documents import DocumentError, parse_document
from signet_reference_harness.llm_server.kept import Requests
from signet_reference_harness.llm_server.playback import Playback
from signet_reference_harness.llm_server.script import Script, Turns

LONGEST_WAIT_S: Final = 60.0


class Control:
    """Answers requests to the server's own paths."""

    def __init__(self, playback: Playback, requests: Requests) -> None:
        self._playback = playback
        self._requests = requests

    async def answer(self, request: Request, body: bytes) -> Response:
        """The answer to a request for one of the paths."""
        act = ROUTES.get((request.method, request.url.path))
        if act is None:
            return problem(405, f"{request.url.path} knows no {request.method}")
        try:
            return json_response(await act(self, request, body))
        except DocumentError as error:
            return problem(400, str(error))

    async def list_requests(self, request: Request, body: bytes) -> Any:
        """The requests after a number; with wait_s the first of them is waited for."""
        del body
        after, wait_s = (_number(request, name) for name in ("after", "wait_s"))
        kept = await self._requests.after(int(after), min(wait_s, LONGEST_WAIT_S))
        return {"requests": [each.to_json() for each in kept], "dropped": self._requests.dropped}

    async def forget_requests(self, request: Request, body: bytes) -> Any:
        """Forget the requests; the number of the last one is what the next are after."""
        del request, body
        return {"requests": [], "last": self._requests.forget()}

    async def tell_script(self, request: Request, body: bytes) -> Any:
        """How many turns are left."""
        del request, body
        return {"left": self._playback.left}

    async def replace_script(self, request: Request, body: bytes) -> Any:
        """Play another script."""
        self._playback.replace(parse_document(Script, body, "PUT /script"))
        return await self.tell_script(request, body)

    async def add_turns(self, request: Request, body: bytes) -> Any:
        """Add turns to the script."""
        added = parse_document(Turns, body, "POST /turns")
        await self._playback.add(added.turns, added.request)
        return await self.tell_script(request, body)


ROUTES: Final[Mapping[tuple[str, str], Callable[[Control, Request, bytes], Awaitable[Any]]]] = {
    ("GET", "/requests"): Control.list_requests,
    ("DELETE", "/requests"): Control.forget_requests,
    ("GET", "/script"): Control.tell_script,
    ("PUT", "/script"): Control.replace_script,
    ("POST", "/turns"): Control.add_turns,
}
PATHS: Final = frozenset(path for _, path in ROUTES)


def _number(request: Request, name: str) -> float:
    text = request.query_params.get(name, "0")
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise DocumentError(f"GET /requests: {name} is {text[:60]!r}, expected a number of 0 or more")
    return number


def json_response(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A value as a JSON answer. Its text is ASCII: what programs sent may hold half characters."""
    return Response(json.dumps(value), status, dict(headers or {}), "application/json")


def problem(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """An error of the server's own."""
    return json_response({"error": {"type": "signet_llm", "message": message}}, status, headers)
