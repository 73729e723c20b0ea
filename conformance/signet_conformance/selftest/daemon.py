"""The embedded daemon with the changes of a mutant or of variants: `python -m signet_conformance.selftest.daemon`.

It prints one JSON line with its url, like the embedded daemon. On standard input a line
`{"mutant": ID, "variants": [ID]}` sets the changes, in place of those before; either member may be absent, and a mutant
be null. The answer is a line with the ids that changed a message since the line before. The daemon ends with its
standard input.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import sys
import threading
from collections.abc import Sequence

import httpx
import uvicorn
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from signet_conformance.daemon.behaviour import VERSIONS
from signet_conformance.daemon.http import server_config
from signet_conformance.daemon.http.app import DaemonApp, create_app
from signet_conformance.daemon.state import DaemonSettings
from signet_conformance.errors import SignetConformanceError
from signet_conformance.files.json_values import only_text, parse_object
from signet_conformance.selftest.mutants import mutant, variant
from signet_conformance.selftest.transport import Chain


class BrokenDaemon:
    """An ASGI application in front of another one, with a mutating transport in between."""

    def __init__(self, app: ASGIApp) -> None:
        self._inner = httpx.ASGITransport(app, raise_app_exceptions=False)
        self._chain = Chain((), self._inner)
        self._secret: str | None = None

    @property
    def applied(self) -> Sequence[str]:
        """The mutant and the variants that changed a message since :meth:`change_as`."""
        return self._chain.applied

    def change_as(self, broken_as: str | None = None, varied_as: Sequence[str] = ()) -> None:
        """Set the change of a mutant and those of variants, in place of the ones before. Raises UsageError."""
        changes = [] if broken_as is None else [(broken_as, mutant(broken_as).change)]
        changes += [(name, change) for name in varied_as for change in variant(name).changes]
        self._chain = Chain(changes, self._inner, self._secret)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        request = Request(scope, receive)
        outgoing = httpx.Request(
            request.method, httpx.URL(str(request.url)), headers=request.headers.raw, content=await request.body()
        )
        if request.method == "POST" and request.url.path.startswith("/api/secrets/"):
            # A secret that is stored before the daemon is changed.
            self._secret = only_text(parse_object(outgoing.content).get("value")) or self._secret
        answer = await self._chain.transport.handle_async_request(outgoing)
        headers = {name: value for name, value in answer.headers.items() if name != "content-length"}
        await Response(await answer.aread(), answer.status_code, headers)(scope, receive, send)


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until standard input ends; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m signet_conformance.selftest.daemon")
    parser.add_argument("--mutant", metavar="ID", help="a mutant of schemas/mutants.json (default: none)")
    parser.add_argument("--daemon-version", default="0.145", choices=VERSIONS)
    options = parser.parse_args(arguments)
    try:
        daemon = create_app(DaemonSettings(version=options.daemon_version))
        app = BrokenDaemon(daemon)
        app.change_as(options.mutant)
    except SignetConformanceError as problem:
        print(f"{problem}", file=sys.stderr)
        return problem.exit_status
    # Named explicitly: asyncio turns Nagle's algorithm off only for sockets that say they are TCP.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(128)
        daemon.daemon.port = listener.getsockname()[1]
        asyncio.run(_serve(app, daemon, listener))
    return 0


async def _serve(app: BrokenDaemon, daemon: DaemonApp, listener: socket.socket) -> None:
    server = uvicorn.Server(server_config(app))
    loop = asyncio.get_running_loop()

    def obey() -> None:
        for line in sys.stdin:
            loop.call_soon_threadsafe(_obey, app, line)
        loop.call_soon_threadsafe(setattr, server, "should_exit", True)

    _write({"url": f"http://127.0.0.1:{listener.getsockname()[1]}"})
    threading.Thread(target=obey, daemon=True).start()
    await server.serve(sockets=[listener])
    await daemon.daemon.close()


def _obey(app: BrokenDaemon, line: str) -> None:
    applied = list(app.applied)
    try:
        asked = json.loads(line)
        app.change_as(asked.get("mutant"), asked.get("variants", ()))
    except (ValueError, AttributeError, TypeError, SignetConformanceError) as problem:
        _write({"ok": False, "error": str(problem)})
    else:
        _write({"ok": True, "applied": applied})


def _write(answer: object) -> None:
    os.write(1, json.dumps(answer).encode("ascii") + b"\n")


if __name__ == "__main__":
    sys.exit(main())
