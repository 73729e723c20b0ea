"""The way to the daemon: mitmproxy's reverse mode, without its tools around it."""

from __future__ import annotations

import importlib
import os
import sys
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any

from mitmproxy.http import Request
from mitmproxy.options import Options
from mitmproxy.proxy.mode_specs import ProxyMode
from mitmproxy.tls import TlsData

from signet_recording_proxy.engines.mitmproxy.http_layers import STREAMED_FROM
from signet_recording_proxy.listener import Listener


class Way:
    """Where requests go, and how TLS is spoken there. `options` and `mode` are what mitmproxy's core wants."""

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self.mode = ProxyMode.parse(f"reverse:{listener.upstream.url}")
        self.options = _options()
        self._tls: Any = None

    def direct(self, request: Request) -> None:
        """Send a request to the daemon of the moment, under the daemon's own name."""
        upstream = self.listener.upstream
        request.data.host, request.data.port, request.data.scheme = (
            upstream.host,
            upstream.port,
            upstream.scheme.encode(),
        )
        host = request.headers.get("host", "")
        own = self.listener.host_for(host)
        if own != host:
            request.headers["host"] = own
        origin = request.headers.get("origin")
        if origin is not None:
            request.headers["origin"] = self.listener.origin_for(origin)

    def start_tls(self, data: TlsData) -> None:
        """Speak TLS with an https daemon whose certificate is verified, as SSL_CERT_FILE or certifi say."""
        from mitmproxy import ctx
        from mitmproxy.addons.tlsconfig import TlsConfig

        if self._tls is None:
            self._tls = TlsConfig()
            self._tls.load(self.options)
            self.options.update(ssl_verify_upstream_trusted_ca=os.environ.get("SSL_CERT_FILE"))
            ctx.options = self.options
        self._tls.tls_start_server(data)


def _options() -> Options:
    options = Options()
    # The proxy core reads options that this addon declares; it is asked for nothing else.
    _proxyserver().Proxyserver().load(options)
    options.update(
        connection_strategy="lazy",
        keep_host_header=True,
        validate_inbound_headers=False,
        http2=False,
        rawtcp=True,
        stream_large_bodies=str(STREAMED_FROM),
    )
    return options


def _proxyserver() -> ModuleType:
    """`mitmproxy.addons.proxyserver`, without the other addons, which its package imports beside it.

    They bring a web application, LDAP and a template language along, which is a third of what a recorder
    takes to start. Who imports the package afterwards gets all of it.
    """
    name = "mitmproxy.addons"
    spec = find_spec(name)
    if name in sys.modules or spec is None:
        return importlib.import_module(f"{name}.proxyserver")
    sys.modules[name] = module_from_spec(spec)
    try:
        return importlib.import_module(f"{name}.proxyserver")
    finally:
        del sys.modules[name]
