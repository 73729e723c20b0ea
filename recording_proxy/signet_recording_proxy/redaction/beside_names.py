"""Secrets that stand beside a name without being assigned to it: in sentences, options, calls, `KEY value` of shells.

A name in text is mostly followed by a word of the sentence, so the value has to look drawn at random.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import pairwise

from signet_recording_proxy.redaction.secret_names import is_secret_member, is_value, mixes
from signet_recording_proxy.redaction.spans import Span, Token, replace_spans

SAMPLE = "q7RtZ2mXw9Kp4Ls8"
_VALUE = r"[^\s\"'`<>,;(){}\[\]\\]"
_VERBS = "(?:is|was|to|as|body|ist|lautet|est)"
_SIGN = (
    r"(?:[ \t]{0,4}(?:[:=,>|]{1,2}|->|-(?=[ \t]))[ \t]{0,4}"
    rf"|[ \t]{{1,4}}(?:{_VERBS}[ \t:]{{1,3}})?)"
)
_BETWEEN = rf"(?:\\{{0,4}}[\"'`)\]]|\*){{0,3}}+{_SIGN}(?:\*{{1,2}}[ \t]{{0,4}})?(?:\\{{0,4}}[\"'`])?"
_BESIDE = re.compile(
    rf"(?<![A-Za-z0-9_.-])(-{{0,2}}[A-Za-z_][A-Za-z0-9_.-]{{1,63}}+){_BETWEEN}(?=({_VALUE}{{10,512}}+)(?!\())"
)
_NAMED = r"(?:pass(?:word|wd|phrase|code)?|token|secret|key|auth|credentials?|pwd|pat|bearer|jwt)[\w.-]{0,24}"
_TO_A_DIGIT = r"[^\s\"'<>]{0,40}[0-9]"
FOLLOWED = re.compile(rf"(?i:{_NAMED}){_BETWEEN}{_TO_A_DIGIT}")
"""What stands where one of them may be, in text."""
MOST_FOLLOWED = 160
"""No match of it is longer."""
GATE = (
    rf"{_NAMED}(?:\\+\"|\\*['`)\]]|\*){{0,3}}"
    rf"(?:[ \t]{{0,4}}[:=,>|-]{{1,2}}[ \t]{{0,4}}|[ \t]{{1,4}}(?:{_VERBS}[ \t:]{{1,3}})?)"
    rf"(?:\*{{1,2}}[ \t]{{0,4}})?(?:\\*[\"'`])?{_TO_A_DIGIT}"
)
"""The same in an encoded line, where quotes of text are escaped; for an expression of Rust's, which looks not ahead."""
_KEY_OF = re.compile(
    r"(?i)\b(?:api|secret|access|private|auth|license|signing|encryption|master|service|account)[ \t]\Z"
)
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{0,40}_KEY\Z")
_OPTION_ENDS = ("key", "auth", "pat", "credential", "credentials", "secret", "token")
_NO_SECRET = re.compile(
    r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}|[0-9a-f]{16,}|v?[0-9]+(?:[.:-][0-9]+)+.*|sha(?:1|256|512).*"
    r"|[a-z]+://.*|[A-Za-z_.-]{2,64}/.*|[~./$%*&].*|.*[=(].*[)].*",
    re.DOTALL,
)
_LOWER, _UPPER, _DIGITS = "a", "A", "0"


def looks_random(value: str) -> bool:
    """Whether a word turns often between letters and digits, or small and large letters, as no word or id does."""
    if _NO_SECRET.fullmatch(value) is not None or not is_value(value):
        return False
    kinds = [
        _DIGITS if character.isdigit() else _LOWER if character.islower() else _UPPER
        for character in value
        if character.isalnum()
    ]
    turns = sum(one != another for one, another in pairwise(kinds))
    return _DIGITS in kinds and turns >= (4 if len(value) < 16 else 3) and 8 * turns >= len(value)


_ORDINARY = re.compile(
    r"v?[0-9][0-9.,:x/+-]*[A-Za-z%]{0,4}|[a-z][a-z0-9+.-]*:(?://)?[^\s].*|(?:[.~]{0,2}/|[A-Za-z]:|[$%#@]).*|[^/]{2,40}/.*"
    r"|[^@]{1,64}@(?:[\w-]+\.)+[A-Za-z]{2,12}|@?[\w./-]+@[\^~]?v?[0-9]+(?:[.-][\w.-]*)?|[A-Z]{2,12}-?[0-9]+"
    r"|[A-Z][A-Z0-9]*(?:_[A-Z0-9]*)+|[A-Za-z_][\w.-]{0,64}[=:].*|.*\.[a-z]{1,5}|.*[\[\]*]{2}.*"
    r"|(?i:(?:sha|md|base|utf|argon|bcrypt|scrypt|pbkdf|hmac|aes|rsa|oauth|iso|x|h|p|s|ipv|http|python|ed|es|rs|hs|ps|llama|postgresql|"
    r"gpt|qwen|gemma|claude|gemini)-?[0-9].*)",
    re.DOTALL,
)
_RARE = frozenset("!#$%^&*?+~=@|")
"""What stands in passwords, and inside words of no text."""


def is_invented(value: str, *, direct: bool) -> bool:
    """Whether a word is a password that a person or a program made up: letters of both cases, digits, signs.

    Where nothing `direct` says so, such as `is` or a colon, some sign has to be one that words and names have not.
    """
    several = direct and len([sign for sign in value if not sign.isalnum()]) > 1 and not _RARE.isdisjoint(value)
    if len(value) < 8 or not (mixes(value) or several) or not is_value(value) or _ORDINARY.fullmatch(value) is not None:
        return False
    if value.lower() == value or value.upper() == value:
        return False
    return direct or not _RARE.isdisjoint(value[1:])


class _Beside:
    """All of those places."""

    def replace_at(self, text: str, names: Iterable[int], token: Token) -> str:
        """`text` with tokens for the secrets beside the names that begin, hyphens included, at these places."""
        return replace_spans(text, _beside(text, filter(None, (_BESIDE.match(text, at) for at in names))), token)


def _beside(text: str, matches: Iterable[re.Match[str]]) -> Iterator[Span]:
    done = 0
    for match in matches:
        start = match.end()
        if start < done or not _names_secret(text, match):
            continue
        value = match[2].rstrip(".:!?")
        if looks_random(value) or (_names_password(match[1]) and is_invented(value, direct=False)):
            done = start + len(value)
            yield start, done


@lru_cache(maxsize=4096)
def may_name(name: str) -> bool:
    """Whether `BESIDE` takes this name, with its hyphens, for that of a secret, wherever it stands."""
    return is_secret_member(name, SAMPLE) or name.lower().endswith(_OPTION_ENDS)


def _names_secret(text: str, match: re.Match[str]) -> bool:
    name = match[1].lstrip("-")
    if is_secret_member(name, SAMPLE) or _VARIABLE.match(name) is not None:
        return True
    lowered = name.lower()
    if lowered == "key":
        return match[1].startswith("--") or _KEY_OF.search(text, max(0, match.start() - 16), match.start()) is not None
    return (match[1].startswith("--") or lowered.startswith("x-")) and lowered.endswith(_OPTION_ENDS)


def _names_password(name: str) -> bool:
    return name.lower().endswith(("password", "passphrase", "pass", "passwd", "pwd", "pw"))


BESIDE = _Beside()
