"""Finds secrets beside a name that is not assigned to them: in sentences, options, calls, `KEY value` of shells.

In text, a name is mostly followed by a word of the sentence, so the value has to look random.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from signet_recording_proxy.redaction import appearance
from signet_recording_proxy.redaction.secret_names import is_secret_member, names_key, names_secret
from signet_recording_proxy.redaction.spans import LONGEST, Span, Token, end_of_word, replace_spans

_VALUE = r"[^\s\"'`<>,;(){}\[\]\\]"
_SHORTEST = 10
_VERBS = "(?:is|was|to|as|body|ist|lautet|est)"
_BARS = "│║"
_SIGN = (
    rf"(?:[ \t]{{0,16}}[{_BARS}][ \t]{{0,4}}|"
    r"[ \t]{0,4}(?:[:=,>|]{1,2}|->|-(?=[ \t]))[ \t]{0,4}"
    rf"|[ \t]{{1,4}}(?:{_VERBS}[ \t:]{{1,3}})?)"
)
_BETWEEN = rf"(?:\\{{0,4}}[\"'`)\]]|\*){{0,3}}+{_SIGN}(?:\*{{1,2}}[ \t]{{0,4}})?(?:\\{{0,4}}[\"'`])?"
_BESIDE = re.compile(
    rf"(?<![A-Za-z0-9_.-])(-{{0,2}}[A-Za-z_][A-Za-z0-9_.-]{{1,63}}+){_BETWEEN}(?=({_VALUE}{{{_SHORTEST},{LONGEST}}}+)(?!\())"
)
_NAMED = (
    r"(?:pass(?:word|wd|phrase|code)?|token|secret|key|auth|credentials?|pwd?|pat|pepper|bearer|jwt|cookie|otp|psk"
    r"|connection_?string|kennwort|senha|contrasena|wachtwoord)[\w.-]{0,24}"
)
FOLLOWED = re.compile(rf"(?i:{_NAMED}){_BETWEEN}(?={_VALUE}{{{_SHORTEST}}})".replace(_BARS, "?"))
"""Matches up to where such a secret may begin, in text with a `?` for each letter beyond ASCII."""
MOST_BEFORE = 96
"""No match of FOLLOWED is longer."""
VALUE_ENDS = re.compile(_VALUE.replace("[^", "["))
STRING_FOLLOWS = re.compile(rf"{_NAMED}[^\n;\"'`]{{0,64}}+(?:\\?\n[ \t]{{0,64}}+)?[\"'`]")
"""Matches where a string may follow, in text of small letters."""
MOST_TO_DIGIT = 160
"""How far after a name a string has its first digit, and a word that does not go on up to there."""
STRING_PREFILTER = rf"{_NAMED}(?:[^\"\\]|\\.)*(?:\\\"|['`])[^\s\"'`\\]*[0-9]"
"""Matches an encoded line in which a string follows; an expression in Rust's syntax."""
PREFILTER = (
    rf"{_NAMED}(?:\\+\"|\\*['`)\]]|\*){{0,3}}"
    rf"(?:[ \t]{{0,16}}[{_BARS}][ \t]{{0,4}}|[ \t]{{0,4}}[:=,>|-]{{1,2}}[ \t]{{0,4}}"
    rf"|[ \t]{{1,4}}(?:{_VERBS}[ \t:]{{1,3}})?)"
    rf"(?:\*{{1,2}}[ \t]{{0,4}})?(?:\\*[\"'`])?(?:[^\s\"'<>\\]*[0-9]|(?-i:{appearance.SCRAMBLED.pattern}))"
)
"""As FOLLOWED, for an encoded line, in which quotes of text are escaped; in Rust's syntax, without lookahead."""
_KEY_OF = re.compile(
    r"(?i)\b(?:api|secret|access|private|auth|license|signing|encryption|master|service|account"
    r"|hard-?coded|my|our|your|their|new)[ \t]\Z"
)
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{0,40}_KEY\Z")
_OPTION_ENDS = ("key", "auth", "pat", "credential", "credentials", "secret", "token")


def replace_at(text: str, names: Iterable[int], token: Token) -> str:
    """`text` with tokens for the secrets beside the names that begin, hyphens included, at these places."""
    return replace_spans(text, _values_beside(text, filter(None, (_BESIDE.match(text, at) for at in names))), token)


def _values_beside(text: str, matches: Iterable[re.Match[str]]) -> Iterator[Span]:
    done = 0
    for match in matches:
        start = match.end()
        if start < done or not _names_secret(text, match):
            continue
        value = text[start : end_of_word(text, start, match.end(2))].rstrip(".:!?")
        if appearance.looks_random(value) or _is_password_or_number(match[1], value):
            done = start + len(value)
            yield start, done


def _is_password_or_number(name: str, value: str) -> bool:
    """Whether a word that does not look random is a password, or the long number of an option."""
    if appearance.names_password(name):
        return appearance.is_invented(value, direct=False) or appearance.is_scrambled(value)
    if name.lower() == "secret":
        return appearance.is_hexadecimal(value)
    return name.startswith("--") and is_secret_member(name.lstrip("-"), value) and appearance.is_hexadecimal(value)


@lru_cache(maxsize=4096)
def may_name(name: str) -> bool:
    """Whether `replace_at` may find a secret beside this name, hyphens included."""
    return names_secret(name) or name.lower().endswith(_OPTION_ENDS)


def _names_secret(text: str, match: re.Match[str]) -> bool:
    name = match[1].lstrip("-")
    if names_secret(name) or _VARIABLE.match(name) is not None:
        return True
    lowered = name.lower()
    if lowered == "key":
        return match[1].startswith("--") or _KEY_OF.search(text, max(0, match.start() - 16), match.start()) is not None
    return (match[1].startswith("--") or lowered.startswith("x-")) and lowered.endswith(_OPTION_ENDS)


_CLOSES_NAME = re.compile(r"\\{0,4}[\"'`]?[\]\[)]{0,3}")
_NEXT_STRING = re.compile(
    r"[^\n;\"'`\x0b]{0,60}+(?:(?<=[(=\\])[ \x0b\r]*\n[ \t]{0,64}+)?\\{0,4}[\"'`]([^\n\"'`\\]{0,256}+)\\{0,4}[\"'`]"
)


def strings_of(text: str, names: Iterable[Span]) -> Iterator[Span]:
    """The secrets in strings of statements that name them: `KEY = bytes.fromhex("…")`, `pw == "…"`."""
    for start, end in names:
        is_password = appearance.names_password(text[start:end])
        is_secret = appearance.is_random_or_invented if is_password else appearance.is_random_or_key
        closed = _CLOSES_NAME.match(text, end)
        at = end if closed is None else closed.end()
        for _ in range(_MOST_STRINGS):
            string = _NEXT_STRING.match(text, at)
            if string is None:
                break
            scheme, _, word = string[1].rpartition(" ")
            if is_secret(word) and (not scheme or (scheme.isalpha() and len(scheme) <= _LONGEST_SCHEME)):
                yield string.end(1) - len(word), string.end(1)
                break
            at = string.end()


_LONGEST_SCHEME = 10
_MOST_STRINGS = 2
"""The first may be the name of a variable: `env("TOKEN", "…")`."""


@lru_cache(maxsize=4096)
def names_in_code(name: str) -> bool:
    """Whether a statement that begins with this name may hold a secret in a string."""
    return names_secret(name) or names_key(name)
