"""Searches long text for secrets: one pass finds keywords, and patterns run only around the relevant ones.

It finds what the patterns would find in the whole text. Each function of `_PARTS` yields the windows, the parts of a
text in which its patterns can match. Texts without a secret are remembered.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import accumulate, chain

from signet_recording_proxy.redaction import (
    arguments,
    assigned_values,
    beside_names,
    laid_out,
    named_values,
    statements,
)
from signet_recording_proxy.redaction.appearance import SCRAMBLED
from signet_recording_proxy.redaction.hidden_text import HiddenTextSearch, coded_places
from signet_recording_proxy.redaction.keywords import ADDRESS_NUMBERS, DIGIT, LONGEST_NAME, PLAIN_WORD_ENDS, Hits
from signet_recording_proxy.redaction.secret_patterns import BLOCKS, ISSUED, TEXT_PATTERNS, TextPattern
from signet_recording_proxy.redaction.shown_text import LINE_BREAK, decode, search_shown, show
from signet_recording_proxy.redaction.spans import NextMatch, Span as Window, Token, replace_spans
from signet_recording_proxy.redaction.vendor_kinds import replace_vendor_secrets


class DigestCache:
    """The digests of the last texts without a secret, so that a text that is sent again and again is searched once."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._new, self._old = set[bytes](), set[bytes]()

    def __contains__(self, key: bytes) -> bool:
        if key in self._new:
            return True
        if key not in self._old:
            return False
        self.add(key)
        return True

    def forget(self) -> None:
        """Forget all digests."""
        self._new, self._old = set(), set()

    def add(self, key: bytes) -> None:
        """Remember one more, and forget those that were not looked up for a long time."""
        if len(self._new) >= self._most:
            self._old, self._new = self._new, set()
        self._new.add(key)


def digest(text: str) -> bytes:
    """A short key that identifies a text."""
    raw = text.encode("utf-8", "surrogatepass")
    return raw if len(raw) < _DIGEST_BYTES else blake2b(raw, digest_size=_DIGEST_BYTES).digest()


_DIGEST_BYTES = 24
_Replace = Callable[[str, list[Window], Token], str]

_WORD_END = re.compile(r"[\s\"'<>]")
_MARKS_OF_QUERIES = re.compile(r"[?&#;]")
_SIGN = re.compile(r"[ \t]{0,40}:?=")
_VALUE_FOLLOWS = re.compile(r"\s{0,64}+\\{0,15}+\"value")
_OPENS_PAIR = re.compile(r"\[\s{0,64}\\{0,15}\"[A-Za-z0-9_.\-]{0,64}\Z")
_BLOCK = re.compile(rf"[+-]?[0-9]?[+-]?[ \t]{{0,40}}{LINE_BREAK}")
_SHORTEST_BARE = 6
_LONGEST_VALUE = 4200
_BEFORE_BLOCK = 80
_PIECE = 32 * 1024
_AROUND_NESTED = 320
"""How far before and behind a name that is apart from its value the marks extend that belong to it."""
_WIDE = 16_384
"""The greatest length of an object in JSON, or of a form's field, that is searched."""


_BLOCK_MARKS = "PRIVATE KEY", "PuTTY-User-Key-File-"
"""Each of `BLOCKS` contains one of them."""


_clean = DigestCache(16_384)


def forget() -> None:
    """Forget which texts were clean, for measurements of the search."""
    _clean.forget()


class KeywordSearch:
    """Replaces the secrets in texts by tokens; `hidden` searches encoded parts (None: they are not searched)."""

    def __init__(self, token: Token, hidden: HiddenTextSearch | None) -> None:
        self._token = token
        self._hidden = hidden

    def clean(self, text: str, *, names: bool = False) -> str:
        """`text` with tokens in place of its secrets; `names` marks a member that identifies a person or a program."""
        if len(text) <= _PIECE:
            return self._clean_piece(text, names=names)
        if any(mark in text for mark in _BLOCK_MARKS):
            for pattern in BLOCKS:
                text = pattern.replace(text, self._token)
        return "".join([self._clean_piece(piece, names=names) for piece in _pieces(text)])

    def _clean_piece(self, text: str, *, names: bool) -> str:
        if names or self._hidden is None:
            return self._clean_shown(text, names=names)
        # Most text that is sent repeatedly, such as full transcripts, was found to be clean before.
        key = digest(text)
        if key in _clean:
            return text
        clean = self._clean_shown(text, names=names)
        if clean == text:
            _clean.add(key)
        return clean

    def _clean_shown(self, text: str, *, names: bool) -> str:
        def search(text: str, token: Token) -> str:
            text = _piece(text, token, names=names)
            return text if self._hidden is None else self._hidden.replace(text, token)

        return search_shown(text, self._token, search)


def _piece(text: str, token: Token, *, names: bool) -> str:
    hits = Hits(text)
    if hits.is_empty:
        return text
    # A token may directly follow another one, and is found once that is replaced.
    while (changed := _replace_issued(text, hits, token, names=names)) != text:
        text, hits = changed, Hits(changed)
    for number, pattern in enumerate(TEXT_PATTERNS):
        if number in hits.shaped and not (names and pattern.may_name):
            if pattern.stem_first:
                changed = pattern.replace_at(hits.shaped[number], text, token)
            else:
                places = hits.shaped[number]
                around = hits.addresses if number in ADDRESS_NUMBERS else _of_shape(text, pattern, places)
                changed = _replace_within(text, around, pattern.replace, token)
            if changed != text:
                text, hits = changed, Hits(changed)
    for windows_of, replace in _PARTS:
        if windows := list(windows_of(text, hits)):
            changed = replace(text, windows, token)
            if changed != text:
                text, hits = changed, Hits(changed)
    return text


def _replace_issued(text: str, hits: Hits, token: Token, *, names: bool) -> str:
    spans: list[tuple[int, int]] = []
    for number in sorted(hits.issued):
        pattern = ISSUED[number]
        if not (names and pattern.may_name):
            for start, end in pattern.spans_at(text, hits.issued[number]):
                # Earlier patterns take precedence.
                at = bisect_left(spans, (start, end))
                free = (at == 0 or spans[at - 1][1] <= start) and (at == len(spans) or end <= spans[at][0])
                if free:
                    spans.insert(at, (start, end))
    return replace_spans(text, spans, token)


def _pieces(text: str) -> Iterator[str]:
    """Split a text at blank lines, or else before unindented lines, so that no secret is divided.

    After a change of one piece, only this piece is searched again.
    """
    start = 0
    while len(text) - start > _PIECE:
        cut = text.rfind("\n\n", start + _PIECE // 2, start + _PIECE) + 1 or _before_a_line(text, start + _PIECE // 2)
        if text.rfind("form-data", max(start, cut - _LONGEST_VALUE), cut) >= 0:
            cut = _before_a_line(text, cut + _LONGEST_VALUE)
        yield text[start:cut]
        start = cut
    yield text[start:]


def _before_a_line(text: str, at: int) -> int:
    """The beginning of the next unindented line that is not the value of a block."""
    while (end := text.find("\n", at)) >= 0:
        if not text[end + 1 : end + 2].isspace() and text[end - 1] not in "|>\r":
            return end + 1
        at = end + 1
    return len(text)


def _of_shape(text: str, pattern: TextPattern, stems: Sequence[int]) -> Iterable[Window]:
    return [(stems[0] - _BEFORE_BLOCK, len(text))] if pattern.reach is None else _around(text, stems, *pattern.reach)


def _around(text: str, places: Iterable[int], before: int, behind: int) -> Iterator[Window]:
    """The parts of a text from `before` these places, which come in order, to the end of the word that is `behind`."""
    ends = NextMatch(_WORD_END, text)
    for at in places:
        yield at - before, ends(at + behind)


def _merge(windows: Iterable[Window], length: int) -> list[Window]:
    """Windows in order, without overlaps, within a text of this length."""
    merged: list[Window] = []
    for first, last in sorted(windows):
        start, end = max(0, first), min(length, last)
        if merged and start <= merged[-1][1]:
            if end > merged[-1][1]:
                merged[-1] = merged[-1][0], end
        else:
            merged.append((start, end))
    return merged


def _assignments(text: str, hits: Hits) -> Iterator[Window]:
    ends, digits = NextMatch(PLAIN_WORD_ENDS, text), NextMatch(DIGIT, text)
    for at, match in hits.names:
        opened = match["opened"]
        if match["after"] == ",":
            continue
        if match["quote"] is not None and _SIGN.match(text, match.end("quote")) is not None:
            # An equals sign may follow a quoted name, as in some languages, and then the value.
            yield at - LONGEST_NAME, _end_of_line_value(text, match.end(), at + _LONGEST_VALUE)
        elif match["quote"] is not None and not match["after"]:
            continue
        elif opened is None:
            start, end = match.end(), ends(match.end())
            # A value without quotes has a digit or looks scrambled, unless it is assigned to a variable.
            variable = match["sign"] == "=" and text[at].isupper()
            if end - start >= _SHORTEST_BARE and (variable or digits(start) < end or SCRAMBLED.match(text, start)):
                yield at - LONGEST_NAME, end + 2
        elif opened in ("|", ">"):
            if _BLOCK.match(text, match.end()) is not None:
                yield text.rfind("\n", max(0, at - _LONGEST_VALUE), at), match.end() + 4 * _LONGEST_VALUE
        elif opened[-1] not in "[{":
            yield at - LONGEST_NAME, assigned_values.end_of_value(text, match.end(), opened) + len(opened) + 2


def _end_of_line_value(text: str, start: int, most: int) -> int:
    end = text.find("\n", start, most)
    return most if end < 0 else end + 1


def _parameters(text: str, hits: Hits) -> Iterator[Window]:
    covered = 0
    for at, match in hits.names:
        is_parameter = match["sign"] == "=" and not match["blanks"] and at >= covered
        if is_parameter and _MARKS_OF_QUERIES.search(text, max(0, at - LONGEST_NAME - 8), at) is not None:
            end = _WORD_END.search(text, match.end())
            covered = len(text) if end is None else end.end()
            yield at - LONGEST_NAME - 8, covered


def _members(text: str, hits: Hits) -> Iterator[Window]:
    covered = 0
    for at, match in hits.names:
        opens = match["quote"] == '"' and match["after"] == ":" and (match["opened"] or "").endswith('"')
        if opens and at >= covered:
            depth = len(match["marks"])
            covered = named_values.end_of_string(text, match.end(), depth) + depth + 2
            yield at - LONGEST_NAME - 16, covered


def _nested(text: str, hits: Hits) -> Iterator[Window]:
    values = sorted(hits.others.get('value"', []) + hits.others.get("value\\", []))
    for at, match in hits.names:
        if match["quote"] != '"':
            continue
        opened = (match["opened"] or "")[-1:]
        if opened in ("[", "{") or (
            match["after"] == ","
            and (_VALUE_FOLLOWS.match(text, match.end("after")) or _OPENS_PAIR.search(text, max(0, at - 160), at))
        ):
            yield at - _AROUND_NESTED, match.end() + _AROUND_NESTED
        elif match["after"] == "":
            # `{"value": …, "name": "API_KEY"}`
            before = bisect_left(values, at)
            if before and values[before - 1] > at - _WIDE:
                yield values[before - 1] - 40, values[before - 1] + _AROUND_NESTED


def _forms(text: str, hits: Hits) -> Iterable[Window]:
    opening = named_values.MULTIPART.opening
    return _around(text, [at for at in hits.others.get("form-data", ()) if opening.match(text, at)], 0, _WIDE)


def _markup(_text: str, hits: Hits) -> Iterator[Window]:
    for element in assigned_values.ELEMENTS:
        for at in hits.others.get(element.decode(), ()):
            yield at, at + 1200
    for match in hits.tagged:
        yield match.start() - LONGEST_NAME, match.end() + 600


_PROGRAMS = frozenset(arguments.STEMS)


def _commands(text: str, hits: Hits) -> Iterator[Window]:
    for program in hits.others.keys() & _PROGRAMS:
        covered, ends = -1, NextMatch(_WORD_END, text)
        for at in hits.others[program]:
            if at >= covered and arguments.is_near(program, text, at):
                covered = at + 300
                start = max(0, at - 200)
                if arguments.may_follow(program, text[start : covered + 600]):
                    yield start, ends(covered + 1000) + 16


def _laid_out(text: str, hits: Hits) -> Iterable[Window]:
    return laid_out.spans(text, hits.labels, [(stem, hits.others.get(stem, ())) for stem in laid_out.STEMS])


def _within(replace: Callable[[str, Token], str]) -> _Replace:
    """Replace in each window as if it were the whole text."""
    return lambda text, windows, token: _replace_within(text, windows, replace, token)


def _replace_within(text: str, windows: Iterable[Window], replace: Callable[[str, Token], str], token: Token) -> str:
    return replace_spans(text, _merge(windows, len(text)), lambda part: replace(part, token))


_PARTS: tuple[tuple[Callable[[str, Hits], Iterable[Window]], _Replace], ...] = (
    (_nested, lambda text, windows, token: named_values.replace_nested(text, _merge(windows, len(text)), token)),
    (_parameters, _within(named_values.PARAMETERS.replace)),
    (_forms, _within(named_values.MULTIPART.replace)),
    (_members, _within(named_values.MEMBERS.replace)),
    (_assignments, _within(assigned_values.replace_assignments)),
    (_markup, _within(assigned_values.replace_markup)),
    (_commands, _within(arguments.replace_arguments)),
    (
        lambda _text, hits: [(at, at + 1) for at in hits.followed],
        lambda text, windows, token: beside_names.replace_at(text, [at for at, _ in windows], token),
    ),
    (lambda text, hits: _around(text, hits.vendors, 0, 320), _within(replace_vendor_secrets)),
    (lambda text, hits: statements.spans(text, hits.stated), replace_spans),
    (_laid_out, replace_spans),
    (lambda text, hits: beside_names.strings_of(text, hits.strings), replace_spans),
)
"""For each kind of place: the windows of a text to search, and the function that replaces the secrets there."""


def texts_to_search(texts: Iterable[str]) -> list[str]:
    """The texts in which a secret may begin. Examining them together takes a fraction of the time."""
    found, keys, batch, size = list[str](), dict[str, bytes](), list[str](), 0
    for text in texts:
        if len(text) > _PIECE:
            found.append(text)
            continue
        if len(text) > _WORTH_REMEMBERING:
            key = digest(text)
            if key in _clean:
                continue
            keys[text] = key
        batch.append(text)
        size += len(text)
        if size > _BATCH:
            found += _texts_to_search_in_batch(batch)
            batch, size = [], 0
    found += _texts_to_search_in_batch(batch)
    for text in keys.keys() - set(found):
        _clean.add(keys[text])
    return found


_WORTH_REMEMBERING = 512
_BATCH = 4 * _PIECE


def _texts_to_search_in_batch(texts: Sequence[str]) -> list[str]:
    texts_shown = list(map(decode, texts))
    joined = show("\n".join(texts_shown))
    hits = Hits(joined)
    places = [*coded_places(joined), *chain.from_iterable(hits.shaped.values())]
    spans = [(at, at + 1) for at in places]
    spans += hits.addresses
    for number, starts in hits.issued.items():
        spans += ISSUED[number].spans_at(joined, starts)
    for windows_of, _ in _PARTS:
        spans += windows_of(joined, hits)
    if not spans:
        return []
    ends = list(accumulate([len(text) + 1 for text in texts_shown]))
    numbers = set[int]()
    for start, end in spans:
        numbers.update(range(bisect_right(ends, start), bisect_right(ends, end - 1) + 1))
    # A window may reach beyond the last one.
    return [texts[number] for number in sorted(numbers) if number < len(texts)]
