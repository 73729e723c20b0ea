"""The reference harness with defects that only certain sessions show: `python broken_reference.py DEFECT...`."""

from __future__ import annotations

import json
import os
import sys
from typing import Any
from urllib.parse import urlsplit

import httpx

from signet_reference_harness.daemon_client.plain_http import PlainTransport
from signet_reference_harness.driver import main

START, PROMPT, END = "/api/hooks/session-start", "/api/hooks/user-prompt-submit", "/api/hooks/session-end"
PRE, COMPLETE = "/api/hooks/pre-compaction", "/api/hooks/compaction-complete"


class BrokenTransport(PlainTransport):
    """Spoils requests on their way. Each defect is a method `_<defect>` that changes body and headers."""

    def __init__(self, defects: list[str]) -> None:
        daemon = urlsplit(os.environ["SIGNET_DAEMON_URL"])
        super().__init__(daemon.hostname or "", daemon.port or 80, most=8)
        self._defects = [getattr(self, f"_{defect}") for defect in defects]
        self._repeats = "empty_repeat" in defects
        self._last_agent = ""
        self._cleared: set[str] = set()
        self._prepared: set[str] = set()
        self._starts = 0
        self._begun: list[str] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send the request, spoilt."""
        body = json.loads(request.content) if request.content else {}
        headers = dict(request.headers)
        for defect in self._defects:
            defect(request.url.path, body, headers)
        key = str(body.get("sessionKey"))
        try:
            response = await super().handle_async_request(_made(request, body, headers))
        except httpx.TransportError:
            if not self._repeats_now(request, key):
                raise
            return await super().handle_async_request(_made(request, {**body, "summary": ""}, headers))
        if request.url.path == PRE and response.status_code == 200:
            self._prepared.add(key)
        if response.status_code == 500 and self._repeats_now(request, key):
            await response.aread()
            return await super().handle_async_request(_made(request, {**body, "summary": ""}, headers))
        return response

    def _repeats_now(self, request: httpx.Request, key: str) -> bool:
        return self._repeats and request.url.path == COMPLETE and key in self._prepared

    def _empty_repeat(self, path: str, body: dict[str, Any], headers: dict[str, str]) -> None:
        """Where the compaction could be begun and not completed, it is completed again, without a summary."""

    def _last_started_agent(self, path: str, body: dict[str, Any], headers: dict[str, str]) -> None:  # noqa: ARG002 - one signature for all
        """Prompts carry the agent of the session that was started last."""
        if path == START:
            self._last_agent = body["agentId"]
        elif path == PROMPT:
            body["agentId"] = self._last_agent

    def _legacy_after_clear(self, path: str, body: dict[str, Any], headers: dict[str, str]) -> None:
        """Where a cleared session is resumed, the header names another runtime path than the body."""
        if path == START and body["source"] == "clear":
            self._cleared.add(body["sessionKey"])
        elif path == START and body["source"] == "resume" and body["sessionKey"] in self._cleared:
            headers["x-signet-runtime-path"] = "legacy"

    def _late_ends(self, path: str, body: dict[str, Any], headers: dict[str, str]) -> None:  # noqa: ARG002 - one signature for all
        """An end does not go out before two other sessions have begun: the harness sends it later."""
        if path == START:
            self._begun.append(body["sessionKey"])
        elif path == END and body["sessionKey"] in self._begun[-2:]:
            raise httpx.ConnectError("held back")

    def _unnamed_compaction(self, path: str, body: dict[str, Any], headers: dict[str, str]) -> None:  # noqa: ARG002 - one signature for all
        """Completed compactions do not name the harness."""
        if path == COMPLETE:
            body["harness"] = ""

    def _nameless_when_old(self, path: str, body: dict[str, Any], headers: dict[str, str]) -> None:  # noqa: ARG002 - one signature for all
        """From the sixth start of the process on, starts do not name the harness."""
        if path == START:
            self._starts += 1
            if self._starts > 5:
                body["harness"] = ""

    def _dies_when_old(self, path: str, body: dict[str, Any], headers: dict[str, str]) -> None:  # noqa: ARG002 - one signature for all
        """The process ends at its sixth start."""
        if path == START:
            self._starts += 1
            if self._starts > 5:
                os._exit(3)

    def _dies_at_clear(self, path: str, body: dict[str, Any], headers: dict[str, str]) -> None:  # noqa: ARG002 - one signature for all
        """The process ends when a context is cleared."""
        if path == END and body["reason"] == "clear":
            os._exit(3)


def _made(request: httpx.Request, body: dict[str, Any], headers: dict[str, str]) -> httpx.Request:
    content = json.dumps(body).encode() if request.content else None
    kept = {name: value for name, value in headers.items() if name not in ("content-length", "transfer-encoding")}
    return httpx.Request(request.method, request.url, headers=kept, content=content, extensions=request.extensions)


if __name__ == "__main__":
    sys.exit(main(transport=BrokenTransport(sys.argv[1:])))
