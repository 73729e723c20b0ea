"""Requests to a server on loopback: httpx by itself loads the store of certificates for each, which takes 20 ms."""

from __future__ import annotations

import ssl
from functools import partial
from typing import Final

import httpx

NO_CERTIFICATES: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
get: Final = partial(httpx.get, trust_env=False, verify=NO_CERTIFICATES)
post: Final = partial(httpx.post, trust_env=False, verify=NO_CERTIFICATES)
options: Final = partial(httpx.options, trust_env=False, verify=NO_CERTIFICATES)
