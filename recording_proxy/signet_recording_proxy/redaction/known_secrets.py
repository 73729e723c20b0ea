"""Secrets that are known by their value, and the forms in which they may occur in traffic."""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

from ahocorasick_rs import AhoCorasick, MatchKind

from signet_recording_proxy.redaction.spans import replace_spans, without_surrogates

REMEMBERED = 4096
"""How many of the learned secrets are searched for; beyond that, the oldest is dropped."""
_ESCAPE_DEPTH = 4
_GRAM = 8
# As many searches take as long as cutting a usual line into grams.
_MOST_WITHOUT_GRAMS = 256
_INNER_END = re.compile(r"[\s\"'<>,;]")


def forms(secret: str) -> tuple[str, ...]:
    r"""`secret` as it is, JSON-escaped up to four times, URL-encoded, in hexadecimal, UTF-16 and base64; longest first.

    URL encodings and `\u` escapes are of the necessary characters only, and of all.
    """
    spellings = {secret}
    for plain in (True, False):
        escaped = secret
        for _ in range(_ESCAPE_DEPTH):
            escaped = _escaped(escaped, plain)
            spellings.add(escaped)
    raw, units = secret.encode("utf-8", "surrogatepass"), secret.encode("utf-16-be", "surrogatepass")
    all_escaped = "".join(f"%{byte:02X}" for byte in raw)
    for encoded in (quote(raw, safe=""), quote(raw), quote_plus(raw), all_escaped):
        spellings |= {encoded, _lower_hex(encoded)}
    pairs = [units[at : at + 2].hex() for at in range(0, len(units), 2)]
    spellings |= {"".join(f"\\u{pair}" for pair in pairs), "".join(f"\\u{pair.upper()}" for pair in pairs)}
    spellings |= {raw.hex(), raw.hex().upper()}
    if secret.isascii():
        # Bytes of UTF-16 that were read as text.
        spellings |= {units.decode(), secret.encode("utf-16-le").decode()}
    for offset in range(3):
        standard = _base64_core(raw, offset)
        spellings |= {standard, standard.replace("+", "-").replace("/", "_")}
    return tuple(sorted(spellings, key=lambda form: (-len(form), form)))


class KnownSecrets:
    """Searches for known secrets. A line takes as long with thousands of them as with a few hundred."""

    def __init__(self) -> None:
        self._needles: dict[str, _Needle] = {}
        self._by_gram: dict[bytes, list[_Needle]] = {}
        self._learned: dict[str, list[_Needle]] = {}
        self._automaton: tuple[AhoCorasick, list[str]] | None = None
        self.count = 0
        """How many were ever added."""

    def __contains__(self, secret: str) -> bool:
        return secret in self._needles

    def add(self, secret: str, token: str, *, permanent: bool = False) -> None:
        """Search for `secret` from now on, and replace it by `token`."""
        self.count += 1
        self._automaton = None
        new = [_Needle(form, token) for form in forms(secret) if form not in self._needles]
        for needle in new:
            self._needles[needle.form] = needle
            for gram in needle.grams():
                self._by_gram.setdefault(gram, []).append(needle)
        if permanent:
            return
        self._learned[secret] = new
        if len(self._learned) > REMEMBERED:
            self._forget(self._learned.pop(next(iter(self._learned))))

    def in_line(self, encoded: bytes) -> list[tuple[str, str]]:
        """Forms and tokens of the secrets that an encoded JSON line holds, the longest first."""
        if not self._needles:
            return []
        # Every line of a recording passes here: a generator for each needle would take longer than the search.
        found = {n.form: n.token for n in self._candidates(encoded) for form in n.encoded if form in encoded}
        return sorted(found.items(), key=lambda item: -len(item[0]))

    def replace_in(self, text: str) -> str:
        """`text`, of any length, with the tokens in place of the secrets, the longest form first."""
        if not self._needles:
            return text
        if self._automaton is None:
            forms = list(self._needles)
            whole = [without_surrogates(form) for form in forms]
            self._automaton = AhoCorasick(whole, matchkind=MatchKind.LeftmostLongest), forms
        automaton, forms = self._automaton
        matches = automaton.find_matches_as_indexes(without_surrogates(text))
        found = iter([self._needles[forms[number]].token for number, _, _ in matches])
        return replace_spans(text, [(start, end) for _, start, end in matches], lambda _form: next(found))

    def replace_in_bytes(self, raw: bytes) -> bytes:
        """`raw` with the tokens in place of the secrets."""
        for needle in sorted(self._candidates(raw), key=lambda needle: -len(needle.form)):
            raw = raw.replace(needle.raw, needle.token.encode())
        return raw

    def partial_at_end(self, text: str) -> int:
        """How many characters at the end of `text` begin a secret of several words without completing it.

        The caller cuts off the last word, and with it any secret of one word.
        """
        longest = 0
        for needle in self._needles.values():
            if needle.several_words:
                lengths = range(min(len(needle.form) - 1, len(text)), longest, -1)
                longest = next((length for length in lengths if text.endswith(needle.form[:length])), longest)
        return longest

    def _candidates(self, encoded: bytes) -> list[_Needle]:
        if len(self._needles) <= _MOST_WITHOUT_GRAMS:
            return list(self._needles.values())
        grams = self._by_gram.keys() & {encoded[at : at + _GRAM] for at in range(len(encoded) - _GRAM + 1)}
        return list({id(needle): needle for gram in grams for needle in self._by_gram[gram]}.values())

    def _forget(self, needles: list[_Needle]) -> None:
        for needle in needles:
            del self._needles[needle.form]
            for gram in needle.grams():
                self._by_gram[gram].remove(needle)
                if not self._by_gram[gram]:
                    del self._by_gram[gram]


class _Needle:
    """One form of a known secret, and the ways in which a JSON line may write it."""

    __slots__ = ("encoded", "form", "raw", "several_words", "token")

    def __init__(self, form: str, token: str) -> None:
        self.form = form
        self.token = token
        self.raw = form.encode("utf-8", "surrogatepass")
        written = {_escaped(form, ascii_only=plain) for plain in (True, False)}
        self.encoded = tuple(text.encode("utf-8", "surrogatepass") for text in written)
        self.several_words = _INNER_END.search(form) is not None

    def grams(self) -> Iterator[bytes]:
        """The grams with which this secret may begin in a searched line."""
        yield from {written[:_GRAM] for written in (self.raw, *self.encoded)}


def _escaped(text: str, ascii_only: bool) -> str:
    return json.dumps(text, ensure_ascii=ascii_only)[1:-1]


def _lower_hex(encoded: str) -> str:
    head, *rest = encoded.split("%")
    return "%".join([head, *(part[:2].lower() + part[2:] for part in rest)])


def _base64_core(raw: bytes, offset: int) -> str:
    """The base64 characters that `raw` alone determines if it begins `offset` bytes after a multiple of three."""
    text = base64.b64encode(b"\0" * offset + raw).decode("ascii")
    return text[math.ceil(offset * 8 / 6) : (offset + len(raw)) * 8 // 6]
