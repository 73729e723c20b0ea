"""Decides which names mark their value as a secret.

Names are compared in lower case, without the marks between their words and without digits at their end: `GITHUB_TOKEN`,
`githubToken2` and `x-github-token` are one name. A secret in a request fails SIG-HTTP-009, so a name that ordinary
fields have too needs a value that looks like a secret.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from msgspec import Struct

from signet_recording_proxy.redaction.tables import Expression, read_table


class SecretNames(Struct, frozen=True):
    """The lists of names in `secret_names.json`, whose schema explains them."""

    always: tuple[str, ...]
    one_word: tuple[str, ...]
    mixed_keys: tuple[str, ...]
    mixed: tuple[str, ...]
    never: tuple[str, ...]
    no_keys: tuple[str, ...]
    no_passes: tuple[str, ...]
    query_always: tuple[str, ...]
    query_mixed: tuple[str, ...]
    last_words: tuple[str, ...]
    value_members: frozenset[str]
    changed_members: frozenset[str]
    identifying_members: frozenset[str]
    place_members: frozenset[str]
    name_members: tuple[str, ...]
    private_key_members: tuple[str, ...]


class NoSecrets(Struct, frozen=True):
    """The expressions in `no_secrets.json`, whose schema explains them."""

    no_values: Expression
    placeholders: Expression
    not_drawn: Expression
    not_invented: Expression
    pointers: Expression


NAMES: Final = read_table("secret_names.json", SecretNames)
NO_SECRETS: Final = read_table("no_secrets.json", NoSecrets)
IDENTIFYING_HEADERS = "x-signet-"
"""The beginning of the names of headers that identify the caller, as the `identifying_members` do."""
KEY_TYPE = "kty"
"""The member that identifies a JSON Web Key."""

MARKS = b"_-."
"""What may stand between the words of a name."""
_MARKS = re.compile(r"[_\-.]+")
_LAST_WORD = re.compile(r"(?:[A-Z]?[a-z]+|[A-Z]+)\Z")
_BRACKETS = re.compile(r"[\[\]]+")
_VARIABLE_NAME = re.compile(r"[A-Z][A-Z0-9_]*\Z")
_CODE = re.compile(r"(?=[A-Z]*+[0-9]++[A-Z]++[0-9])[A-Z0-9]{16,}+")
_NO_VALUE = re.compile(NO_SECRETS.no_values, re.IGNORECASE | re.DOTALL)
_PLACEHOLDER = re.compile(NO_SECRETS.placeholders, re.IGNORECASE | re.DOTALL)
_KEYS = re.compile(r"(?:[A-Z0-9]{1,30}_){0,6}KEY\Z")
_IDENTIFIER = re.compile(r"[a-z]+(?:[A-Z][a-z]+){1,6}|(?:[A-Z][a-z]+){2,6}")
_LONGEST = 128
_Accepts = Callable[[str], bool]


def is_value(value: str) -> bool:
    """Whether a text may be a secret at all: not blank, no variable, nothing that was redacted."""
    if not value.strip() or value.startswith("<redacted:") or _NO_VALUE.fullmatch(value) is not None:
        return False
    return not is_placeholder(value)


def is_placeholder(value: str) -> bool:
    """Whether a text only marks where a secret will be."""
    return len(value) <= _LONGEST and _PLACEHOLDER.fullmatch(value) is not None


def is_secret_member(name: str, value: str) -> bool:
    """Whether a JSON member of this name with this string value carries a secret."""
    accepts = _rule(name)
    return accepts is not None and is_value(value) and accepts(value)


def names_secret(name: str) -> bool:
    """Whether some value of a member of this name is a secret."""
    return _rule(name) is not None


SAMPLE = "q7RtZ2mXw9Kp4Ls8"
"""A value that is a secret for every such name."""


def is_value_of(name: str, inner: str, value: str) -> bool:
    """Whether the member `inner` of an object under `name` carries the secret that `name` announces."""
    inner = inner.lower()
    holds = inner in NAMES.value_members or (inner in NAMES.changed_members and len(value.split()) == 1)
    return holds and is_secret_member(name, value)


def is_secret_name(name: str) -> bool:
    """Whether the value of this name is a secret whatever it looks like."""
    return _rule(name) in (_any, _no_variable)


def names_key(name: str) -> bool:
    """Whether a variable or a constant of this name holds a key that is secret: `SIGNING_KEY`, not `CACHE_KEY`."""
    return name.isupper() and _KEYS.match(name) is not None and not name.endswith(NAMES.no_keys)


def is_secret_header(name: str, value: str) -> bool:
    """Whether a header of this name carries a secret; in headers even a short token is one."""
    accepts = _rule(name)
    return accepts is not None and bool(value.strip()) and (accepts is not _mixed or _mixed(value.strip()))


def is_secret_parameter(name: str, value: str) -> bool:
    """Whether a field of a query or of a form carries a secret: `token`, `token[]` and `user[password]` do."""
    for part in (name, *_BRACKETS.split(name)) if "[" in name else (name,):
        plain = _squeezed(part)
        if is_value(value) and (plain in NAMES.query_always or (plain in NAMES.query_mixed and _mixed(value))):
            return True
        if is_value(value) and is_secret_header(part, value):
            return True
    return False


@lru_cache(maxsize=4096)
def _rule(name: str) -> _Accepts | None:
    # A name with blanks is a sentence, such as those of a catalogue of messages.
    if len(name) > _LONGEST or any(map(str.isspace, name)):
        return None
    plain = _squeezed(name)
    if plain.endswith(NAMES.never):
        return None
    if plain.endswith("secret"):
        return _no_variable
    if plain.endswith(NAMES.always) or (name.isupper() and plain.endswith("token")):
        return _any
    if plain.endswith(NAMES.one_word):
        return _one_word
    # `SSHPASS` and `storepass`, whose last word neither a mark nor a capital letter sets apart.
    if plain.endswith(NAMES.mixed_keys) or (plain.endswith("pass") and not plain.endswith(NAMES.no_passes)):
        return _mixed
    word = _LAST_WORD.search(name.rstrip("0123456789_-."))
    if word is None or word[0].lower() not in NAMES.mixed:
        return None
    return _cookies if word[0].lower() == "cookie" else _mixed


def _squeezed(name: str) -> str:
    return _MARKS.sub("", name).lower().rstrip("0123456789") if len(name) <= _LONGEST else ""


def _any(_value: str) -> bool:
    return True


def _no_variable(value: str) -> bool:
    # The NAME of a secret is not secret. A code, with digits among its letters, is not a name.
    return _VARIABLE_NAME.match(value) is None or _CODE.fullmatch(value) is not None


def mixes(value: str) -> bool:
    """Whether a value has letters and digits, as most secrets have and few words."""
    return any(map(str.isdigit, value)) and any(map(str.isalpha, value))


def _one_word(value: str) -> bool:
    # `"output_token": "nextToken"` names a member.
    return len(value) >= 8 and value.split(None, 1) == [value] and _IDENTIFIER.fullmatch(value) is None


def _mixed(value: str) -> bool:
    """`pwd` may name a folder, `auth` a method, `pass` a tally: none of them is a word of letters and digits."""
    folder = value.startswith(("/", "~", "./", "../")) or value[1:3] == ":\\"
    return _one_word(value) and not folder and mixes(value)


def _cookies(value: str) -> bool:
    return "=" in value or _mixed(value)
