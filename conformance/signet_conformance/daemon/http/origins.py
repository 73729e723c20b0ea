"""Which pages of a browser may speak to the daemon, and by which names it may be called.

A page can send requests to a daemon on the same machine that the user never asked for; the browser keeps only the
answer from it. So a real daemon can be made to run commands, and this one refuses what a foreign page sends.
"""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from starlette.requests import Request

_LOCAL_HOST: Final = re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\])(?::\d+)?", re.IGNORECASE)
_PORT: Final = re.compile(r":\d+\Z")
_PAGES: Final = (
    *(f"http://{host}:{port}" for host in ("localhost", "127.0.0.1") for port in (3850, 5173)),
    "app://signet",
)


def is_local(host: str) -> bool:
    """Whether a Host header names this machine: a page that rebinds its own name to it does not."""
    return _LOCAL_HOST.fullmatch(host) is not None


def is_known(origin: str | None) -> bool:
    """Whether these are pages of the daemon's own interfaces, which a real daemon lets read its answers."""
    return origin in _PAGES


def is_foreign(request: Request) -> bool:
    """Whether a foreign page sent this. Programs other than browsers name no origin.

    GET /health changes nothing, and a real daemon tells it to every page.
    """
    if request.method in ("GET", "HEAD") and request.url.path == "/health":
        return False
    sites = {site.strip().lower() for site in request.headers.getlist("sec-fetch-site")}
    if "cross-site" in sites:
        return True
    origins = request.headers.getlist("origin")
    if not origins:
        # An image or a script of a page on another port of this machine names no origin.
        return "same-site" in sites
    host = request.headers.get("host", "").lower()
    own = f"http://{host}" if _names_no_domain(host) else None
    return any(not is_known(origin) and origin.lower() != own for origin in origins)


def _names_no_domain(host: str) -> bool:
    """Whether a Host header is `localhost` or an address: whoever owns a domain may point it here."""
    name = _PORT.sub("", host)
    try:
        return name == "localhost" or bool(ipaddress.ip_address(name.removeprefix("[").removesuffix("]")))
    except ValueError:
        return False
