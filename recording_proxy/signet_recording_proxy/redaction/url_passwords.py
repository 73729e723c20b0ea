"""Where the password of an address ends that holds what addresses are divided by: `@`, `/`, `?` or `#`."""

from __future__ import annotations

import re
from typing import Final

from signet_recording_proxy.redaction.secret_names import mixes

LONGEST: Final = 512
# A port, or what stands for one in documents and templates.
_PORT = re.compile(
    r"(?:[0-9]{1,5}|[$%]?[a-z_]{0,16}port|%[ds]|\*|[^/?#]{0,256}[{}][^/?#]{0,256})(?:[/?#]|\Z)", re.IGNORECASE
)
_HOST = r"(?:[A-Za-z0-9_.-]{1,255}+|\[[0-9A-Fa-f:.]{2,45}\])"
_BEFORE_HOST = re.compile(rf"@(?={_HOST}(?::[0-9]{{1,5}})?(?:[/?#,;)\]}}`|]|\Z))")
_CERTAIN_HOST = re.compile(
    r"@(?=(?:localhost|(?:[A-Za-z0-9_-]+\.)+[A-Za-z]{2,}|(?:[0-9]{1,3}\.){3}[0-9]{1,3}|\[[0-9A-Fa-f:.]{2,45}\]|"
    r"[A-Za-z0-9_-]{1,64}:[0-9]{2,5})(?![A-Za-z0-9_.@-]))"
)
_NAME_ALONE = re.compile(r"[A-Za-z0-9_-]{1,64}/")


def password_length(rest: str, user: str) -> int:
    """How many characters are the password, of what stands behind `scheme://user:` up to a blank; 0 for none.

    Up to the last `@` before the host. A password with `/`, `?` or `#` is told where the address could not be read
    otherwise: `host:8080/@scope` is a host with its port, and `user:password@host.org/@scope` has its host.
    """
    slash = next((at for at, character in enumerate(rest) if character in "/?#"), len(rest))
    authority = rest[:slash]
    if "@" in authority:
        return _in_authority(rest, authority)
    if "@" not in rest or _PORT.match(rest) or "." in user:
        return 0
    certain = _CERTAIN_HOST.search(rest)
    end = rest.rfind("@") if certain is None else certain.start()
    is_version = certain is None and rest[end + 1 : end + 2].isdigit()
    return end if mixes(rest[:end]) and not is_version and _BEFORE_HOST.match(rest, end) else 0


def _in_authority(rest: str, authority: str) -> int:
    before_host = _BEFORE_HOST.search(rest)
    end = authority.rfind("@") if before_host is None or before_host.start() >= len(authority) else before_host.start()
    tail = rest[end + 1 :]
    # `p@ss/w#rd@host`: nobody names a host `ss` and goes on to a fragment with an `@`.
    name = _NAME_ALONE.match(tail)
    if name is not None and tail[: name.end() - 1] != "localhost" and "#" in tail:
        last = rest.rfind("@")
        if last > end + 1 + tail.index("#") and _BEFORE_HOST.match(rest, last):
            return last
    return end
