"""Passwords without a name and a sign before them: in addresses, in statements of SQL, in netrc and pgpass.

In an address a password may hold what addresses are divided by: `@`, `/`, `?` or `#`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from signet_recording_proxy.redaction.secret_names import is_value, mixes

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
    """The length of the password in the text after `scheme://user:`, up to the next blank; 0 without a password.

    It ends at the last `@` before the host. A password with `/`, `?` or `#` counts only where the address has no other
    reading: `host:8080/@scope` is a host with its port, and `user:password@host.org/@scope` has its host.
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


_BLANKS = r"\s{1,64}+"
_WORD = r"\S{1,255}+"
# A sentence about machines names none: `the machine has login and password fields`.
_MACHINE = r"(?=\S{0,253}[.:0-9-]|localhost\s)" + _WORD
_IN_QUOTES = r"(?:\\{0,4}'((?:[^'\\\n]|''|\\[^'\n])++)\\{0,4}'|\\{0,4}\"((?:[^\"\\\n]|\\[^\"\n])++)\\{0,4}\")"
_PASSWORD = rf"password{_BLANKS}(\S{{3,256}}+)"
_ANY_OR_NAME = r"(?:\*|[A-Za-z_][A-Za-z0-9_.-]{0,63}+)"
_OWNERS = (
    *("admin", "auth", "bot", "cert", "current", "database", "db", "ftp", "github", "gitlab", "http", "https", "key"),
    *("keystore", "ldap", "login", "mail", "mongo", "mysql", "new", "old", "pg", "postgres", "proxy", "redis"),
    *("registry", "root", "service", "smtp", "ssh", "store", "truststore", "user", "vault"),
)
"""Whose password an option may give: `--no-password` and `--ask-password` give none."""


def _is_mixed(value: str) -> bool:
    return is_value(value) and mixes(value)


WRITTEN_OUT: Final[tuple[tuple[tuple[str, ...], str, Callable[[str], bool]], ...]] = (
    (
        ("identified ",),
        rf"\b(?i:identified (?:with{_BLANKS}{_WORD}{_BLANKS})?(?:by|as){_BLANKS}(?:password{_BLANKS})?){_IN_QUOTES}",
        is_value,
    ),
    # In small letters a sentence may say it of a field: password 'must not be empty'.
    (("password '", "password('"), r"\bPASSWORD(?: |\()" + _IN_QUOTES, is_value),
    (
        ("password '",),
        r"\b(?i:(?:create|alter)\s{1,8}(?:role|user)\s[^;\n']{0,200}?\spassword )" + _IN_QUOTES,
        is_value,
    ),
    (
        ("machine",),
        (
            rf"\bmachine{_BLANKS}{_MACHINE}{_BLANKS}(?:(?:(?:login|account){_BLANKS}{_WORD}{_BLANKS}){{1,2}}+{_PASSWORD}"
            rf"|{_PASSWORD}(?={_BLANKS}login\s))"
        ),
        is_value,
    ),
    (
        ("default login",),
        rf"\bdefault login{_BLANKS}{_WORD}{_BLANKS}{_PASSWORD}",
        _is_mixed,
    ),
    (
        tuple(f"-{kind} " for kind in ("password", "passphrase", "token", "secret", "key")),
        (
            rf"(?<![A-Za-z0-9-])--(?:(?:{'|'.join(_OWNERS)})-){{1,3}}"
            r"(?:api-key|password|passphrase|token|secret) {1,4}"
            r"(?:\\{0,4}[\"'])?([^\s\"'<>;&|$\\`()-][^\s\"'<>;&|\\`()]{7,255}+)"
        ),
        _is_mixed,
    ),
    # The ports that databases listen at: `main.ts:1234:15:error:TS2304` is a place in a file.
    (
        (":*:", ":543"),
        (
            r"(?:(?<=[\s\"'/])|(?<=\\n)|(?<![\s\S]))(?:\*|[A-Za-z0-9._-]{1,255}+):(?:\*|543[234]):"
            rf"{_ANY_OR_NAME}:{_ANY_OR_NAME}:([^\s\"'\\:]{{3,256}}+)(?![^\s\"'\\])"
        ),
        is_value,
    ),
)
"""Beginnings in lower case of which text that holds it has at least one, expression, what has the last word on it."""
