"""Finds the places in a text where secrets may be: keywords that announce a secret, with their surroundings.

One pass finds all keywords. Only names that mean a secret, and that a value may follow, are kept.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from functools import cache, cached_property, lru_cache
from itertools import accumulate
from typing import NamedTuple

from ahocorasick_rs import BytesAhoCorasick, Implementation, MatchKind

from signet_recording_proxy.redaction import arguments, beside_names, vendor_kinds
from signet_recording_proxy.redaction.appearance import SCRAMBLED
from signet_recording_proxy.redaction.assigned_values import ELEMENTS
from signet_recording_proxy.redaction.laid_out import ENDS_LABEL, STEMS as LAID_OUT
from signet_recording_proxy.redaction.named_values import NAME_ENDINGS
from signet_recording_proxy.redaction.secret_names import MARKS, NAMES, SAMPLE, is_secret_parameter, names_secret
from signet_recording_proxy.redaction.secret_patterns import ISSUED, TEXT_PATTERNS, TextPattern
from signet_recording_proxy.redaction.spans import NextMatch, Span
from signet_recording_proxy.redaction.statements import STEMS as STATED, Noun, may_state, nouns_in_other_scripts

_AFTER_NAMES = "0123456789_.-[]\\\"'`)*>|,:= \t\r\n\x0b;<"
"""What may follow the last word of a secret's name. So the beginnings of `path`, `author` and `design` are no names."""
_OF_QUERIES = tuple(name + after for name in (*NAMES.query_always, *NAMES.query_mixed) for after in "=[")
"""Whole names that only queries and forms have, each with a sign that may follow."""
_LAST_WORDS = (
    r"(?:pass(?:[_.-]?(?:words?|wd|phrase|code|wort|word[_.-]?hash))?|kennwort|senha|contrasena|wachtwoord|keys?(?:[_.-]?base)?|token|secret(?:[_.-]?value)?"
    r"|connection[_.-]?string|auth(?:orization)?|bearer|cookie|credentials?|jwt|otp|pat|pepper|psk|pwd?|sig(?:nature)?|code)"
)
_ENDS = r"[0-9_.\-\[\]]{0,63}+"
_GAP = r"[ \t\r\n]{0,64}+"
_FOLLOWED = (
    rf"(?P<marks>\\{{0,15}})(?P<quote>[\"']){_GAP}(?P<after>[:,]?){_GAP}"
    r"|(?P<blanks>[ \t]{0,40}+)(?P<sign>:=|=>|=|:)[ \t]{0,40}+"
)
# A quote that is closed at once holds no secret.
_OPENED = (
    r"(?:(?:br?|rb?|[uln])(?=\\{0,15}[\"'`]))?+"
    r"(?P<opened>\\{0,15}[\"'`\[{]|[|>])?+(?(opened)(?!(?<=[\"'`])(?P=opened)))"
)
_VERIFIED = re.compile(rf"{_LAST_WORDS}{_ENDS}(?>{_FOLLOWED}){_OPENED}")
"""For text in lower case, at the last word of a name."""
_TAGGED = re.compile(rf"{_LAST_WORDS}[\w:.-]{{0,63}}+(?:\s[^<>]{{0,200}})?>", re.IGNORECASE)
_PART_OF_A_NAME = re.compile(r"[A-Za-z0-9_.\-\[\]]*+")
_NAME_GOES_ON = re.compile(r"[A-Za-z0-9_.-]*+")
_LONGEST_ELEMENT = 900
_SIGNED = re.compile(r"[ \t\w.-]{2,66}+" + vendor_kinds.PREFILTER_SIGN)
PLAIN_WORD_ENDS = re.compile(r"[\s\"'<>;&|,(){}\[\]`\\]")
_NO_SMALL_LETTERS = re.compile(r"[A-Z?#]|\d|[^\x00-\x7f]")
_BEFORE_VALUES = ("'", '"', "`", "|", ">", "?", "&", "#")
DIGIT = re.compile(r"\d")
_SIGNS = tuple("!#$%^&+?=~")
_DIGITS = [b"%d" % digit for digit in range(10)]
LONGEST_NAME = 66
HOLDS_HOME = "agentsDir"
"""A member of this name holds a folder in someone's home."""


class Hits:
    """Where the keywords of a text are, in order; `issued` and `shaped` have them by the number of their pattern.

    What surrounds them is examined on demand, since a pattern that is applied earlier may change the text.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        # Letters beyond ASCII are in no keyword; one byte each keeps the positions.
        self._lowered = lowered = text.encode("ascii", "replace").lower()
        places: defaultdict[int, list[int]] = defaultdict(list)
        for keyword, start, _ in _KEYWORDS.automaton.find_matches_as_indexes(lowered, overlapping=True):
            places[keyword].append(start)
        self.issued: dict[int, list[int]] = {}
        self.shaped: dict[int, list[int]] = {}
        self.others: dict[str, list[int]] = {}
        self._vendors, self._names = list[int](), list[int]()
        self._nouns: list[Noun] = []
        for keyword, starts in places.items():
            uses = _KEYWORDS.uses[keyword]
            if uses.ends_name:
                self._names += starts
            if uses.other is not None:
                self.others[uses.other] = starts
            for number in uses.issued:
                _add(self.issued, number, starts)
            for number in uses.shaped:
                _add(self.shaped, number, starts)
            if uses.stated is not None:
                self._nouns += [Noun(start, uses.stated) for start in starts]
            if uses.vendor:
                self._vendors += starts
        self._names.sort()
        if "." in text and (dotted := [match.start() for match in _DOTTED.finditer(text)]):
            self.issued.update(dict.fromkeys(_DOTTED_NUMBERS, dotted))
        self.addresses: list[Span] = []
        """Words that may be the name of a user before a host."""
        schemes, self._closings = self.others.pop(_SCHEME, ()), self.others.pop(_CLOSING, ())
        if schemes and "@" in text:
            self.addresses = list(_addresses(text, schemes))
            if self.addresses:
                self.shaped.update({number: [] for number in ADDRESS_NUMBERS})
        digits = any(digit in lowered for digit in _DIGITS) or (not text.isascii() and has_digit(text))
        # Without digits only capital letters make a word look random; any value may be between quotes or in a query.
        self._may_look_random = digits or (bool(self._names) and not text.islower())
        if not self._may_look_random and not any(mark in text for mark in _BEFORE_VALUES):
            self._names = []
        may_state = digits or any(sign in text for sign in _SIGNS)
        self._nouns = [*self._nouns, *nouns_in_other_scripts(text)] if may_state else []
        self.is_empty = not any((self.issued, self.shaped, self.others, self._vendors, self._nouns, self._names))

    @cached_property
    def vendors(self) -> list[int]:
        """The names of vendors that a sign follows."""
        return sorted(start for start in self._vendors if _SIGNED.match(self._text, start) is not None)

    @cached_property
    def stated(self) -> list[Noun]:
        """The words near which a sentence may state a secret."""
        return [noun for noun in self._nouns if may_state(self._text, noun)]

    @cached_property
    def _lowered_text(self) -> str:
        return self._lowered.decode("ascii") if self._names else ""

    @cached_property
    def labels(self) -> list[re.Match[str]]:
        """The names at the end of a line, a cell or an element."""
        names = self._names if self._may_look_random else ()
        return [label for at in names if (label := ENDS_LABEL.match(self._lowered_text, at)) is not None]

    @cached_property
    def _behind(self) -> tuple[list[int], list[Span]]:
        return _find_followed(self._text, self._lowered_text, self._names if self._may_look_random else ())

    @property
    def followed(self) -> list[int]:
        """The beginnings of the names that a value may follow, including the hyphens before them."""
        return self._behind[0]

    @property
    def strings(self) -> list[Span]:
        """The names that a string with a digit may follow in a statement."""
        return self._behind[1]

    @cached_property
    def names(self) -> list[tuple[int, re.Match[str]]]:
        """The names that something follows, each with what follows."""
        return list(_find_with_values(self._text, self._lowered_text, self._names))

    @cached_property
    def tagged(self) -> list[re.Match[str]]:
        """The names of elements, with the tags."""
        return list(_find_tags(self._text, self._names, self._closings))


def _add(by_number: dict[int, list[int]], number: int, starts: list[int]) -> None:
    by_number[number] = sorted([*by_number[number], *starts]) if number in by_number else starts


def _find_followed(text: str, lowered: str, names: Sequence[int]) -> tuple[list[int], list[Span]]:
    beside, before_strings = list[int](), list[Span]()
    digits, ends = NextMatch(DIGIT, text), NextMatch(beside_names.VALUE_ENDS, text)
    most, longest = beside_names.MOST_TO_DIGIT, beside_names.MOST_BEFORE
    digit = -1
    for at in names:
        if digit < at:
            digit = digits(at)
        is_near = digit - at <= most
        # A digit that is further away may end a long word. Only passwords may be without digits.
        if not is_near and " " in text[at + longest : at + most] and not lowered.startswith(("pass", "pw"), at):
            continue
        followed = beside_names.FOLLOWED.match(lowered, at)
        if followed is not None and digits(followed.end()) >= ends(followed.end()):
            followed = followed if SCRAMBLED.match(text, followed.end()) else None
        string_follows = beside_names.STRING_FOLLOWS.match(lowered, at) if is_near else None
        if followed is None and string_follows is None:
            continue
        before = _NAME_GOES_ON.match(text[max(0, at - LONGEST_NAME) : at][::-1])
        name = _NAME_GOES_ON.match(text, at if before is None else at - before.end())
        if name is not None and followed is not None and beside_names.may_name(name[0]):
            beside.append(name.start())
        if name is not None and string_follows is not None and beside_names.names_in_code(name[0].strip("-.")):
            before_strings.append(name.span())
    return beside, before_strings


_ELEMENTS = tuple(element.decode() for element in ELEMENTS)
_SCHEME, _CLOSING = "://", "</"
_OTHERS = (*LAID_OUT, "form-data", _SCHEME, _CLOSING, *_ELEMENTS, 'value"', "value\\", *arguments.STEMS)


class _Uses(NamedTuple):
    """The searches that a keyword starts."""

    ends_name: bool
    other: str | None
    issued: Sequence[int]
    shaped: Sequence[int]
    vendor: bool
    stated: str | None


class _Keywords(NamedTuple):
    automaton: BytesAhoCorasick
    uses: Sequence[_Uses]


def _keywords() -> _Keywords:
    names = {*_OF_QUERIES, *(name + after for name in NAMES.last_words for after in _AFTER_NAMES)}
    vendors = {stem for kind in vendor_kinds.kinds() for stem in kind.stems}
    patterns = {stem for pattern in (*ISSUED, *TEXT_PATTERNS) for stem in pattern.stems} - {".", "@"}
    stems = sorted({*names, *vendors, *patterns, *STATED, *_OTHERS})
    automaton = BytesAhoCorasick(
        [stem.encode() for stem in stems], matchkind=MatchKind.Standard, implementation=Implementation.DFA
    )

    issued, shaped = _by_stem(ISSUED), _by_stem(TEXT_PATTERNS)
    uses = [
        _Uses(
            ends_name=stem in names,
            other=stem if stem in _OTHERS else None,
            issued=issued[stem],
            shaped=shaped[stem],
            vendor=stem in vendors,
            stated=STATED.get(stem),
        )
        for stem in stems
    ]
    return _Keywords(automaton, uses)


def _by_stem(patterns: Sequence[TextPattern]) -> defaultdict[str, list[int]]:
    by_number = defaultdict[str, list[int]](list)
    for number, pattern in enumerate(patterns):
        for stem in pattern.stems:
            by_number[stem].append(number)
    return by_number


# Made before the recorder listens, as the prefilter is; otherwise all connections would wait for it.
_KEYWORDS = _keywords()


_DOTTED = re.compile(r"\.(?<=[A-Za-z0-9_-]{24}\.)[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27}")
"""The two dots of a bot's token at Discord, which has no other mark."""
_ADDRESS = re.compile(r"://[^\s\"'<>\\]{1,1024}+")


def _addresses(text: str, places: Sequence[int]) -> Iterator[Span]:
    covered = 0
    for at in places:
        if at >= covered and (match := _ADDRESS.match(text, at)) is not None:
            covered = match.end()
            if "@" in match[0]:
                yield match.span()


ADDRESS_NUMBERS = [number for number, pattern in enumerate(TEXT_PATTERNS) if "@" in pattern.stems]
_DOTTED_NUMBERS = [number for number, pattern in enumerate(ISSUED) if "." in pattern.stems]


def secret_names_among(names: Collection[str]) -> set[str]:
    """Those of these names of members whose value may be a secret."""
    listed = list(names)
    lowered = "\n".join(listed).lower().encode("utf-8", "surrogatepass")
    if lowered.count(b"\n") < len(listed):
        squeezed = lowered.translate(None, MARKS)
        endings = _endings_of_names().find_matches_as_indexes(squeezed, overlapping=True)
        ended = [start for _, start, end in endings if _ENDS_NAME.match(squeezed, end)]
        numbers = _lines_at(ended, squeezed) | _lines_at(vendor_kinds.places(lowered), lowered)
        listed = [listed[number] for number in numbers]
    return {name for name in listed if names_secret(name) or vendor_kinds.may_name(name) or name == HOLDS_HOME}


_ENDS_NAME = re.compile(rb"[0-9]*+(?=\n|\Z)")


def _lines_at(places: Sequence[int], text: bytes) -> set[int]:
    """The numbers of the lines that contain these places."""
    if not places:
        return set()
    ends = list(accumulate([len(line) + 1 for line in text.split(b"\n")]))
    return {bisect_right(ends, place) for place in places}


@cache
def _endings_of_names() -> BytesAhoCorasick:
    """Finds the endings of secrets' names, in lower case and without the marks between their words."""
    return BytesAhoCorasick([*NAME_ENDINGS, HOLDS_HOME.lower().encode()], implementation=Implementation.DFA)


def _find_with_values(text: str, lowered: str, names: Sequence[int]) -> Iterator[tuple[int, re.Match[str]]]:
    harmless_until = 0
    ends, others = NextMatch(PLAIN_WORD_ENDS, text), NextMatch(_NO_SMALL_LETTERS, text)
    for at in names:
        if at >= harmless_until and (match := _VERIFIED.match(lowered, at)) is not None:
            if match["sign"] and not match["opened"] and (end := ends(match.end())) <= others(match.end()):
                # A bare word of small letters holds no secret. Its end may be a name.
                harmless_until = end - LONGEST_NAME
            end = match.start("marks")
            if _may_mean_secret(_name(text, at, match.start("blanks") if end < 0 else end)):
                yield at, match


def _name(text: str, at: int, end: int) -> str:
    """The name whose last word begins at a place, up to `end`."""
    before = _PART_OF_A_NAME.match(text[max(0, at - LONGEST_NAME) : at][::-1])
    return text[at if before is None else at - before.end() : end]


@lru_cache(maxsize=4096)
def _may_mean_secret(name: str) -> bool:
    """Whether some value of this name is a secret, in a member, a parameter or a setting."""
    return is_secret_parameter(name, SAMPLE) or name.endswith("KEY")


def _find_tags(text: str, names: Sequence[int], closings: Sequence[int]) -> Iterator[re.Match[str]]:
    following = iter(closings)
    closing = next(following, None)
    for at in names:
        while closing is not None and closing < at:
            closing = next(following, None)
        if closing is None:
            return
        if closing - at <= _LONGEST_ELEMENT and (match := _TAGGED.match(text, at)) is not None:
            yield match


def has_digit(word: str) -> bool:
    """Whether any character is a digit, in any script."""
    return DIGIT.search(word) is not None or (not word.isascii() and any(map(str.isdigit, word)))
