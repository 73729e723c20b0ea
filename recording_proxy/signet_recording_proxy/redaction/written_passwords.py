"""Passwords that stand after words and colons instead of a sign: in statements of SQL, in netrc, in pgpass; as data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from signet_recording_proxy.redaction.secret_names import is_value, mixes

_BLANKS = r"\s{1,64}+"
_WORD = r"\S{1,255}+"
# A sentence about machines names none: `the machine has login and password fields`.
_HOST = r"(?=\S{0,253}[.:0-9-]|localhost\s)" + _WORD
_IN_QUOTES = r"(?:\\{0,4}'((?:[^'\\\n]|''|\\[^'\n])++)\\{0,4}'|\\{0,4}\"((?:[^\"\\\n]|\\[^\"\n])++)\\{0,4}\")"
_PASSWORD = rf"password{_BLANKS}(\S{{3,256}}+)"
_ANY_OR_NAME = r"(?:\*|[A-Za-z_][A-Za-z0-9_.-]{0,63}+)"
_OWNERS = (
    *("admin", "auth", "bot", "cert", "current", "database", "db", "ftp", "github", "gitlab", "http", "https", "key"),
    *("keystore", "ldap", "login", "mail", "mongo", "mysql", "new", "old", "pg", "postgres", "proxy", "redis"),
    *("registry", "root", "service", "smtp", "ssh", "store", "truststore", "user", "vault"),
)
"""Whose password an option may give: `--no-password` and `--ask-password` give none."""


def _mixes(value: str) -> bool:
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
            rf"\bmachine{_BLANKS}{_HOST}{_BLANKS}(?:(?:(?:login|account){_BLANKS}{_WORD}{_BLANKS}){{1,2}}+{_PASSWORD}"
            rf"|{_PASSWORD}(?={_BLANKS}login\s))"
        ),
        is_value,
    ),
    (
        ("default login",),
        rf"\bdefault login{_BLANKS}{_WORD}{_BLANKS}{_PASSWORD}",
        _mixes,
    ),
    (
        tuple(f"-{kind} " for kind in ("password", "passphrase", "token", "secret", "key")),
        (
            rf"(?<![A-Za-z0-9-])--(?:(?:{'|'.join(_OWNERS)})-){{1,3}}"
            r"(?:api-key|password|passphrase|token|secret) {1,4}"
            r"(?:\\{0,4}[\"'])?([^\s\"'<>;&|$\\`()-][^\s\"'<>;&|\\`()]{7,255}+)"
        ),
        _mixes,
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
