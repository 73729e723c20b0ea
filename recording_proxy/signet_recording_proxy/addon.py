"""An addon for mitmproxy that writes the kit's recordings: with interception, transparent mode, HTTP/2 and upgrades.

    mitmdump -s "$(signet-conformance record --addon)" --mode reverse:http://127.0.0.1:3850 --set signet_out=run.jsonl

Bodies are streamed, and nothing is changed. If the daemon refuses the connection, mitmproxy itself answers 502, and
the recording holds no answer.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from functools import partial
from typing import Any

from mitmproxy import ctx
from mitmproxy.addonmanager import Loader
from mitmproxy.connection import Client
from mitmproxy.exceptions import OptionsError
from mitmproxy.http import HTTPFlow, Message
from mitmproxy.proxy.mode_specs import ProxyMode, ReverseMode

from signet_conformance import __version__
from signet_conformance.errors import SignetConformanceError
from signet_conformance.trace import Declared, Header
from signet_recording_proxy.body import DEFAULT_LIMIT
from signet_recording_proxy.captures import DEFAULT_ORIGIN
from signet_recording_proxy.captures.flows import error_kind
from signet_recording_proxy.recorder import OngoingExchange, Recorder
from signet_recording_proxy.redaction.redactor import Redactor, canaries_in
from signet_recording_proxy.trace_file import Headers, SentMessage, TraceFile
from signet_recording_proxy.upstream import Upstream, health

_EXCHANGE = "signet_exchange"
_OPTIONS: Sequence[tuple[str, Any, Any, str]] = (
    ("signet_out", str, "signet-trace.jsonl", "The trace to write; it must not exist."),
    ("signet_upstream", str, "", f"The daemon's origin (default: that of reverse mode, or {DEFAULT_ORIGIN})."),
    ("signet_target", str, "", "Name of the connector, for the header."),
    ("signet_harness", str, "", "The harness that the connector names."),
    ("signet_agents", Sequence[str], [], "Agent ids that the connector acts as."),
    ("signet_canary_env", Sequence[str], [], "Variables whose values are redacted wherever they occur."),
)


class RecordingAddon:
    """Writes the exchanges with one daemon; other traffic passes unrecorded."""

    def __init__(self) -> None:
        self._upstream = Upstream(DEFAULT_ORIGIN)
        self._redactor = Redactor({})
        self._recorder: Recorder | None = None
        self._numbers: dict[str, int] = {}
        self._clients = 0
        self._failed = False

    # ---- the lifecycle of mitmproxy

    def load(self, loader: Loader) -> None:
        """Declare the options."""
        for name, kind, default, help_text in _OPTIONS:
            loader.add_option(name, kind, default, help_text)

    def configure(self, updated: set[str]) -> None:
        """Read the options; raise OptionsError if one cannot be used, which ends mitmproxy."""
        if self._recorder is not None or not updated:
            return
        if ctx.options.connection_strategy != "lazy":
            # With "eager", mitmproxy calls no hook when the daemon refuses the connection.
            ctx.options.update(connection_strategy="lazy")
        try:
            self._upstream = Upstream(ctx.options.signet_upstream or _reversed_origin(ctx.options.mode))
            self._redactor = Redactor(canaries_in(os.environ, ctx.options.signet_canary_env))
        except SignetConformanceError as refusal:
            raise OptionsError(str(refusal)) from None

    def running(self) -> None:
        """Begin the recording now, so that an obstacle is reported at once."""
        self._begin()

    def _begin(self) -> Recorder | None:
        """Return the recorder, creating it at need: a request may arrive before mitmproxy calls `running`."""
        if self._recorder is not None or self._failed:
            return self._recorder
        options = ctx.options
        header = Header(
            target=options.signet_target or None,
            upstream=self._upstream.url,
            daemon_version=health(self._upstream).version,
            declared=Declared(agents=tuple(options.signet_agents), harness=options.signet_harness or None),
            recorder=os.urandom(8).hex(),
            kit=__version__,
        )
        try:
            file = TraceFile(options.signet_out, self._redactor.header(header))
        except SignetConformanceError as failure:
            self._give_up(failure)
            return None
        self._recorder = Recorder(file, self._redactor, DEFAULT_LIMIT)
        self._recorder.watch()
        self._recorder.failure.add_done_callback(lambda failed: self._give_up(failed.result()))
        return self._recorder

    def _give_up(self, failure: SignetConformanceError) -> None:
        """Report the failure and end mitmproxy, since nothing more would be recorded."""
        self._failed = True
        logging.getLogger(__name__).error("%s", failure)
        ctx.master.shutdown()

    async def done(self) -> None:
        """Write the exchanges in flight."""
        if self._recorder is not None:
            self._recorder.abandon("mitmproxy ended")
            await self._recorder.wait_for_lines()

    def client_disconnected(self, client: Client) -> None:
        """Forget the number of a client."""
        self._numbers.pop(client.id, None)

    # ---- exchanges

    def requestheaders(self, flow: HTTPFlow) -> None:
        """A request begins."""
        request = flow.request
        addresses = {(host, request.port) for host in (request.host, request.pretty_host)}
        if (self._upstream.host, self._upstream.port) not in addresses:
            return
        if (recorder := self._begin()) is None:
            flow.kill()
            return
        exchange = recorder.begin(self._number(flow.client_conn), request.method, request.path, _headers(request))
        flow.metadata[_EXCHANGE] = exchange
        request.stream = partial(_pass, exchange.request)

    def responseheaders(self, flow: HTTPFlow) -> None:
        """An answer begins."""
        exchange: OngoingExchange | None = flow.metadata.get(_EXCHANGE)
        if exchange is not None and flow.response is not None:
            sent = exchange.begin_answer(flow.response.status_code, _headers(flow.response))
            flow.response.stream = partial(_pass, sent)

    def response(self, flow: HTTPFlow) -> None:
        """An exchange is over."""
        self._finish(flow, None)

    def error(self, flow: HTTPFlow) -> None:
        """An exchange ends without its answer, or in the middle of it."""
        self._finish(flow, error_kind(flow.error))

    def _finish(self, flow: HTTPFlow, error: str | None) -> None:
        exchange: OngoingExchange | None = flow.metadata.pop(_EXCHANGE, None)
        if exchange is not None and self._recorder is not None:
            exchange.incomplete = error == "client_closed" and flow.request.timestamp_end is None
            self._recorder.finish(exchange, error, note="" if flow.error is None else flow.error.msg)

    def _number(self, client: Client) -> int:
        if client.id not in self._numbers:
            self._clients += 1
            self._numbers[client.id] = self._clients
        return self._numbers[client.id]


def _reversed_origin(modes: Sequence[str]) -> str:
    reverse = next((mode for each in modes if isinstance(mode := ProxyMode.parse(each), ReverseMode)), None)
    if reverse is None:
        return DEFAULT_ORIGIN
    host, port = reverse.address
    return f"{reverse.scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def _pass(sent: SentMessage, data: bytes) -> bytes:
    sent.body.feed(data)
    return data


def _headers(message: Message) -> Headers:
    return [
        (name.decode("utf-8", "surrogateescape").lower(), value.decode("utf-8", "surrogateescape"))
        for name, value in message.headers.fields
    ]


addons = [RecordingAddon()]
