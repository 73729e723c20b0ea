"""Whether a word looks like a secret by itself: drawn at random, made up as a password, a long number."""

from __future__ import annotations

import re

from signet_recording_proxy.redaction.secret_names import is_secret_member, is_value, mixes

_NO_SECRET = re.compile(
    r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}|[0-9a-f]{16,}|v?[0-9]+(?:[.:-][0-9]+)+.*|sha(?:1|256|512).*"
    r"|[a-z]+://.*|[A-Za-z_.-]{2,64}/.*|[~./$%*&].*|.*[=(].*[)].*|[^@]{1,64}@(?:[\w-]+\.)+[A-Za-z]{2,12}",
    re.DOTALL,
)
_LOWER, _UPPER, _DIGITS = "a", "A", "0"
_KINDS = {
    byte: _DIGITS if chr(byte).isdigit() else _LOWER if chr(byte).islower() else _UPPER if chr(byte).isupper() else None
    for byte in range(128)
}
_RUNS = re.compile("a+|A+|0+")
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")


def looks_random(value: str) -> bool:
    """Whether a word turns often between letters and digits, or small and large letters, as no word or id does."""
    if _NO_SECRET.fullmatch(value) is not None or not is_value(value):
        return False
    kinds = _BEYOND_ASCII.sub(_LOWER, value).translate(_KINDS)
    turns = len(_RUNS.findall(kinds)) - 1
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


_HEXADECIMAL = re.compile(
    r"0x[0-9a-f]{64}|[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}|(?=[a-f]*[0-9])[0-9a-f]{24,128}|(?=[A-F]*[0-9])[0-9A-F]{24,128}"
)


def is_hexadecimal(value: str) -> bool:
    """Whether a value is a UUID or as long a hexadecimal number as keys are."""
    return _HEXADECIMAL.fullmatch(value) is not None


_PASSWORD_ENDS = ("password", "passwort", "passphrase", "passcode", "pass", "passwd", "pwd", "pw")


def names_password(name: str) -> bool:
    """Whether a name is that of a password, which people make up."""
    return name.lower().rstrip("0123456789_").endswith(_PASSWORD_ENDS)


def is_random_or_key(value: str) -> bool:
    """Whether a word looks drawn at random, or is a UUID or a hexadecimal number as long as keys are."""
    return is_value(value) and (is_hexadecimal(value) or (len(value) >= _SHORTEST_DRAWN and looks_random(value)))


def is_random_or_invented(value: str) -> bool:
    """Whether a word looks random or like a made-up password. Use it only for the argument of a secret."""
    return is_random_or_key(value) or is_scrambled(value) or is_invented(value, direct=True)


def is_scrambled(value: str) -> bool:
    """Whether a word is of letters alone that no language has in this order, small and large ones by turns."""
    if not (value.isascii() and value.isalpha() and len(value) >= _SHORTEST_DRAWN):
        return False
    turns = len(_RUNS.findall(value.translate(_KINDS))) - 1
    return turns >= 5 and 3 * turns >= len(value) and 3 * len(_VOWELS.findall(value)) <= len(value)


_VOWELS = re.compile("[aeiouAEIOU]")


def is_likely(name: str, value: str) -> bool:
    """Whether a word is the secret of this name, where nothing but a layout says that the two belong together."""
    if not is_value(value) or not is_secret_member(name, value):
        return False
    if is_random_or_key(value):
        return True
    if not names_password(name) or _POINTS.match(value) is not None:
        return False
    return len(value) >= _SHORTEST_PASSWORD and (mixes(value) or is_scrambled(value) or not _RARE.isdisjoint(value))


SAMPLE = "q7RtZ2mXw9Kp4Ls8"
"""A value that is likely for any name of a secret."""
_SHORTEST_DRAWN, _SHORTEST_PASSWORD = 12, 6
_POINTS = re.compile(
    r"[$%#{(\[<@/~.]|[a-z]{2,12}://|.*\(\)|v?[0-9]+(?:[.-][0-9]+)+\w*\Z|[A-Z0-9_]+_[A-Z0-9_]+\Z|[A-Z_]+=|[a-z_]+[=:]\Z"
)
"""How variables, places, calls, versions and dates begin."""
