"""Searches long text for secrets: one pass finds keywords, and patterns run only around those that mean something.

What it finds is what the patterns would find in the whole text. Each part below says of its patterns which keywords
stand in what they match, and how far around a keyword they reach.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

from ahocorasick_rs import BytesAhoCorasick, Implementation, MatchKind

from signet_recording_proxy.redaction.assigned_values import ASSIGNMENTS, COMMANDS, ELEMENTS, MARKUP
from signet_recording_proxy.redaction.beside_names import BESIDE, FOLLOWED
from signet_recording_proxy.redaction.hidden_text import Hidden
from signet_recording_proxy.redaction.named_values import (
    MEMBERS,
    MULTIPART,
    NESTED,
    PARAMETERS,
    end_of_string,
)
from signet_recording_proxy.redaction.secret_patterns import BLOCKS, ISSUED, TEXT_PATTERNS, TextPattern
from signet_recording_proxy.redaction.vendor_kinds import GATE_TAIL, VENDORS, kinds

Token = Callable[[str], str]
Window = tuple[int, int]

_NAMES = {
    "pass": r"pass(?:words?|wd|phrase|code|word_?hash)?",
    "key": r"keys?(?:[_.-]?base)?",
    "token": "token",
    "secret": r"secret(?:[_.-]?value)?",
    "connection": r"connection[_.-]?string",
    "auth": r"auth(?:orization)?",
    "bearer": "bearer",
    "cookie": "cookie",
    "credential": "credentials?",
    "jwt": "jwt",
    "otp": "otp",
    "pat": "pat",
    "psk": "psk",
    "pwd": "pwd",
    "sig": "sig(?:nature)?",
    "code": "code",
}
"""Keywords, and the ends of names that begin with them."""
_ENDS = r"[0-9_.\-\[\]]{0,63}+"
_GAP = r"[ \t\r\n]{0,64}+"
_FOLLOWED = (
    rf"(?P<marks>\\{{0,15}})(?P<quote>[\"']){_GAP}(?P<after>[:,]?){_GAP}"
    r"|(?P<blanks>[ \t]{0,40}+)(?P<sign>:=|=>|=|:)[ \t]{0,40}+"
)
_OPENED = r"(?P<opened>\\{0,15}[\"'`\[{]|[|>])?"
_IN_A_TAG = r"[\w:.-]{0,63}+(?:\s[^<>]{0,200})?>"
_VERIFIED = {
    keyword: re.compile(rf"(?:{name}){_ENDS}(?:{_FOLLOWED}){_OPENED}", re.IGNORECASE)
    for keyword, name in _NAMES.items()
}
_TAGGED = {keyword: re.compile(rf"(?:{name}){_IN_A_TAG}", re.IGNORECASE) for keyword, name in _NAMES.items()}
_LONGEST_ELEMENT = 800
_SIGNED = re.compile(r"[\w.-]{2,40}?" + GATE_TAIL)
_PLAIN_WORD = re.compile(r"[^\s\"'<>;&|,(){}\[\]`\\]{1,512}+")
_WORD_END = re.compile(r"[\s\"'<>]")
_QUOTING = ("'", '"', "`", "|", ">")
_DIGITS = b"0123456789"
_DIGIT = re.compile(r"\d")
_MARKS_OF_QUERIES = re.compile(r"[?&#;]")
_VALUE_FOLLOWS = re.compile(r"\s{0,64}+\\{0,15}+\"value")
_OPENS_PAIR = re.compile(r"\[\s{0,64}\\{0,15}\"[A-Za-z0-9_.\-]{0,64}\Z")
_BLOCK = re.compile(r"[+-]?[0-9]?[+-]?[ \t]{0,40}\r?\n")
_SHORTEST_BARE = 6
_LONGEST_NAME = 66
_LONGEST_VALUE = 4200
_BEFORE_BLOCK = 80
_PIECE = 32 * 1024
_WIDE = 16_384
"""How far what opens in JSON or in a form may reach."""


class _Hits:
    """Where keywords stand, in the order of the text: the shapes' by number of the pattern, the names' by name."""

    def __init__(self, text: str) -> None:
        known = _keywords()
        # Letters beyond ASCII are in no keyword; one byte each keeps the positions.
        lowered = text.encode("ascii", "replace").lower()
        places: defaultdict[int, list[int]] = defaultdict(list)
        for keyword, start, _ in known.automaton.find_matches_as_indexes(lowered, overlapping=True):
            places[keyword].append(start)
        self.issued: dict[int, list[int]] = {}
        self.shaped: dict[int, list[int]] = {}
        self.others: dict[str, list[int]] = {}
        self.vendors: list[int] = []
        """The names of vendors that a sign follows."""
        names: list[tuple[int, str]] = []
        # What has neither quotes nor a digit is no secret, unless it is given to a variable.
        digits = len(lowered.translate(None, _DIGITS)) < len(lowered) or (not text.isascii() and _has_digit(text))
        any_name = digits or any(mark in text for mark in _QUOTING)
        for keyword, starts in places.items():
            name, other = known.names[keyword], known.others[keyword]
            if name is not None:
                names += [(start, name) for start in starts if any_name or text[start].isupper()]
            if other is not None:
                self.others[other] = starts
            for number in known.issued[keyword]:
                _add(self.issued, number, starts)
            for number in known.shaped[keyword]:
                _add(self.shaped, number, starts)
            if known.vendors[keyword]:
                self.vendors += [start for start in starts if _SIGNED.match(text, start) is not None]
        names.sort()
        self.vendors.sort()
        if "." in text and (dotted := [match.start() for match in _DOTTED.finditer(text)]):
            self.issued.update(dict.fromkeys(_DOTTED_NUMBERS, dotted))
        self.addresses: list[Window] = []
        """Words that may name a user before a host."""
        if "@" in text and "://" in text:
            self.addresses = [match.span() for match in _ADDRESS.finditer(text) if "@" in match[0]]
            if self.addresses:
                self.shaped.update({number: [] for number in _ADDRESS_NUMBERS})
        self.followed = [at for at, _ in names if FOLLOWED.match(text, at) is not None] if digits else []
        """The names beside which a value may stand."""
        self.named = list(_verified(text, names))
        """The names that something follows, with what does."""
        self.tagged = list(_tagged(text, names)) if "</" in text else []
        """The names of elements, with the tags."""
        self.none = not (
            self.issued or self.shaped or self.others or self.vendors or self.followed or self.named or self.tagged
        )


def _add(of: dict[int, list[int]], number: int, starts: list[int]) -> None:
    of[number] = sorted([*of[number], *starts]) if number in of else starts


_ELEMENTS = tuple(element.decode() for element in ELEMENTS)
_OTHERS = ("form-data", *_ELEMENTS, 'value"', "value\\", *COMMANDS.STEMS)


class _Keywords(NamedTuple):
    automaton: BytesAhoCorasick
    issued: Sequence[Sequence[int]]
    shaped: Sequence[Sequence[int]]
    names: Sequence[str | None]
    others: Sequence[str | None]
    vendors: Sequence[bool]


@cache
def _keywords() -> _Keywords:
    stems: dict[str, int] = {}
    for pattern in (*ISSUED, *TEXT_PATTERNS):
        for stem in pattern.stems:
            if stem not in (".", "@"):
                stems.setdefault(stem, len(stems))
    vendors = {stem for kind in kinds() for stem in kind.stems}
    for keyword in (*_NAMES, *_OTHERS, *sorted(vendors)):
        stems.setdefault(keyword, len(stems))
    automaton = BytesAhoCorasick(
        [stem.encode() for stem in stems], matchkind=MatchKind.Standard, implementation=Implementation.DFA
    )

    def users(patterns: Sequence[TextPattern]) -> list[list[int]]:
        of: list[list[int]] = [[] for _ in stems]
        for number, pattern in enumerate(patterns):
            for stem in pattern.stems:
                if stem in stems:
                    of[stems[stem]].append(number)
        return of

    return _Keywords(
        automaton,
        users(ISSUED),
        users(TEXT_PATTERNS),
        [stem if stem in _NAMES else None for stem in stems],
        [stem if stem in _OTHERS else None for stem in stems],
        [stem in vendors for stem in stems],
    )


_DOTTED = re.compile(r"\.(?<=[A-Za-z0-9_-]{24}\.)[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27}")
"""The two dots of a bot's token at Discord, which has no other mark."""
_ADDRESS = re.compile(r"://[^\s\"'<>\\]{1,1024}+")
_ADDRESS_NUMBERS = [number for number, pattern in enumerate(TEXT_PATTERNS) if "@" in pattern.stems]
_DOTTED_NUMBERS = [number for number, pattern in enumerate(ISSUED) if "." in pattern.stems]


class KeywordSearch:
    """Takes the secrets out of one text after the other; `hidden` is what undoes encodings, None for none."""

    def __init__(self, token: Token, hidden: Hidden | None) -> None:
        self._token = token
        self._hidden = hidden

    def clean(self, text: str, *, names: bool = False) -> str:
        """`text` with tokens in place of its secrets; `names` marks a member that identifies a person or a program."""
        if len(text) <= _PIECE:
            return self._without_hidden(self._piece(text, names=names))
        lowered = text.encode("ascii", "replace").lower()
        for pattern in BLOCKS:
            if any(stem.encode() in lowered for stem in pattern.stems):
                text = pattern.replace(text, self._token)
        clean = "".join([self._piece(piece, names=names) for piece in _pieces(text)])
        return self._without_hidden(clean)

    def _without_hidden(self, text: str) -> str:
        return text if self._hidden is None else self._hidden.replace(text, self._token)

    def _piece(self, text: str, *, names: bool) -> str:
        hits = _Hits(text)
        if hits.none:
            return text
        # A token may be glued to another one, and begin where that was taken out.
        while (changed := self._issued(text, hits, names=names)) != text:
            text, hits = changed, _Hits(changed)
        for number, pattern in enumerate(TEXT_PATTERNS):
            if number in hits.shaped and not (names and pattern.may_name):
                around = hits.addresses if number in _ADDRESS_NUMBERS else _around(text, pattern, hits.shaped[number])
                windows = _merge(around, len(text))
                changed = _replaced(text, windows, pattern.replace, self._token)
                if changed != text:
                    text, hits = changed, _Hits(changed)
        for pattern_of, replace in (
            (_nested, NESTED.replace),
            (_parameters, PARAMETERS.replace),
            (_forms, MULTIPART.replace),
            (_members, MEMBERS.replace),
            (_assignments, ASSIGNMENTS.replace),
            (_markup, MARKUP.replace),
            (_commands, COMMANDS.replace),
            (_beside, BESIDE.replace),
            (_vendors, VENDORS.replace),
        ):
            if windows := list(pattern_of(text, hits)):
                windows = _merge(windows, len(text))
                changed = _replaced(text, windows, replace, self._token)
                if changed != text:
                    text, hits = changed, _Hits(changed)
        return text

    def _issued(self, text: str, hits: _Hits, *, names: bool) -> str:
        spans: list[tuple[int, int]] = []
        for number in sorted(hits.issued):
            pattern = ISSUED[number]
            if not (names and pattern.may_name):
                for start, end in pattern.spans_at(text, hits.issued[number]):
                    # What an earlier pattern has taken stays its own.
                    at = bisect_left(spans, (start, end))
                    free = (at == 0 or spans[at - 1][1] <= start) and (at == len(spans) or end <= spans[at][0])
                    if free:
                        spans.insert(at, (start, end))
        if not spans:
            return text
        pieces: list[str] = []
        done = 0
        for start, end in spans:
            pieces += (text[done:start], self._token(text[start:end]))
            done = end
        return "".join((*pieces, text[done:]))


def _pieces(text: str) -> Iterator[str]:
    """Text in pieces that divide no secret: at blank lines, or else before lines that are not indented, if any.

    Whatever changes in one is searched anew, and not in the others.
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
    """The first place from here on where a line begins that is not indented and begins no block's value."""
    while (end := text.find("\n", at)) >= 0:
        if not text[end + 1 : end + 2].isspace() and text[end - 1] not in "|>\r":
            return end + 1
        at = end + 1
    return len(text)


def _around(text: str, pattern: TextPattern, stems: Sequence[int]) -> Iterator[Window]:
    if pattern.reach is None:
        yield stems[0] - _BEFORE_BLOCK, len(text)
        return
    before, behind = pattern.reach
    covered = 0
    for at in stems:
        if at >= covered:
            end = _WORD_END.search(text, min(len(text), at + behind))
            covered = len(text) if end is None else end.start()
            yield at - before, covered


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


def _replaced(text: str, windows: Iterable[Window], replace: Callable[[str, Token], str], token: Token) -> str:
    pieces: list[str] = []
    done = 0
    for start, end in windows:
        part = text[start:end]
        clean = replace(part, token)
        if clean != part:
            pieces += (text[done:start], clean)
            done = end
    return "".join((*pieces, text[done:])) if pieces else text


def _verified(text: str, names: Sequence[tuple[int, str]]) -> Iterator[tuple[int, re.Match[str]]]:
    passed = 0
    for at, name in names:
        if at >= passed and (match := _VERIFIED[name].match(text, at)) is not None:
            yield at, match
            if match["sign"] and not match["opened"]:
                passed = _without_digit(text, match)


def _tagged(text: str, names: Sequence[tuple[int, str]]) -> Iterator[re.Match[str]]:
    end = -1
    for at, name in names:
        if end < at:
            end = text.find("</", at)
            if end < 0:
                return
        if end - at <= _LONGEST_ELEMENT and (match := _TAGGED[name].match(text, at)) is not None:
            yield match


def _without_digit(text: str, match: re.Match[str]) -> int:
    """Up to where a bare word holds no secret: it has neither a digit nor a variable's name. Its end may be a name."""
    word = _PLAIN_WORD.match(text, match.end())
    if word is None or _has_digit(word[0]) or word[0] != word[0].lower():
        return 0
    return word.end() - _LONGEST_NAME


def _has_digit(word: str) -> bool:
    return _DIGIT.search(word) is not None or (not word.isascii() and any(map(str.isdigit, word)))


def _assignments(text: str, hits: _Hits) -> Iterator[Window]:
    for at, match in hits.named:
        opened = match["opened"]
        if match["after"] == ",":
            continue
        if match["quote"] is not None and not match["after"]:
            # A sign that only some languages know may follow a quoted name, and the value that.
            yield at - _LONGEST_NAME, _end_of_line_value(text, match.end(), at + _LONGEST_VALUE // 4)
        elif opened is None:
            word = _PLAIN_WORD.match(text, match.end())
            # Without quotes a value has a digit, unless it is given to a variable.
            variable = match["sign"] == "=" and text[at].isupper()
            if word is not None and len(word[0]) >= _SHORTEST_BARE and (variable or _has_digit(word[0])):
                yield at - _LONGEST_NAME, word.end() + 2
        elif opened in ("|", ">"):
            if _BLOCK.match(text, match.end()) is not None:
                yield text.rfind("\n", max(0, at - _LONGEST_VALUE), at), match.end() + 4 * _LONGEST_VALUE
        elif opened[-1] not in "[{":
            yield at - _LONGEST_NAME, ASSIGNMENTS.end_of_value(text, match.end(), opened) + len(opened) + 2


def _end_of_line_value(text: str, start: int, most: int) -> int:
    end = text.find("\n", start, most)
    return most if end < 0 else end + 1


def _parameters(text: str, hits: _Hits) -> Iterator[Window]:
    covered = 0
    for at, match in hits.named:
        asked = match["sign"] == "=" and not match["blanks"] and at >= covered
        if asked and _MARKS_OF_QUERIES.search(text, max(0, at - _LONGEST_NAME - 8), at) is not None:
            end = _WORD_END.search(text, match.end())
            covered = len(text) if end is None else end.end()
            yield at - _LONGEST_NAME - 8, covered


def _members(text: str, hits: _Hits) -> Iterator[Window]:
    covered = 0
    for at, match in hits.named:
        opens = match["quote"] == '"' and match["after"] == ":" and (match["opened"] or "").endswith('"')
        if opens and at >= covered:
            depth = len(match["marks"])
            covered = end_of_string(text, match.end(), depth) + depth + 2
            yield at - _LONGEST_NAME - 16, covered


def _nested(text: str, hits: _Hits) -> Iterator[Window]:
    values = sorted(hits.others.get('value"', []) + hits.others.get("value\\", []))
    for at, match in hits.named:
        if match["quote"] != '"':
            continue
        opened = (match["opened"] or "")[-1:]
        if opened in ("[", "{") or (
            match["after"] == ","
            and (_VALUE_FOLLOWS.match(text, match.end("after")) or _OPENS_PAIR.search(text, max(0, at - 160), at))
        ):
            yield at - 2 * _LONGEST_NAME - 80, match.end() + _LONGEST_VALUE
        elif match["after"] == "":
            # `{"value": …, "name": "API_KEY"}`
            before = bisect_left(values, at)
            if before and values[before - 1] > at - _WIDE:
                yield values[before - 1] - 40, match.end() + 80


def _forms(_text: str, hits: _Hits) -> Iterator[Window]:
    for at in hits.others.get("form-data", ()):
        yield at, at + _WIDE


def _markup(_text: str, hits: _Hits) -> Iterator[Window]:
    for element in _ELEMENTS:
        for at in hits.others.get(element, ()):
            yield at, at + 700
    for match in hits.tagged:
        yield match.start() - _LONGEST_NAME, match.end() + 500


def _vendors(_text: str, hits: _Hits) -> Iterator[Window]:
    for at in hits.vendors:
        yield at, at + 320


def _beside(_text: str, hits: _Hits) -> Iterator[Window]:
    for at in hits.followed:
        yield at - _LONGEST_NAME - 20, at + 640


_PROGRAMS = frozenset(COMMANDS.STEMS)


def _commands(_text: str, hits: _Hits) -> Iterator[Window]:
    for program in hits.others.keys() & _PROGRAMS:
        covered = -1
        for at in hits.others[program]:
            if at >= covered:
                covered = at + 300
                yield at - 40, covered + 600
