"""Secrets that a sentence calls so, in some thirty languages.

`the password for the database is …`, `use … as the password`, `API-Schlüssel: …`, `パスワードを「…」に`. Other words
may be between the noun and the secret. The secret is the part that does not look like a word, as `appearance` judges.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Final, NamedTuple

from ahocorasick_rs import AhoCorasick, Implementation
from msgspec import Struct

from signet_recording_proxy.redaction import appearance
from signet_recording_proxy.redaction.spans import Span, end_of_word, without_surrogates
from signet_recording_proxy.redaction.tables import any_of, read_table


class _Words(Struct, frozen=True):
    """The lists of words in `statements.json`, whose schema explains them."""

    long_passwords: tuple[str, ...]
    short_passwords: tuple[str, ...]
    credentials: tuple[str, ...]
    tokens: tuple[str, ...]
    keys: tuple[str, ...]
    secret_keys: frozenset[str]
    other_keys: frozenset[str]
    no_values: frozenset[str]
    verbs: frozenset[str]
    as_words: tuple[str, ...]
    english: frozenset[str]
    after_english: tuple[str, ...]


_WORDS: Final = read_table("statements.json", _Words)


class Noun(NamedTuple):
    """A word for a secret, and where it begins in a text."""

    at: int
    word: str


_NOUNS = {*_WORDS.long_passwords, *_WORDS.short_passwords, *_WORDS.credentials, *_WORDS.tokens, *_WORDS.keys}
_LATIN = {noun for noun in _NOUNS if re.search("[a-z]", noun)}
"""Words in Latin letters, with or without accents."""
_OTHERS = {spelled: noun for noun in _NOUNS - _LATIN for spelled in {noun, noun.title(), noun.upper()}}
_AS_ENGLISH = tuple(f" as {word} " for word in ("the", "our", "your", "my", "its", "a", "new"))


def as_stem(word: str) -> str:
    """A word in ASCII, with a `?` for each other character."""
    return word.encode("ascii", "replace").decode()


STEMS: Final = {
    **{
        as_stem(noun + after): noun
        for noun in _LATIN
        for after in (_WORDS.after_english if noun in _WORDS.english else ("",))
    },
    **{f" {word} ": "" for word in _WORDS.as_words},
    **dict.fromkeys(_AS_ENGLISH, ""),
}
"""How statements begin, spelled by `as_stem`, and their noun; it is empty for `… as the password`."""

_HELD = r"(?:[^\"\\]|\\.)*"
_NOUN = any_of(_NOUNS)
PREFILTER: Final = rf"{_NOUN}{_HELD}[0-9!#$%^&+?=~]|[0-9]{_HELD}{_NOUN}"
"""Matches a string in an encoded line that may hold one; an expression of Rust's."""

_QUOTE = r"[\"'`“”„‚‘’«»「」『』]"
_VALUE = r"(?P<value>[!#-&*+\-./0-:=?-\[\]-_a-z|~]{7,512}+)(?!\(|\\(?!\\{0,14}\"))"
_LETTER = r"[^\W\d_]"
_WORD = rf"{_LETTER}{{1,24}}+(?:['’.-]{_LETTER}{{1,24}}+){{0,3}}+(?=[\s)\"'`*：＝]|[:=](?:\s|\Z)|[^\x00-\x7f])"
_SIGNS = rf"(?:[ \t\u00a0\u3000:：=＝—–→|*)（）]|(?<=[ \t])[/(>-](?=[ \t\"'`)\w])|->|\\{{0,4}}{_QUOTE}){{1,12}}+"
_CLAUSE = (
    rf"(?P<between>(?:(?:{_SIGNS}|(?<=[^\x00-\x7f])){_WORD}){{0,10}}+)"
    rf"(?P<signs>{_SIGNS}|(?<=[^\x00-\x7f])){_VALUE}"
)
_ENDING = re.compile(rf"(?P<ending>{_LETTER}{{0,12}}+)(?:['’]s)?")
_OTHER_ENDING = re.compile(r"(?P<ending>[^\W\d_A-Za-z]{0,12}+)")
_DIGIT = re.compile("[0-9!#$%^&+?=~]")
_MOST_AFTER = 90
_SHORTEST = 7
_CLAUSES = re.compile(_CLAUSE)
_MOST_VALUES = 3
"""A name such as `build-01` may come before the secret."""
_BEFORE_AS = re.compile(rf"(?<![^\s\"'`“„«「]){_VALUE}{_QUOTE}?\Z")
_AS = re.compile(rf" \w{{2,5}} (?:{_LETTER}{{1,24}}+[ -]){{0,5}}?(?i:{_NOUN})")
_BEFORE = re.compile(r"([\w&.]{1,32})['’]?[ \t_-]?\Z")
_POSSESSIVE = re.compile(r"(?:\b(?:my|our|your|his|her|their|its)|['’]s)[ \t](?:[A-Z0-9][\w&.-]{0,24}[ \t]){1,3}\Z")
_DIRECT = frozenset(":：=＝→\"'`“„‚‘«「『|/>—–")
_ENDS = ".,:*"


def spans(text: str, nouns: Iterable[Noun]) -> list[Span]:
    """The places of the secrets near those words, in order."""
    return sorted({span for noun in nouns if (span := _stated(text, noun)) is not None})


def nouns_in_other_scripts(text: str) -> list[Noun]:
    """The words that are not in Latin letters."""
    if text.isascii() or not any(map(text.__contains__, _FIRST_LETTERS)):
        return []
    spelled = list(_OTHERS)
    found = _others().find_matches_as_indexes(without_surrogates(text), overlapping=True)
    return [Noun(start, _OTHERS[spelled[number]]) for number, start, _ in found]


def may_state(text: str, noun: Noun) -> bool:
    """Whether a secret may be near a word."""
    at, word = noun
    if not word:
        last = text[max(0, at - _MOST_AFTER) : at].rpartition(" ")[2]
        return len(last) > _SHORTEST and _DIGIT.search(last) is not None
    return _DIGIT.search(text, at + len(word), at + len(word) + _MOST_AFTER) is not None


_FIRST_LETTERS = tuple({word[0] for word in _OTHERS})


@cache
def _others() -> AhoCorasick:
    return AhoCorasick(list(_OTHERS), implementation=Implementation.DFA)


def _stated(text: str, noun: Noun) -> Span | None:
    if not noun.word:
        return _before_as(text, noun.at)
    ending = (_ENDING if noun.word in _LATIN else _OTHER_ENDING).match(text, noun.at + len(noun.word))
    clause = None if ending is None else _CLAUSES.match(text, ending.end(), ending.end() + 640)
    for _ in range(_MOST_VALUES):
        if clause is None:
            return None
        value = clause["value"].rstrip(_ENDS)
        if _is_stated(text, noun, clause, value):
            means = ending is not None and _means_secret(text, noun, ending["ending"].lower())
            start = clause.start("value")
            return (start, end_of_word(text, start, start + len(value))) if means else None
        if len(value) > _LONGEST_OTHER or len(value) < len(clause["value"]):
            return None
        clause = _CLAUSES.match(text, clause.end(), clause.end() + 640)
    return None


_LONGEST_OTHER = 24


def _is_stated(text: str, noun: Noun, clause: re.Match[str], value: str) -> bool:
    """Whether the clause between a word and a value says that the value is the secret, and the value looks like one."""
    between = re.findall(_LETTER + "+", clause["between"].lower())
    if not _WORDS.no_values.isdisjoint(between):
        return False
    before = clause["signs"].rstrip()[-1:] or clause["between"][-1:]
    direct = before in _DIRECT or before > "\x7f" or (between[-1] if between else "") in _WORDS.verbs
    if direct and appearance.is_hexadecimal(value):
        return _may_be_hexadecimal(text, noun)
    if _CODE.fullmatch(value) is not None:
        return False
    if (
        noun.word in _WORDS.credentials
        and (pair := _PAIR.fullmatch(value)) is not None
        and appearance.is_random_or_invented(pair[1])
    ):
        return True
    of_password = direct and noun.word in _PASSWORDS
    return (
        _is_drawn(value)
        or appearance.is_invented(value, direct=of_password)
        or (of_password and (appearance.is_scrambled(value) or _WORDS_AND_NUMBER.fullmatch(value) is not None))
    )


_WORDS_AND_NUMBER = re.compile(r"[a-z]{8,24}[0-9]{2,4}[!?$]?")
"""A password such as `mountaincoffee1987`."""
_PAIR = re.compile(r"[A-Za-z][\w.@-]{1,40}[:/]([^/]{6,256})")
"""A user and a password, which are taken as one secret."""


_CODE = re.compile(r"!![A-Za-z_]\w*|[A-Za-z_]\w*(?:\[\w+\])+")


def _is_drawn(value: str) -> bool:
    return len(value) >= _SHORTEST_DRAWN and appearance.looks_random(value)


_SHORTEST_DRAWN = 10


def _before_as(text: str, at: int) -> Span | None:
    match = _BEFORE_AS.search(text, max(0, at - _MOST_AFTER), at)
    if match is None or _AS.match(text, at) is None:
        return None
    value = match["value"].strip(_ENDS)
    start = match.end("value") - len(value)
    return (
        (start, start + len(value))
        if _is_drawn(value) or appearance.is_scrambled(value) or appearance.is_invented(value, direct=False)
        else None
    )


def _means_secret(text: str, found: Noun, ending: str) -> bool:
    """Whether a word names a secret, and is not part of another word or name: `keyboard`, `secretary`, `page token`."""
    at, noun = found
    # `DHPublicKey = …` and `s3_key = …` are code, whose names and values `assigned_values` knows.
    is_part = at > 0 and (text[at - 1].isalnum() or text[at - 1] == "_")
    if noun in _WORDS.english and (ending not in ("", "s") or is_part):
        return False
    if noun in _PASSWORDS:
        return True
    before = _BEFORE.search(text, max(0, at - 34), at)
    return before is None or before[1].lower() not in _WORDS.other_keys


def _may_be_hexadecimal(text: str, found: Noun) -> bool:
    """Whether a secret of this name may be a UUID or a hexadecimal number: a `key` alone is mostly that of a row."""
    at, noun = found
    if noun != "key":
        return noun not in _PASSWORDS
    before = _BEFORE.search(text, max(0, at - 34), at)
    return before is not None and (
        before[1].lower() in _WORDS.secret_keys or _POSSESSIVE.search(text, max(0, at - 90), at) is not None
    )


_PASSWORDS = frozenset({*_WORDS.long_passwords, *_WORDS.short_passwords})
