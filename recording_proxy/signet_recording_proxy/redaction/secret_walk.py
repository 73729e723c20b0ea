"""Walks one trace line and takes out the secrets that names and values show, as far as it is suspected of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from signet_recording_proxy.redaction.keyword_search import KeywordSearch
from signet_recording_proxy.redaction.keywords import unsuspected
from signet_recording_proxy.redaction.known_secrets import KnownSecrets
from signet_recording_proxy.redaction.secret_names import (
    IDENTIFYING_HEADERS,
    IDENTIFYING_MEMBERS,
    NAME_MEMBERS,
    PLACE_MEMBERS,
    VALUE_MEMBERS,
    is_secret_member,
    is_secret_name,
    is_value_of,
)
from signet_recording_proxy.redaction.secret_patterns import TextPattern
from signet_recording_proxy.redaction.suspects import HIDDEN, Suspects
from signet_recording_proxy.redaction.vendor_kinds import VENDORS

_SHORTEST, _SHORT = 8, 512
_HOME = re.compile(r"([/\\](?:home|Users)[/\\])([^/\\]+)", re.IGNORECASE)


class Cleaner:
    """Puts tokens in the place of secrets. `token` gives them, `numeric` are known secrets that JSON may write bare."""

    def __init__(self, token: Callable[[str], str], suspected: Suspects, numeric: Sequence[tuple[str, str]]) -> None:
        self._token = token
        self._suspects = suspected
        self._numeric = numeric

    def line(self, line: dict[str, Any]) -> dict[str, Any]:
        """An exchange's line."""
        response = line["response"]
        return {
            **line,
            "request": self._request(line["request"]),
            "response": None if response is None else self._message(response),
            **{name: self.value(line[name]) for name in ("error", "fault") if name in line},
        }

    def _request(self, request: dict[str, Any]) -> dict[str, Any]:
        return {
            **self._message(request),
            "method": self.text(request["method"]),
            "path": self.text(request["path"]),
            "query": [
                [self.text(name), self.text(value, names=name in IDENTIFYING_MEMBERS)]
                for name, value in request["query"]
            ],
        }

    def _message(self, message: dict[str, Any]) -> dict[str, Any]:
        body = message["body"]
        if body is not None:
            kept = ("base64", "sha256", "size")
            body = {key: part if key in kept else self.value(part) for key, part in body.items()}
        headers = [
            [self.text(name), self.text(value, names=name.lower().startswith(IDENTIFYING_HEADERS))]
            for name, value in message["headers"]
        ]
        return {**message, "headers": headers, "body": body}

    def value(self, value: Any) -> Any:
        """Any JSON value."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return self._object(value)
        if isinstance(value, list):
            if value and all(isinstance(item, list) and len(item) == 2 and isinstance(item[0], str) for item in value):
                return [[self.text(name), self._beside(name, item)] for name, item in value]
            return [self.value(item) for item in value]
        if self._numeric and _is_number(value):
            return next((token for digits, token in self._numeric if digits in repr(value)), value)
        return value

    def text(self, text: str, *, names: bool = False) -> str:
        """Redact running text; `names` marks a member that identifies a person or a program."""
        for form, token in self._suspects.known:
            if form in text:
                text = text.replace(form, token)
        if len(text) >= _SHORTEST:
            for pattern in self._suspects.patterns:
                if not (names and isinstance(pattern, TextPattern) and pattern.may_name):
                    text = pattern.replace(text, self._token)
        return text

    def _object(self, members: dict[str, Any]) -> dict[str, Any]:
        cleaned = {self.text(name): self._member(name, member) for name, member in members.items()}
        if isinstance(members.get("value"), str):
            named = next((members[name] for name in NAME_MEMBERS if isinstance(members.get(name), str)), None)
            if named is not None:
                cleaned["value"] = self._beside(named, members["value"])
        return cleaned

    def _beside(self, name: str, value: Any) -> Any:
        """A value whose name stands beside it; words that only follow such a name, as in tags, do not count."""
        if isinstance(value, str) and len(value.split()) > 1 and not name.lower().endswith("authorization"):
            return self.text(value)
        return self._member(name, value)

    def _member(self, name: str, value: Any) -> Any:
        if isinstance(value, str):
            if is_secret_member(name, value) or VENDORS.is_secret_member(name, value):
                return self._token(value)
            if name == "agentsDir":
                value = _HOME.sub(lambda match: match[1] + self._token(match[2]), value)
            return self.text(value, names=name in IDENTIFYING_MEMBERS or name in PLACE_MEMBERS)
        if name == "secrets" and isinstance(value, dict):
            # Variables on the left, names of stored secrets on the right: neither is a secret's value.
            return {self.text(key): self.value(item) for key, item in value.items()}
        if _is_number(value) and is_secret_name(name):
            return self._token(repr(value))
        if isinstance(value, list):
            scalars = all(isinstance(item, str) or _is_number(item) for item in value)
            return [self._member(name, item) for item in value] if scalars else self.value(value)
        if isinstance(value, dict):
            inner = {
                key: self._member(name, item)
                for key, item in value.items()
                if (is_value_of(name, key, item) if isinstance(item, str) else key.lower() in VALUE_MEMBERS)
            }
            return {**self._object(value), **{self.text(key): item for key, item in inner.items()}}
        return self.value(value)


class LongCleaner(Cleaner):
    """As `Cleaner`, for a long line: each text is searched around the keywords that it holds."""

    def __init__(self, token: Callable[[str], str], known: KnownSecrets, numeric: Sequence[tuple[str, str]]) -> None:
        super().__init__(token, Suspects((), ()), numeric)
        self._known = known
        self._search = KeywordSearch(token, HIDDEN)
        self._plain: set[str] = set()

    def line(self, line: dict[str, Any]) -> dict[str, Any]:
        """An exchange's line."""
        short = list(dict.fromkeys(text for text in _texts(line) if _SHORTEST <= len(text) <= _SHORT))
        if self._known.replaced(joined := "\n".join(short)) == joined:
            self._plain = unsuspected(short)
        return super().line(line)

    def text(self, text: str, *, names: bool = False) -> str:
        """Redact running text; `names` marks a member that identifies a person or a program."""
        if text in self._plain:
            return text
        text = self._known.replaced(text)
        return self._search.clean(text, names=names) if len(text) >= _SHORTEST else text


def _texts(value: Any) -> Iterator[str]:
    """All texts in a JSON value, names of members among them."""
    pending = [value]
    while pending:
        value = pending.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            yield from value
            pending += value.values()
        elif isinstance(value, (list, tuple)):
            pending += value


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
