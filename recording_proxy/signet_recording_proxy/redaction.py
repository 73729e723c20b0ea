"""Takes secrets out of trace lines before they reach the disk. Pure: the traffic itself is never touched.

Each secret is replaced by `<redacted:n>`; equal secrets get equal tokens as long as the recorder
lives. What is secret: the values of certain headers, query parameters and JSON members; text of a
known shape (see `secret_patterns`); canaries, whose values the recorder was given; and tokens seen in
an Authorization header, wherever else they occur.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from signet_conformance.trace import Header, encode
from signet_recording_proxy.known_secrets import forms
from signet_recording_proxy.secret_patterns import (
    MEMBER_STEMS,
    TEXT_PATTERNS,
    TextPattern,
    is_secret_member,
    is_secret_parameter,
)

_CREDENTIAL_HEADERS = frozenset({"authorization", "proxy-authorization"})
_SECRET_HEADER_ENDINGS = ("token", "secret", "api-key", "apikey", "password")
_SCHEMES = frozenset({"bearer", "basic", "digest", "token", "negotiate", "apikey"})
_COOKIE_VALUE = re.compile(r"(=\s*)([^;]+)")
_WORDS = re.compile(r"\S+")
_HOME = re.compile(r"([/\\](?:home|Users)[/\\])([^/\\]+)", re.IGNORECASE)
_UNFINISHED_WORD = re.compile(r"""[^\s"'<>,;]{1,4096}\Z""")
_WATCHED_LIMIT = 64
_LEARNED_SHORTEST = 16
_ALL_STEMS = tuple(sorted({stem for pattern in TEXT_PATTERNS for stem in pattern.stems} | {*MEMBER_STEMS, "agentsdir"}))
_STEM_BYTES = tuple((stem, stem.encode()) for stem in _ALL_STEMS)


class Redactor:
    """Gives out the tokens of one recorder process."""

    MIN_CANARY = 8

    def __init__(self, canaries: Mapping[str, str]) -> None:
        """`canaries` maps names to the secret values that are watched for, each of 8 characters or more."""
        self._tokens: dict[str, str] = {}
        self._needles: list[_Needle] = []
        self._numeric: list[tuple[str, str]] = []
        self._watched: set[str] = set()
        self._canary_tokens = {self._token(value): name for name, value in canaries.items()}
        for value in canaries.values():
            self._watch_for(value)

    def header(self, header: Header) -> Header:
        """`header` as it may stand in a file; `declared.canaries` says which tokens stand for canaries."""
        declared = header.declared
        return replace(
            header,
            target=None if header.target is None else self.text(header.target),
            declared=replace(declared, canaries={**declared.canaries, **self._canary_tokens}),
        )

    def exchange(self, line: dict[str, Any]) -> bytes:
        """The encoded line of an exchange, without its secrets. `line` may be changed."""
        request, response = line["request"], line["response"]
        request["query"] = [self._parameter(name, value) for name, value in request["query"]]
        if request["path"].startswith("/api/secrets/"):
            request["body"] = self._stored_secret(request["method"], request["path"], request["body"])
        for message in (request, response) if response is not None else (request,):
            message["headers"] = [self._header(name, value) for name, value in message["headers"]]
            message["body"] = self._opaque(message["body"])
        encoded = encode(line)
        suspects = self._suspects(encoded)
        return encoded if suspects is None else encode(_Cleaner(self._token, suspects, self._numeric).line(line))

    def document(self, value: Any) -> Any:
        """Any JSON value, such as a mark's data, without its secrets."""
        return self._cleaner().value(value)

    def text(self, text: str) -> str:
        """Running text without its secrets."""
        return self._cleaner().text(text)

    def _cleaner(self) -> _Cleaner:
        return _Cleaner(
            self._token, _Suspects(TEXT_PATTERNS, [(n.form, n.token) for n in self._needles]), self._numeric
        )

    # ---- tokens

    def _token(self, secret: str) -> str:
        known = self._tokens.get(secret)
        if known is None:
            known = self._tokens[secret] = f"<redacted:{len(self._tokens) + 1}>"
        return known

    def _watch_for(self, secret: str) -> None:
        token = self._token(secret)
        self._watched.add(secret)
        self._needles += [_Needle(form, token) for form in forms(secret)]
        self._needles.sort(key=lambda needle: -len(needle.form))
        if not secret.strip("0123456789.-+eE"):
            self._numeric.append((secret, token))

    def _learn(self, secret: str) -> str:
        if len(secret) >= _LEARNED_SHORTEST and secret not in self._watched and len(self._watched) < _WATCHED_LIMIT:
            self._watch_for(secret)
        return self._token(secret)

    # ---- places that are secret by their name

    def _header(self, name: str, value: str) -> tuple[str, str]:
        if name in _CREDENTIAL_HEADERS:
            scheme, *_ = value.split(None, 1) or [""]
            start = value.find(scheme) + len(scheme) if scheme.lower() in _SCHEMES else 0
            return name, value[:start] + _WORDS.sub(lambda word: self._learn(word[0]), value[start:])
        if name.endswith(_SECRET_HEADER_ENDINGS) and value.strip():
            return name, self._learn(value.strip())
        if name == "cookie":
            return name, _COOKIE_VALUE.sub(lambda m: m[1] + self._token(m[2].strip()), value)
        if name == "set-cookie":
            return name, _COOKIE_VALUE.sub(lambda m: m[1] + self._token(m[2].strip()), value, count=1)
        return name, value

    def _parameter(self, name: str, value: str) -> tuple[str, str]:
        return (name, self._token(value)) if value and is_secret_parameter(name) else (name, value)

    def _stored_secret(self, method: str, path: str, body: dict[str, Any] | None) -> dict[str, Any] | None:
        """The request that stores a secret carries its value, whatever that looks like."""
        if body is None or method == "GET" or path == "/api/secrets/exec" or path.startswith("/api/secrets/exec/"):
            return body
        if "json" not in body:
            kept = {key: value for key, value in body.items() if key not in ("text", "base64")}
            return {**kept, "text": self._token(body.get("text", body.get("base64", "")))}
        members = body["json"]
        if not isinstance(members, dict):
            return {"json": self._token(_plain(members))}
        return {"json": {**members, "value": self._token(_plain(members["value"]))}} if members.get("value") else body

    def _opaque(self, body: dict[str, Any] | None) -> dict[str, Any] | None:
        """Bodies whose bytes or end would hide a secret from a look at the line."""
        if body is None or "json" in body:
            return body
        if "base64" in body:
            raw = base64.b64decode(body["base64"])
            clean = self._bytes(raw)
            return body if clean == raw else {**body, "base64": base64.b64encode(clean).decode("ascii")}
        return {**body, "text": self._without_unfinished_end(body["text"])} if body.get("cut") else body

    def _bytes(self, raw: bytes) -> bytes:
        for needle in self._needles:
            raw = raw.replace(needle.raw, needle.token.encode())
        suspects = self._suspects(raw)
        if suspects is not None:
            shapes = _Suspects(suspects.patterns, [])
            raw = _Cleaner(self._token, shapes, []).text(raw.decode("latin-1")).encode("latin-1")
        return raw

    def _without_unfinished_end(self, text: str) -> str:
        """A secret that the cut went through would not be known by its beginning."""
        for needle in self._needles:
            text = text.replace(needle.form, needle.token)
        for needle in self._needles:
            for length in range(min(len(needle.form) - 1, len(text)), 0, -1):
                if text.endswith(needle.form[:length]):
                    text = text[:-length]
                    break
        return text[: -len(match[0])] if (match := _UNFINISHED_WORD.search(text, max(0, len(text) - 4096))) else text

    def _suspects(self, encoded: bytes) -> _Suspects | None:
        """What `encoded` has to be searched for; None when it holds nothing that is secret."""
        lowered = encoded.lower()
        stems = {stem for stem, needle in _STEM_BYTES if needle in lowered}
        needles = [(n.form, n.token) for n in self._needles if any(form in encoded for form in n.encoded)]
        if not stems and not needles and not self._numeric:
            return None
        return _Suspects([p for p in TEXT_PATTERNS if not stems.isdisjoint(p.stems)], needles)


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


class _Needle:
    """One form of a known secret, and the ways in which a JSON line may write it."""

    __slots__ = ("encoded", "form", "raw", "token")

    def __init__(self, form: str, token: str) -> None:
        self.form = form
        self.token = token
        self.raw = form.encode("utf-8", "surrogatepass")
        written = {json.dumps(form, ensure_ascii=plain)[1:-1] for plain in (True, False)}
        self.encoded = tuple(text.encode("utf-8", "surrogatepass") for text in written)


class _Suspects(NamedTuple):
    patterns: Sequence[TextPattern]
    needles: Sequence[tuple[str, str]]


class _Cleaner:
    """Walks one line, looking only for what it is suspected to hold."""

    def __init__(self, token: Callable[[str], str], suspects: _Suspects, numeric: Sequence[tuple[str, str]]) -> None:
        self._token = token
        self._suspects = suspects
        self._numeric = numeric

    def line(self, line: dict[str, Any]) -> dict[str, Any]:
        request, response = line["request"], line["response"]
        cleaned = {
            **line,
            "request": {
                **self._message(request),
                "method": self.text(request["method"]),
                "path": self.text(request["path"]),
                "query": [[self.text(part) for part in pair] for pair in request["query"]],
            },
        }
        if response is not None:
            cleaned["response"] = self._message(response)
        for member in ("error", "fault"):
            if member in line:
                cleaned[member] = self.value(line[member])
        return cleaned

    def _message(self, message: dict[str, Any]) -> dict[str, Any]:
        body = message["body"]
        if body is not None:
            kept = ("base64", "sha256", "size")
            body = {key: part if key in kept else self.value(part) for key, part in body.items()}
        return {**message, "headers": [[self.text(part) for part in pair] for pair in message["headers"]], "body": body}

    def value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(name): self._member(name, member) for name, member in value.items()}
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if self._numeric and isinstance(value, (int, float)) and not isinstance(value, bool):
            return next((token for digits, token in self._numeric if digits in repr(value)), value)
        return value

    def _member(self, name: str, value: Any) -> Any:
        if isinstance(value, str):
            if is_secret_member(name, value):
                return self._token(value)
            if name == "agentsDir":
                value = _HOME.sub(lambda match: match[1] + self._token(match[2]), value)
            return self.text(value)
        if name == "secrets" and isinstance(value, dict):
            # Variables on the left, names of stored secrets on the right: neither is a secret's value.
            return {self.text(key): self.value(item) for key, item in value.items()}
        return self.value(value)

    def text(self, text: str) -> str:
        for form, token in self._suspects.needles:
            if form in text:
                text = text.replace(form, token)
        if len(text) >= 8:
            for pattern in self._suspects.patterns:
                text = pattern.replace(text, self._token)
        return text
