"""Secrets that text assigns to a name: settings, scripts, command lines, markup, and what an encoding hides of them."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import unquote

from signet_recording_proxy.redaction.secret_names import is_secret_member, is_secret_name, is_value

Token = Callable[[str], str]

_ASSIGNMENT = re.compile(
    r"(?<![A-Za-z0-9_.-])([A-Za-z_][A-Za-z0-9_.-]{1,63}+)(\\{0,4}[\"'])?[ \t]{0,4}+(:=|=>|=|:)[ \t]{0,4}+"
    r"(\\{0,4}[\"'`])?"
)
_BARE = re.compile(r"[^\s\"'<>;&|,(){}\[\]`\\]{4,512}+")
_ELEMENT = re.compile(r"<([A-Za-z_][A-Za-z0-9_.:-]{1,63}+)(?:\s[^<>]{0,200}+)?>([^<>]{3,400}+)</")
_NAMED = re.compile(r"name=\\{0,4}[\"']?([A-Za-z0-9_.\[\]-]{1,64}+)")
_VALUED = re.compile(r"value=\\{0,4}[\"']([^\"'<>\\]{3,400}+)")
_INPUT = re.compile(r"<input\s[^<>]{1,600}+>", re.IGNORECASE)
_KEYS = re.compile(r"(?:[A-Z0-9]{1,30}_){0,6}KEY\Z")
_NO_KEYS = re.compile(r"(?:SESSION|PRIMARY|PUBLIC|FOREIGN|CACHE|PARTITION|SORT|HOT|ROW|MAP|IDEMPOTENCY|SAVE)_KEY\Z")
_COMMANDS = (
    re.compile(
        r"\bcurl\b[^\n|;]{0,400}?\s(?:-u|--(?:proxy-)?user)[ =]?\\{0,4}[\"']?[^\s:\"'\\]{1,64}+:([^\s\"'\\]{3,}+)"
    ),
    re.compile(
        r"\b(?:mysql|mysqldump|mysqladmin|mariadb)\b[^\n|;]{0,200}?\s-p\\{0,4}[\"']?([^\s\"'\\-][^\s\"'\\]{2,}+)"
    ),
    re.compile(r"\bsshpass\b\s{1,4}-p\s{0,4}\\{0,4}[\"']?([^\s\"'\\]{3,}+)"),
    re.compile(r"\b(?:docker|podman|helm registry) login\b[^\n|;]{0,200}?\s-p[ =]?\\{0,4}[\"']?([^\s\"'\\]{4,}+)"),
    re.compile(r"\bredis-cli\b[^\n|;]{0,200}?\s-a\s{1,4}\\{0,4}[\"']?([^\s\"'\\]{4,}+)"),
    re.compile(r"\s-pass(?:in|out|word)?\s{1,4}pass:([^\s\"'\\]{3,}+)"),
)
_COMMAND_STEMS = ("curl", "mysql", "mariadb", "sshpass", "login", "redis-cli", "-pass")


def _is_assigned(name: str, value: str, *, quoted: bool, sets_variable: bool) -> bool:
    """Whether text that gives this value to this name gives away a secret.

    Prose and code name secrets all the time: `token: string`, `password = get_password()`. So what stands without
    quotes has to look like one, but for a variable of a shell.
    """
    if not is_value(value):
        return False
    digit, letter = any(map(str.isdigit, value)), any(map(str.isalpha, value))
    if name.isupper() and _KEYS.match(name) and not _NO_KEYS.search(name):
        return sets_variable and len(value) >= 8 and digit and letter
    if not is_secret_member(name, value):
        return False
    if quoted:
        return len(value) >= 4 and (digit or is_secret_name(name)) and not value.isspace()
    if sets_variable and name.isupper():
        return len(value) >= 6
    return len(value) >= 6 and digit and (letter or len(value) >= 8)


class _Assignments:
    """`name = value` in any of the spellings of settings and scripts."""

    def replace(self, text: str, token: Token) -> str:
        """`text` with each secret replaced by what `token` gives for it."""
        pieces: list[str] = []
        done = 0
        for match in _ASSIGNMENT.finditer(text):
            start = match.end()
            if start < done:
                continue
            name, opened = match[1], match[4]
            end = self._end(text, start, opened)
            value = text[start:end]
            around = text[match.end(1) : start - len(opened or "")]
            if end > start and _is_assigned(name, value, quoted=opened is not None, sets_variable=around == "="):
                pieces += (text[done:start], token(value))
                done = end
        return "".join((*pieces, text[done:])) if pieces else text

    def _end(self, text: str, start: int, opened: str | None) -> int:
        if opened is not None:
            end = text.find(opened, start)
            line_end = text.find("\n", start)
            return start if end < 0 or 0 <= line_end < end or end - start > 4096 else end
        value = _BARE.match(text, start)
        if value is None or text[value.end() : value.end() + 1] in ("(", "[", "{"):
            return start
        return start + len(value[0].rstrip(".:!?"))


class _Markup:
    """`<password>…</password>` and fields of HTML forms."""

    def replace(self, text: str, token: Token) -> str:
        """`text` with each secret replaced by what `token` gives for it."""
        if "<" not in text:
            return text
        text = _ELEMENT.sub(lambda found: self._element(found, token), text)
        return _INPUT.sub(lambda found: self._input(found[0], token), text) if "value=" in text else text

    def _element(self, found: re.Match[str], token: Token) -> str:
        name, value = found[1].rpartition(":")[2], found[2].strip()
        if not is_secret_member(name, value) or len(value.split()) > 1:
            return found[0]
        return found[0].replace(value, token(value))

    def _input(self, element: str, token: Token) -> str:
        name, value = _NAMED.search(element), _VALUED.search(element)
        if name is None or value is None or not is_secret_member(name[1], value[1]):
            return element
        return element.replace(value[1], token(value[1]))


class _Commands:
    """Passwords that programs take on their command lines."""

    def replace(self, text: str, token: Token) -> str:
        """`text` with each secret replaced by what `token` gives for it."""
        lowered = text.lower()
        if not any(stem in lowered for stem in _COMMAND_STEMS):
            return text
        for pattern in _COMMANDS:
            text = pattern.sub(lambda found: self._replaced(found, token), text)
        return text

    @staticmethod
    def _replaced(found: re.Match[str], token: Token) -> str:
        if not is_value(found[1]):
            return found[0]
        start, end = found.start(1) - found.start(), found.end(1) - found.start()
        return found[0][:start] + token(found[1]) + found[0][end:]


ASSIGNED = (_Assignments(), _Markup(), _Commands())
"""What gives a secret a name, in the order in which it is looked for."""

_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{24,16384}+={0,2}")
_HEX = re.compile(r"(?<![0-9A-Fa-f])(?:[0-9A-Fa-f]{2}){12,8192}+(?![0-9A-Fa-f])")
_WORD = re.compile(r"[^\s\"'<>]{3,4096}+")
ENCODED = re.compile(rb"[A-Za-z0-9+/_-]{24}|%[0-9A-Fa-f]{2}")
"""Where nothing of this is in a line, no encoding hides anything in it."""


@dataclass(frozen=True)
class Hidden:
    """Secrets that show when base64, hexadecimal or percent escapes are undone; `clean` takes out what then shows."""

    clean: Callable[[str], str]

    def replace(self, text: str, token: Token) -> str:
        """`text` with the encoded text that hides a secret replaced by what `token` gives for it."""
        if "%" in text:
            text = _WORD.sub(lambda found: self._unescaped(found[0], token) if "%" in found[0] else found[0], text)
        text = _HEX.sub(lambda found: self._decoded(found[0], bytes.fromhex, token), text)
        return _BASE64.sub(lambda found: self._decoded(found[0], _from_base64, token), text)

    def _unescaped(self, escaped: str, token: Token) -> str:
        plain = escaped
        for _ in range(3):
            undone = unquote(plain)
            if undone == plain:
                break
            plain = undone
            if self.clean(plain) != plain:
                return token(escaped)
        return escaped

    def _decoded(self, run: str, decode: Callable[[str], bytes], token: Token) -> str:
        try:
            plain = decode(run).decode()
        except (ValueError, binascii.Error):
            return run
        printable = all(character.isprintable() or character in "\r\n\t" for character in plain)
        return token(run) if printable and self.clean(plain) != plain else run


def _from_base64(run: str) -> bytes:
    standard = run.rstrip("=").translate(str.maketrans("-_", "+/"))
    return base64.b64decode(standard + "=" * (-len(standard) % 4), validate=True)
