"""Decides whether a word by itself looks like a secret: a random string, a made-up password, a long number."""

from __future__ import annotations

import re

from signet_recording_proxy.redaction.secret_names import NO_SECRETS, is_secret_member, is_value, mixes

_NOT_DRAWN = re.compile(NO_SECRETS.not_drawn, re.DOTALL)
_LOWER, _UPPER, _DIGITS = "a", "A", "0"
_KINDS = {
    byte: _DIGITS if chr(byte).isdigit() else _LOWER if chr(byte).islower() else _UPPER if chr(byte).isupper() else None
    for byte in range(128)
}
_RUNS = re.compile("a+|A+|0+")
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")


def looks_random(value: str) -> bool:
    """Whether a word switches often between letters and digits, or between cases, as no word or id does."""
    if _NOT_DRAWN.fullmatch(value) is not None or not is_value(value):
        return False
    kinds = _BEYOND_ASCII.sub(_LOWER, value).translate(_KINDS)
    turns = len(_RUNS.findall(kinds)) - 1
    return _DIGITS in kinds and turns >= (4 if len(value) < 16 else 3) and 8 * turns >= len(value)


_NOT_INVENTED = re.compile(NO_SECRETS.not_invented, re.DOTALL)
_RARE = frozenset("!#$%^&*?+~=@|")
"""Characters that occur in passwords, but not inside the words of a text."""


def is_invented(value: str, *, direct: bool) -> bool:
    """Whether a word is a password that a person or a program made up: letters of both cases, digits, signs.

    `direct` means that `is`, a colon or the like precedes it. Otherwise the word needs a character that words and
    names do not have.
    """
    several = direct and len([sign for sign in value if not sign.isalnum()]) > 1 and not _RARE.isdisjoint(value)
    if len(value) < 8 or not (mixes(value) or several) or not is_value(value):
        return False
    if _NOT_INVENTED.fullmatch(value) is not None or value.lower() == value or value.upper() == value:
        return False
    return direct or not _RARE.isdisjoint(value[1:])


_HEXADECIMAL = re.compile(
    r"0x[0-9a-f]{64}|[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}|(?=[a-f]*[0-9])[0-9a-f]{24,128}|(?=[A-F]*[0-9])[0-9A-F]{24,128}"
)


def is_hexadecimal(value: str) -> bool:
    """Whether a value is a UUID, or a hexadecimal number as long as a key."""
    return _HEXADECIMAL.fullmatch(value) is not None


_PASSWORD_ENDS = ("password", "passwort", "passphrase", "passcode", "pass", "passwd", "pwd", "pw")


def names_password(name: str) -> bool:
    """Whether a name is that of a password, which people make up."""
    return name.lower().rstrip("0123456789_").endswith(_PASSWORD_ENDS)


def is_random_or_key(value: str) -> bool:
    """Whether a word looks random, or is a UUID or a hexadecimal number as long as a key."""
    return is_value(value) and (is_hexadecimal(value) or (len(value) >= _SHORTEST_DRAWN and looks_random(value)))


def is_random_or_invented(value: str) -> bool:
    """Whether a word looks random or like a made-up password. Use it only for the argument of a secret."""
    return is_random_or_key(value) or is_scrambled(value) or is_invented(value, direct=True)


def is_scrambled(value: str) -> bool:
    """Whether a word has only letters, few of them vowels, and often changes between small and capital letters."""
    if not (value.isascii() and value.isalpha() and len(value) >= _SHORTEST_DRAWN):
        return False
    turns = len(_RUNS.findall(value.translate(_KINDS))) - 1
    return turns >= 5 and 3 * turns >= len(value) and 3 * len(_VOWELS.findall(value)) <= len(value)


_VOWELS = re.compile("[aeiouAEIOU]")
SCRAMBLED = re.compile("[A-Z]*[a-z]+[A-Z]+[a-z]+[A-Z]+[a-z]")
"""How every such word begins."""


def is_likely(name: str, value: str) -> bool:
    """Whether a word is the secret of this name, if only a layout connects the two."""
    if not is_value(value) or not is_secret_member(name, value):
        return False
    if is_random_or_key(value):
        return True
    if not names_password(name) or _POINTERS.match(value) is not None:
        return False
    return len(value) >= _SHORTEST_PASSWORD and (mixes(value) or is_scrambled(value) or not _RARE.isdisjoint(value))


_SHORTEST_DRAWN, _SHORTEST_PASSWORD = 12, 6
_POINTERS = re.compile(NO_SECRETS.pointers)
