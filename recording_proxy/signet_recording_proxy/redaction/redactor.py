"""Removes secrets from trace lines before they reach the disk. Pure: the traffic itself is never touched.

Each secret is replaced by `<redacted:n>`; equal secrets get equal tokens as long as the recorder lives. Secrets are
values that their name gives away (see `secret_names`), in headers, queries, paths, forms and JSON; text of a known
shape (see `secret_patterns`); canaries, whose values the recorder was given; and tokens seen in a header that holds
credentials, wherever else they occur.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

import msgspec
from msgspec.structs import replace

from signet_conformance.errors import UsageError, printable
from signet_conformance.trace import RELEASES, Header, encode
from signet_recording_proxy.body import undecoded
from signet_recording_proxy.content_coding import all_installed
from signet_recording_proxy.redaction import named_values
from signet_recording_proxy.redaction.hidden_text import is_text, recode
from signet_recording_proxy.redaction.known_secrets import KnownSecrets
from signet_recording_proxy.redaction.secret_names import is_secret_header, is_secret_parameter, mixes
from signet_recording_proxy.redaction.secret_walk import Cleaner
from signet_recording_proxy.redaction.suspects import is_suspected

_ENCODER = msgspec.json.Encoder()
_SCHEMES = frozenset({"bearer", "basic", "digest", "token", "negotiate", "apikey"})
_CLEAN_HEADER = b'["authorization","Bearer <redacted:'
_HARMLESS_HEADER = b'["access-control-allow-credentials","true"]'
"""Real daemons answer with it; its name ends as secret ones do."""
_TOKEN = re.compile(r"<redacted:(?:\d+|~\w+)>")
_PROVISIONAL = re.compile(r"<redacted:~[0-9a-f]{16}_(\d+)>")
_PROVISIONAL_IN_LINE = re.compile(_PROVISIONAL.pattern.encode())
_WORDS = re.compile(r"\S+")
_NEXT_COOKIE = re.compile(r",(?=\s{0,8}[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}+=)")
"""Where proxies joined what were several Set-Cookie headers; the comma in a date is followed by no name."""
_UNFINISHED_WORD = re.compile(r"""[^\s"'<>,;]{1,4096}\Z""")
_STORED_SECRETS = re.compile(r"/+api/+secrets/")
_FORM_TYPE = "application/x-www-form-urlencoded"
# A shorter secret, and a short one that is a plain word, may occur by chance.
_LEARNED_SHORTEST = 8
_LEARNED_ANYHOW = 16


MIN_CANARY = 8
LONG_LINE = 2 * 1024
"""In longer lines that may hold a secret keywords are looked for first: patterns over all of it take longer."""
_MOST_PLAIN, _LONGEST_PLAIN = 4096, 256


class Ready(NamedTuple):
    """A request in the form in which it may be written, and how many secrets were known when it was made."""

    encoded: bytes
    known: int


def canaries_in(environment: Mapping[str, str], names: Sequence[str]) -> dict[str, str]:
    """The values of these variables; raise UsageError for one that is unset or shorter than MIN_CANARY."""
    values = {name: environment.get(name, "") for name in names}
    for name, value in values.items():
        if len(value) < MIN_CANARY:
            raise UsageError(
                f"{printable(name, 60)} is unset or shorter than {MIN_CANARY} characters",
                where="--canary-env",
                remedy="set it to a value that cannot occur by chance",
            )
    return values


class Redactor:
    """Gives out the tokens of one recorder process."""

    def __init__(self, canaries: Mapping[str, str]) -> None:
        """`canaries` maps names to the secret values that are watched for, each of 8 characters or more."""
        self.canaries = canaries
        self._tokens: dict[str, str] = {}
        self._numbered: list[str] = []
        """The secrets in the order of their numbers."""
        self._learned: list[str] = []
        """The secrets that are looked for wherever they may stand, beside the canaries."""
        self._known = KnownSecrets()
        self._numeric: list[tuple[str, str]] = []
        self._plain_headers: set[tuple[str, str]] = set()
        """Headers whose names do not make them secret; most lines repeat them."""
        self._canary_tokens = {self._token(value): name for name, value in canaries.items()}
        for value in canaries.values():
            self._known.add(value, self._token(value), permanent=True)
            if not value.strip("0123456789.-+eE"):
                self._numeric.append((value, self._token(value)))

    def header(self, header: Header) -> Header:
        """The redacted `header`; its `declared.canaries` also maps each token to the canary that it replaces."""
        declared = header.declared
        named = {name: getattr(header, name) for name in ("target", *RELEASES)}
        texts: dict[str, Any] = {name: self.text(text) for name, text in named.items() if text is not None}
        return replace(
            header, **texts, declared=replace(declared, canaries={**declared.canaries, **self._canary_tokens})
        )

    def exchange(self, line: dict[str, Any], *, is_long: bool = False) -> bytes:
        """The encoded line of an exchange, without its secrets; `is_long` if known to be long. May change `line`."""
        credentials = self._take_from_request(line["request"])
        if line["response"] is not None:
            self._take_from(line["response"])
        return self._searched(line, credentials, is_long=is_long) + b"\n"

    def unsuspected(self, line: dict[str, Any]) -> bytes | None:
        """As `exchange`, for a line whose JSON bodies are still the raw bytes. May change `line`.

        Return None if something in it looks like a secret, which is rare: `exchange` then has to search it.
        """
        request, response = line["request"], line["response"]
        if _stores_a_secret(request["path"]):
            return None
        credentials = self._take_from_request(request)
        if response is not None:
            self._take_from(response)
        encoded = self._plain(line, credentials)
        return None if encoded is None else encoded + b"\n"

    def request(self, request: dict[str, Any]) -> Ready | None:
        """The `request` member of a line for `unsuspected`, ahead of the others. `request` may be changed."""
        if _stores_a_secret(request["path"]):
            return None
        encoded = self._plain(request, self._take_from_request(request))
        return None if encoded is None else Ready(encoded, self._known.count)

    def completed(self, frame: dict[str, Any], ready: Ready, rest: dict[str, Any]) -> bytes | None:
        """As `unsuspected`, from the members before the request, the request made ahead, and the members after it.

        `rest` may be changed. Return None also where a secret was learned since the request was encoded: the request
        may hold it.
        """
        if rest["response"] is not None:
            self._take_from(rest["response"])
        if ready.known != self._known.count:
            return None
        encoded = self._plain(rest)
        return None if encoded is None else b'%b,"request":%b,%b\n' % (_encoded(frame)[:-1], ready.encoded, encoded[1:])

    def _take_from_request(self, request: dict[str, Any]) -> int:
        """Replace secrets that their place gives away; return how many headers hold credentials."""
        stores = _stores_a_secret(request["path"])
        path = request["path"] = self._path(request["path"])
        request["query"] = [self._parameter(name, value) for name, value in request["query"]]
        if stores:
            request["body"] = self._stored_secret(request["method"], unquote(path), request["body"])
        return self._take_from(request)

    def _take_from(self, message: dict[str, Any]) -> int:
        """Replace secrets in headers, and in a body whose form would hide them; return how many headers hold some."""
        credentials, headers, plain = 0, message["headers"], self._plain_headers
        if not plain.issuperset(headers):
            message["headers"] = [pair if pair in plain else self._header(pair) for pair in headers]
            credentials = sum([name == "authorization" for name, _ in headers])
        if message["body"] is not None:
            message["body"] = self._opaque(message["body"])
        return credentials

    def _searched(self, line: dict[str, Any], credentials: int, *, is_long: bool) -> bytes:
        """Encode a line and search it for secrets, if a quick look finds anything suspect."""
        encoded = b"" if is_long else _encoded(line)
        if is_long or len(encoded) > LONG_LINE:
            return _encoded(Cleaner(self._token, self._known.replace_in, self._numeric).line(line))
        cleaner = self._cleaner(_looked_at(encoded, credentials))
        return encoded if cleaner is None else _encoded(cleaner.line(line))

    def _plain(self, members: dict[str, Any], credentials: int = 0) -> bytes | None:
        """A line or a part of one, encoded; None if it has to be searched."""
        try:
            encoded = _ENCODER.encode(members)
        except UnicodeEncodeError:
            return None
        looked_at = _looked_at(encoded, credentials)
        calls_for_search = self._numeric or is_suspected(looked_at) or self._known.in_line(looked_at)
        return None if calls_for_search else encoded

    def document(self, value: Any) -> Any:
        """Any JSON value, such as a mark's data, without its secrets."""
        cleaner = self._cleaner(_encoded({"": value}))
        return value if cleaner is None else cleaner.value(value)

    def text(self, text: str) -> str:
        """Running text without its secrets."""
        return str(self.document(text))

    def _cleaner(self, encoded: bytes) -> Cleaner | None:
        """The cleaner of a short line; None if nothing in the line looks like a secret."""
        forms = self._known.in_line(encoded)

        def without_known(text: str) -> str:
            for form, token in forms:
                text = text.replace(form, token)
            return text

        needed = forms or self._numeric or is_suspected(encoded)
        return Cleaner(self._token, without_known, self._numeric) if needed else None

    # ---- tokens

    def _token(self, secret: str) -> str:
        known = self._tokens.get(secret)
        if known is None and _TOKEN.fullmatch(secret):
            return secret  # of a trace that was converted to a capture, and comes back
        return self._number(secret) if known is None else known

    def _number(self, secret: str) -> str:
        self._numbered.append(secret)
        token = self._tokens[secret] = f"<redacted:{len(self._numbered)}>"
        return token

    def _learn(self, secret: str) -> str:
        """The token of a secret that is looked for everywhere from now on."""
        token = self._token(secret)
        is_no_word = len(secret) >= _LEARNED_SHORTEST and mixes(secret)
        if token != secret and secret not in self._known and (len(secret) >= _LEARNED_ANYHOW or is_no_word):
            self._known.add(secret, token)
            self._learned.append(secret)
        return token

    # ---- lines that another process makes

    def learn_from(self, headers: Sequence[tuple[str, str]]) -> None:
        """Learn the secrets of a message's headers, as its line would."""
        for pair in headers:
            if pair not in self._plain_headers:
                self._header(pair)

    def news(self, secrets: int, learned: int) -> tuple[Sequence[str], Sequence[str]]:
        """The numbered secrets after the first `secrets`, and those learned after the first `learned`."""
        return self._numbered[secrets:], self._learned[learned:]

    def settle(self, line: bytes | memoryview, secrets: Sequence[str]) -> bytes | memoryview:
        """Replace the tokens that a `ProvisionalRedactor` gave to `secrets` in its line by our own."""
        if not secrets:
            return line
        tokens: list[str] = []
        for secret in secrets:
            # One secret may hold the token of another.
            tokens.append(self._token(_PROVISIONAL.sub(lambda match: tokens[int(match[1])], secret)))
        return _PROVISIONAL_IN_LINE.sub(lambda match: tokens[int(match[1])].encode(), line)

    # ---- places that are secret by their name

    def _header(self, pair: tuple[str, str]) -> tuple[str, str]:
        name, value = pair
        if name.endswith("authorization"):
            scheme, *_ = value.split(None, 1) or [""]
            start = value.find(scheme) + len(scheme) if scheme.lower() in _SCHEMES else 0
            if scheme.lower() == "basic":
                self._learn_password(value[start:])
            return name, value[:start] + _WORDS.sub(lambda word: self._learn(word[0]), value[start:])
        if name == "cookie":
            return name, ";".join(map(self._cookie, value.split(";")))
        if name == "set-cookie":
            return name, ",".join(map(self._set_cookie, _NEXT_COOKIE.split(value)))
        if is_secret_header(name, value):
            return name, self._learn(value.strip())
        if len(name) + len(value) <= _LONGEST_PLAIN:
            if len(self._plain_headers) == _MOST_PLAIN:
                self._plain_headers.clear()
            self._plain_headers.add(pair)
        return pair

    def _learn_password(self, credentials: str) -> None:
        try:
            password = base64.b64decode(credentials, validate=False).decode().partition(":")[2]
        except (binascii.Error, ValueError):
            return
        if password:
            self._learn(password)

    def _cookie(self, pair: str) -> str:
        name, mark, value = pair.partition("=") if "=" in pair else ("", "", pair)
        secret = value.strip()
        return name + mark + value.replace(secret, self._token(secret)) if secret else pair

    def _set_cookie(self, value: str) -> str:
        first, mark, rest = value.partition(";")
        return self._cookie(first) + mark + rest

    def _path(self, path: str) -> str:
        if "=" in path:
            path = named_values.PATH.replace(path, self._token)
        if "%" not in path:
            return path
        parts = []
        for part in path.split("/"):
            plain = unquote(part)
            clean = self.text(plain)
            parts.append(part if clean == plain else quote(clean, safe="<:>", errors="replace"))
        return "/".join(parts)

    def _parameter(self, name: str, value: str) -> tuple[str, str]:
        if is_secret_parameter(name, value):
            return name, self._token(value)
        return name, named_values.QUERY_REST.replace(value, self._token) if ";" in value else value

    def _stored_secret(self, method: str, path: str, body: dict[str, Any] | None) -> dict[str, Any] | None:
        """The body of a request to store a secret: its value is redacted, whatever it looks like."""
        if body is None or method == "GET" or path == "/api/secrets/exec" or path.startswith("/api/secrets/exec/"):
            return body
        if "json" not in body:
            kept = {key: value for key, value in body.items() if key not in ("text", "base64")}
            content = body.get("text", body.get("base64", ""))
            return {**kept, "text": self._token(content)} if content else body
        members = body["json"]
        if not isinstance(members, dict):
            return {"json": self._token(_as_text(members))}
        return {"json": {**members, "value": self._token(_as_text(members["value"]))}} if members.get("value") else body

    # ---- bodies in a form that would hide a secret from a search of the line

    def _opaque(self, body: dict[str, Any]) -> dict[str, Any]:
        if "json" in body:
            return body
        if "base64" in body:
            raw = base64.b64decode(body["base64"])
            if not all_installed() and not is_text(raw):
                # It may be in a coding that cannot be undone here, and so hold anything.
                return undecoded(len(raw), hashlib.sha256(raw).hexdigest(), body["media_type"], "unknown")
            clean = recode(raw, self._bytes)
            return body if clean == raw else {**body, "base64": base64.b64encode(clean).decode("ascii")}
        text = body["text"]
        if "\0" in text:
            text = recode(text.encode("utf-8", "surrogatepass"), self._bytes).decode("utf-8", "replace")
        if _is_form(text, body.get("media_type")):
            text = named_values.FORM.replace(text, self._token)
        if body.get("cut"):
            text = self._without_unfinished_end(text)
        return body if text == body["text"] else {**body, "text": text}

    def _bytes(self, raw: bytes) -> bytes:
        raw = self._known.replace_in_bytes(raw)
        if not is_suspected(raw):
            return raw
        try:
            text, charset = raw.decode(), "utf-8"
        except UnicodeDecodeError:
            text, charset = raw.decode("latin-1"), "latin-1"
        return Cleaner(self._token, str, ()).text(text).encode(charset)

    def _without_unfinished_end(self, text: str) -> str:
        """Drop the end of a text that was cut, which may be the beginning of a secret."""
        for form, token in self._known.in_line(encode({"": text})):
            text = text.replace(form, token)
        text = text[: len(text) - self._known.partial_at_end(text)]
        return text[: -len(match[0])] if (match := _UNFINISHED_WORD.search(text, max(0, len(text) - 4096))) else text


def _encoded(members: dict[str, Any]) -> bytes:
    """As `encode` without the line's end, and faster. Bodies hold no NaN, which this encoder would write as null."""
    try:
        return _ENCODER.encode(members)
    except UnicodeEncodeError:
        return encode(members)[:-1]


def _looked_at(encoded: bytes, credentials: int) -> bytes:
    """The part of a line to be searched: without headers that are redacted already, but look like secrets.

    `credentials` is the number of redacted Authorization headers. They come before a body with the same text.
    """
    encoded = encoded.replace(_HARMLESS_HEADER, b'[""]')
    return encoded.replace(_CLEAN_HEADER, b'["', credentials) if credentials else encoded


def _stores_a_secret(path: str) -> bool:
    """Whether a path may be that of a stored secret to a daemon, which decodes percent-encoding."""
    return "secrets" in (plain := unquote(path) if "%" in path else path) and _STORED_SECRETS.match(plain) is not None


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _is_form(text: str, media_type: str | None) -> bool:
    # A form without a media type is recognised by having no blanks.
    return _FORM_TYPE in media_type.lower() if media_type else _WORDS.fullmatch(text) is not None
