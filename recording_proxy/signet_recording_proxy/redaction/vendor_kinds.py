"""Finds secrets by the name of their vendor and the form of their value, with data from gitleaks' public rules.

`gitleaks.json` holds the rules and their version, `gitleaks.LICENSE` their licence; `ci/tools/renew_secret_kinds.py`
renews them. Its kinds that a prefix identifies are also in `secret_kinds.json`, as a test shows.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import cache, cached_property, lru_cache
from pathlib import Path

import msgspec
from ahocorasick_rs import BytesAhoCorasick, Implementation

from signet_recording_proxy.redaction.secret_names import is_value, mixes
from signet_recording_proxy.redaction.spans import Token, replace_spans

_DATA = Path(__file__).with_name("gitleaks.json")
_SIGN = r"[ \t\w.-]{0,20}[\s'\"\\]{0,6}(?:=>|\?=|:{1,3}=|\|\||[=>:,])[`'\"\s=\\]{0,8}"
_ENDS = r"(?=[`'\"\s;\\,)}\]<&]|\Z)"
PREFILTER_SIGN = r"[\s'\"\\t]{0,6}(?:=>|\?=|:{1,3}=|\|\||[=>:,])[`'\"\s=\\t]{0,8}(?:[\w.:=-]{12}|[\w+/=-]{12})"


class VendorKind(msgspec.Struct, dict=True, eq=False):
    """One kind: the form of its secrets and, for the `sort` "named", the names of its vendor."""

    id: str
    sort: str
    keywords: tuple[str, ...]
    value: str
    any_case: bool
    names: str = ""
    entropy: float = 0.0
    """The least entropy, in bits per character."""

    @cached_property
    def stems(self) -> tuple[str, ...]:
        """Text that names the kind contains one of these. Some begin the secret, or are part of a longer name."""
        words = tuple(word for word in self.keywords if re.search(self.names, word, re.IGNORECASE))
        return words or ((self.names,) if self.names.isalpha() else self.keywords)

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The name, a sign, and the value as the group `value`."""
        value = f"(?i:{self.value})" if self.any_case else self.value
        return re.compile(rf"(?i:{self.names}){_SIGN}(?P<value>{value}){_ENDS}")

    def accepts(self, value: str) -> bool:
        """Whether a value of the right shape may be a secret: words and numbers are not."""
        return mixes(value) and is_value(value) and _entropy(value) >= self.entropy


def _entropy(text: str) -> float:
    """The entropy in bits per character."""
    return -sum(count / len(text) * math.log2(count / len(text)) for count in Counter(text).values())


class _Data(msgspec.Struct):
    kinds: tuple[VendorKind, ...]


@cache
def kinds() -> tuple[VendorKind, ...]:
    """All kinds that a name gives away."""
    return tuple(kind for kind in msgspec.json.decode(_DATA.read_bytes(), type=_Data).kinds if kind.sort == "named")


@cache
def _stems() -> tuple[tuple[str, VendorKind], ...]:
    """The parts of vendors' names to look for, in lower case: stems, or beginnings where the stems are no names."""
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
def prefilter() -> str:
    r"""An expression in Rust's syntax that matches where such a secret may be; `\w` is ASCII there."""
    names = "|".join(sorted({kind.names.replace("(?-i:", "(?:") for kind in kinds()}))
    return rf"(?:{names})(?:[ \t\w.\\-]|[^\x00-\x7f]){{0,24}}{PREFILTER_SIGN}"


def replace_vendor_secrets(text: str, token: Token) -> str:
    """`text` with each secret replaced by its token."""
    lowered = text.lower()
    for kind in kinds():
        if any(stem in lowered for stem in kind.stems):
            spans = [match.span("value") for match in kind.pattern.finditer(text) if kind.accepts(match["value"])]
            if spans:
                text = replace_spans(text, spans, token)
                lowered = text.lower()
    return text


def is_secret_member(name: str, value: str) -> bool:
    """Whether a member of this name and value is such a secret."""
    for kind, found in _kinds_of_name(name):
        match = kind.pattern.match(f"{found}={value}")
        if match is not None and match["value"] == value and kind.accepts(value):
            return True
    return False


def may_name(name: str) -> bool:
    """Whether some value of a member of this name is such a secret."""
    return bool(_kinds_of_name(name))


def places(lowered: bytes) -> list[int]:
    """The places in lower-case text at which such a name may begin."""
    return [start for _, start, _ in _automaton().find_matches_as_indexes(lowered, overlapping=True)]


@lru_cache(maxsize=4096)
def _kinds_of_name(name: str) -> tuple[tuple[VendorKind, str], ...]:
    """The kinds that a name gives away, each with the part that does."""
    if len(name) > _LONGEST_NAME:
        return ()
    matches = _automaton().find_matches_as_indexes(name.lower().encode("utf-8", "surrogatepass"), overlapping=True)
    found = dict.fromkeys(_stems()[number][1] for number, _, _ in matches)
    named = ((kind, re.search(kind.names, name, re.IGNORECASE)) for kind in found)
    return tuple((kind, match[0]) for kind, match in named if match is not None)


_LONGEST_NAME = 64
