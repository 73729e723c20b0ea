"""Secrets that their vendor's name gives away, with a value of its length: kinds of gitleaks' public rules, as data.

`gitleaks.json` holds them with their version, `gitleaks.LICENSE` whose they are, and `ci/tools/renew_secret_kinds.py`
renews them. Its kinds with a beginning of their own are among those of `secret_kinds.json`, as a test shows.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any

import msgspec
from ahocorasick_rs import BytesAhoCorasick, Implementation

from signet_recording_proxy.redaction.secret_names import is_value, mixes
from signet_recording_proxy.redaction.spans import Token, replace_spans

_DATA = Path(__file__).with_name("gitleaks.json")
_SIGN = r"[ \t\w.-]{0,20}[\s'\"\\]{0,6}(?:=>|\?=|:{1,3}=|\|\||[=>:,])[`'\"\s=\\]{0,8}"
_ENDS = r"(?=[`'\"\s;\\,)}\]<&]|\Z)"
GATE_SIGN = r"[\s'\"\\]{0,6}(?:=>|\?=|:{1,3}=|\|\||[=>:,])[`'\"\s=\\]{0,8}[\w.:=-]{12}"


class NamedKind:
    """One kind: what its vendor is called, and what its secrets look like."""

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self.id: str = facts["id"]
        self.names: str = facts["names"]
        words = [word for word in facts["keywords"] if re.search(self.names, word, re.IGNORECASE)]
        # Some are known by what their secrets begin with, or are part of a longer name.
        self.stems: tuple[str, ...] = tuple(words or ([self.names] if self.names.isalpha() else facts["keywords"]))
        self._value, self._any_case, self._entropy = facts["value"], facts["any_case"], facts.get("entropy", 0.0)

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The name, a sign, and the value as the group `value`."""
        value = f"(?i:{self._value})" if self._any_case else self._value
        return re.compile(rf"(?i:{self.names}){_SIGN}(?P<value>{value}){_ENDS}")

    def accepts(self, value: str) -> bool:
        """Whether a value of the right shape may be one: no word and no number is."""
        return mixes(value) and is_value(value) and _entropy(value) >= self._entropy


def _entropy(text: str) -> float:
    """Bits a character."""
    return -sum(count / len(text) * math.log2(count / len(text)) for count in Counter(text).values())


@cache
def kinds() -> tuple[NamedKind, ...]:
    """All kinds that a name gives away."""
    data = msgspec.json.decode(_DATA.read_bytes())
    return tuple(NamedKind(facts) for facts in data["kinds"] if facts["sort"] == "named")


@cache
def _stems() -> tuple[tuple[str, NamedKind], ...]:
    """Parts of vendors' names in lower case: beginnings where the stems are those of secrets."""
    return tuple(
        (part, kind)
        for kind in kinds()
        for stem in kind.stems
        for part in ([stem] if re.search(kind.names, stem, re.IGNORECASE) else _BEGINS.findall(kind.names))
    )


@cache
def _automaton() -> BytesAhoCorasick:
    return BytesAhoCorasick([stem.encode() for stem, _ in _stems()], implementation=Implementation.DFA)


_BEGINS = re.compile(r"(?:\A|\|)([a-z]+)")


@cache
def gate() -> str:
    """What stands where one may be, for an expression of Rust's."""
    names = "|".join(sorted({kind.names.replace("(?-i:", "(?:") for kind in kinds()}))
    return rf"(?:{names})[ \t\w.-]{{0,20}}{GATE_SIGN}"


class _Vendors:
    """All of them, in text."""

    def replace(self, text: str, token: Token) -> str:
        """`text` with each secret replaced by what `token` gives for it."""
        lowered = text.lower()
        for kind in kinds():
            if any(stem in lowered for stem in kind.stems):
                spans = [match.span("value") for match in kind.pattern.finditer(text) if kind.accepts(match["value"])]
                if spans:
                    text = replace_spans(text, spans, token)
                    lowered = text.lower()
        return text

    def is_secret_member(self, name: str, value: str) -> bool:
        """Whether a member of this name is one of them."""
        for kind, found in _of_name(name):
            match = kind.pattern.match(f"{found}={value}")
            if match is not None and match["value"] == value and kind.accepts(value):
                return True
        return False

    @staticmethod
    def may_name(name: str) -> bool:
        """Whether some value of a member of this name is one of them."""
        return bool(_of_name(name))

    @staticmethod
    def places(lowered: bytes) -> list[int]:
        """The places in lower-case text at which such a name may begin."""
        return [start for _, start, _ in _automaton().find_matches_as_indexes(lowered, overlapping=True)]


@lru_cache(maxsize=4096)
def _of_name(name: str) -> tuple[tuple[NamedKind, str], ...]:
    return tuple(_kinds_named(name)) if len(name) <= _LONGEST_NAME else ()


def _kinds_named(name: str) -> Iterator[tuple[NamedKind, str]]:
    matches = _automaton().find_matches_as_indexes(name.lower().encode("utf-8", "surrogatepass"), overlapping=True)
    for kind in dict.fromkeys(_stems()[number][1] for number, _, _ in matches):
        match = re.search(kind.names, name, re.IGNORECASE)
        if match is not None:
            yield kind, match[0]


_LONGEST_NAME = 64
VENDORS = _Vendors()
