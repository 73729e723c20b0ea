"""Replaces the secrets of one trace line, found by names and values. Only parts that may hold one are walked."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set as AbstractSet
from itertools import chain
from typing import Any

from signet_recording_proxy.redaction import secret_names, vendor_kinds
from signet_recording_proxy.redaction.keyword_search import KeywordSearch, texts_to_search
from signet_recording_proxy.redaction.keywords import HOLDS_HOME, secret_names_among
from signet_recording_proxy.redaction.secret_names import KEY_TYPE, NAMES, is_value_of
from signet_recording_proxy.redaction.spans import Token
from signet_recording_proxy.redaction.suspects import HIDDEN

_SHORTEST, _LONG = 8, 32 * 1024
_ENOUGH_FOUND = 4
"""Once this many texts hold a secret, the others are left to the walk, which searches each text itself."""
_HOME = re.compile(r"([/\\](?:home|Users)[/\\])([^/\\]+)", re.IGNORECASE)
_PROBE = KeywordSearch(lambda _secret: "<redacted:0>", HIDDEN)
"""Shows whether a text holds a secret, without making a new token."""


class Cleaner:
    """Replaces secrets by tokens, and walks only what may hold one.

    `token` makes a token, `without_known` replaces the known secrets of a text, `numeric` are known secrets that JSON
    may write as numbers.
    """

    def __init__(self, token: Token, without_known: Callable[[str], str], numeric: Sequence[tuple[str, str]]) -> None:
        self._token = token
        self._without_known = without_known
        self._numeric = numeric
        self._search = KeywordSearch(token, HIDDEN)
        self._examined: Mapping[str, None] = {}
        """The texts that were examined; those in `_unsure` may hold a secret."""
        self._unsure = set[str]()
        self._secret_names: AbstractSet[str] = frozenset()
        self._suspected: AbstractSet[int] | None = None
        """The ids of the parts of a line that may hold a secret; None: any may."""

    def line(self, line: dict[str, Any]) -> dict[str, Any]:
        """Redact the line of an exchange."""
        parts = _Parts(line)
        self._examined = dict.fromkeys(parts.texts)
        unknown = texts = [text for text in self._examined if len(text) >= _SHORTEST]
        if self._without_known(joined := "\n".join(texts)) != joined:
            unknown = [text for text in texts if self._without_known(text) == text]
            self._unsure.update([text for text in texts if self._without_known(text) != text])
        self._unsure.update(self._not_known_clean(texts_to_search(unknown)))
        self._secret_names = parts.secret_names
        if not self._numeric:
            self._suspected = parts.ids_holding(self._unsure)
        return self._line(line)

    @staticmethod
    def _not_known_clean(texts: Sequence[str]) -> Iterator[str]:
        """Yield texts that hold a secret, and those not searched: long ones, and all others after a few hits."""
        found = 0
        for text in texts:
            if len(text) > _LONG or found >= _ENOUGH_FOUND:
                yield text
            elif _PROBE.clean(text) != text:
                found += 1
                yield text

    def _line(self, line: dict[str, Any]) -> dict[str, Any]:
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
                [self.text(name), self.text(value, names=name in NAMES.identifying_members)]
                for name, value in request["query"]
            ],
        }

    def _message(self, message: dict[str, Any]) -> dict[str, Any]:
        body = message["body"]
        if body is not None:
            kept = ("base64", "sha256", "size")
            body = {key: part if key in kept else self.value(part) for key, part in body.items()}
        headers = [
            [self.text(name), self.text(value, names=name.lower().startswith(secret_names.IDENTIFYING_HEADERS))]
            for name, value in message["headers"]
        ]
        return {**message, "headers": headers, "body": body}

    def value(self, value: Any) -> Any:
        """Redact any JSON value."""
        if self._suspected is not None and id(value) not in self._suspected:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return self._object(value)
        if isinstance(value, list):
            if value and _are_pairs(value):
                return [[self.text(name), self._value_beside_name(name, item)] for name, item in value]
            return [self.value(item) for item in value]
        if self._numeric and _is_number(value):
            return next((token for digits, token in self._numeric if digits in repr(value)), value)
        return value

    def text(self, text: str, *, names: bool = False) -> str:
        """Redact running text; `names` marks a member that identifies a person or a program."""
        if text in self._examined and text not in self._unsure:
            return text
        text = self._without_known(text)
        return self._search.clean(text, names=names) if len(text) >= _SHORTEST else text

    def _object(self, members: dict[str, Any]) -> dict[str, Any]:
        cleaned = self._members(members)
        if isinstance(members.get("value"), str):
            named = next((members[name] for name in NAMES.name_members if isinstance(members.get(name), str)), None)
            if named is not None:
                cleaned["value"] = self._value_beside_name(named, members["value"])
        if isinstance(members.get(KEY_TYPE), str):
            private = {name: members[name] for name in NAMES.private_key_members if isinstance(members.get(name), str)}
            cleaned.update({name: self._token(value) for name, value in private.items()})
        return cleaned

    def _members(self, members: dict[str, Any]) -> dict[str, Any]:
        if self._suspected is None or not self._unsure.isdisjoint(members):
            return {self.text(name): self._member(name, member) for name, member in members.items()}
        return members | {
            name: self._member(name, member)
            for name, member in members.items()
            if name in self._secret_names or id(member) in self._suspected
        }

    def _value_beside_name(self, name: str, value: Any) -> Any:
        """Redact a value whose name is the value beside it; several words, as in tags, are searched as text."""
        if isinstance(value, str) and len(value.split()) > 1 and not name.lower().endswith("authorization"):
            return self.text(value)
        return self._member(name, value)

    def _member(self, name: str, value: Any) -> Any:
        if isinstance(value, str):
            if self._is_secret(name, value):
                return self._token(value)
            if name == HOLDS_HOME:
                value = _HOME.sub(lambda match: match[1] + self._token(match[2]), value)
            return self.text(value, names=name in NAMES.identifying_members or name in NAMES.place_members)
        if name == "secrets" and isinstance(value, dict):
            # Variables on the left, names of stored secrets on the right: neither is a secret's value.
            return {self.text(key): self.value(item) for key, item in value.items()}
        if _is_number(value) and secret_names.is_secret_name(name):
            return self._token(repr(value))
        if isinstance(value, list):
            scalars = all(isinstance(item, str) or _is_number(item) for item in value)
            return [self._member(name, item) for item in value] if scalars else self.value(value)
        if isinstance(value, dict):
            inner = {
                key: self._member(name, item)
                for key, item in value.items()
                if (is_value_of(name, key, item) if isinstance(item, str) else key.lower() in NAMES.value_members)
            }
            return {**self._object(value), **{self.text(key): item for key, item in inner.items()}}
        return self.value(value)

    def _is_secret(self, name: str, value: str) -> bool:
        if self._suspected is not None and name not in self._secret_names:
            return False
        return secret_names.is_secret_member(name, value) or vendor_kinds.is_secret_member(name, value)


class _Parts:
    """The texts of a JSON value, including names of members, and which of those names mean a secret."""

    def __init__(self, value: Any) -> None:
        self.texts: list[str] = []
        self._levels: list[tuple[list[dict[str, Any]], list[Sequence[Any]]]] = []
        names = set[str]()
        # A level at a time, for a megabyte may hold a hundred thousand values.
        level = [value]
        while level:
            by_type = defaultdict[type, list[Any]](list)
            for part in level:
                by_type[type(part)].append(part)
            objects, lists = (
                by_type[dict],
                [part for part in (*by_type[list], *by_type[tuple]) if not _BARE.issuperset(map(type, part))],
            )
            self.texts += by_type[str]
            self._levels.append((objects, lists))
            names.update(chain.from_iterable(objects))
            level = [*chain.from_iterable(map(dict.values, objects)), *chain.from_iterable(lists)]
        self.texts += names
        self._value_beside_name = [*self._pairs(), *(self._members_beside_values() if "value" in names else ())]
        if KEY_TYPE in names:
            self._value_beside_name += [
                ("privatekey", members) for objects, _ in self._levels for members in objects if KEY_TYPE in members
            ]
        self.secret_names = secret_names_among(names.union([name for name, _ in self._value_beside_name]))

    def _pairs(self) -> Iterator[tuple[str, Any]]:
        """The names that lists of pairs give to values, with the lists."""
        for _, lists in self._levels:
            for items in lists:
                if items and isinstance(items[0], list) and _are_pairs(items):
                    yield from ((name, items) for name, _ in items)

    def _members_beside_values(self) -> Iterator[tuple[str, Any]]:
        """The names that objects give to a value beside them, with the objects."""
        for objects, _ in self._levels:
            for members in objects:
                if isinstance(members.get("value"), str):
                    names = [members[name] for name in NAMES.name_members if isinstance(members.get(name), str)]
                    yield from ((name, members) for name in names)

    def ids_holding(self, suspected: AbstractSet[str]) -> AbstractSet[int]:
        """The ids of the suspected texts, and of what holds one, or a secret's name, at any depth."""
        triggers = self.secret_names | suspected
        ids = {id(holder) for name, holder in self._value_beside_name if name in triggers}
        if not triggers:
            return ids
        ids.update([id(text) for text in self.texts if text in suspected])
        for objects, lists in reversed(self._levels):
            ids.update([
                id(members) for members in objects
                if not triggers.isdisjoint(members) or not ids.isdisjoint(map(id, members.values()))
            ])  # fmt: skip
            ids.update([id(items) for items in lists if not ids.isdisjoint(map(id, items))])
        return ids


_BARE = {int, float, bool, type(None)}


def _are_pairs(items: Sequence[Any]) -> bool:
    return all(isinstance(item, list) and len(item) == 2 and isinstance(item[0], str) for item in items)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
