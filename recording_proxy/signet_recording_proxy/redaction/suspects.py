"""Decides whether a line, or a text, has to be searched for secrets.

Most lines of a recording hold no secret, and are written unchanged. Quick checks, of microseconds, let them skip the
search; no check misses anything that the search could find.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable
from typing import Any

import jsonschema_rs
from ahocorasick_rs import BytesAhoCorasick, Implementation

from signet_conformance.trace import encode
from signet_recording_proxy.redaction import arguments
from signet_recording_proxy.redaction.beside_names import PREFILTER, STRING_PREFILTER
from signet_recording_proxy.redaction.hidden_text import HiddenTextSearch, may_hide, shows_escapes
from signet_recording_proxy.redaction.keyword_search import KeywordSearch
from signet_recording_proxy.redaction.keywords import HOLDS_HOME
from signet_recording_proxy.redaction.laid_out import PREFILTER as LAID_OUT
from signet_recording_proxy.redaction.named_values import NAME_ENDINGS, NAMES_BEFORE_SIGN, SQUEEZED_OUT
from signet_recording_proxy.redaction.secret_patterns import ISSUED, TEXT_PATTERNS
from signet_recording_proxy.redaction.spans import flags_of, long_runs
from signet_recording_proxy.redaction.statements import PREFILTER as STATED
from signet_recording_proxy.redaction.tables import any_of
from signet_recording_proxy.redaction.vendor_kinds import prefilter as vendor_prefilter

_ISSUED = [(stem.encode(), pattern) for pattern in ISSUED for stem in pattern.stems]
_ISSUED_STEMS = BytesAhoCorasick([stem for stem, _ in _ISSUED], implementation=Implementation.DFA)
_IN_RUN = flags_of("_.~+/=@:!-" + string.ascii_letters + string.digits)
_SHORTEST_RUN = 15
"""No issuer's token is a shorter run of these characters."""

_REMEMBERED, _LONGEST_REMEMBERED = 4096, 256
_harmless: set[bytes] = set()
"""Runs that were examined before: lines repeat names of headers, keys of sessions and paths."""

_BACKSLASH = b"\\"[0]
_BREAKS = b"nrt"
_CODE_UNIT = re.compile(rb"u[0-9a-fA-F]{4}")
_LONG_TAILS = {b"secretkeybase": (b"key_base", b"keybase", b"key-base", b"key.base")}
# Three letters tell a name from most others; more are needed to exclude `database` and `release`.
_LAST_LETTERS = {tail for ending in (*NAME_ENDINGS, b"key") for tail in _LONG_TAILS.get(ending, (ending[-3:],))}


def is_suspected(encoded: bytes) -> bool:
    """Whether an encoded JSON line, or text, may hold a secret that only a search can find.

    The checks are made for the output of our encoder. They could miss a secret in a raw body that spells a character
    otherwise, or has line breaks between values: so it is suspected. So is a number beyond a float, which no reader
    could parse.
    """
    return _holds_a_token(_token_runs(encoded)) or shows_escapes(encoded) or may_name_or_show(encoded)


def may_name_or_show(encoded: bytes) -> bool:
    """Whether a line may hold a secret by its name, its place or its shape; never False if it does."""
    try:
        text = encoded.decode()
    except UnicodeDecodeError:
        text = encoded.decode("latin-1")
    return bool(_PREFILTER.is_valid(text))


_UNITS_SPELLED = r"\\\\u[0-9a-f]{4}"
_SPELLED_OTHERWISE = r"[\x00-\x1f]|[^\\](?:\\\\)*\\(?:(?-i:u)|/)"
"""Spellings that our encoder does not use, except for some control characters, such as those of terminals' colours."""
_BEYOND_A_FLOAT = r"[\[:,\s]-?(?:[0-9.]{200}|[0-9.]{1,200}e\+?[0-9]{3})"


def _prefilter_expression() -> str:
    """All patterns of the check by names, places and shapes, as one expression.

    The pattern of a JSON Schema is an expression of Rust's. It searches ten times as fast as one of Python's, in
    time proportional to the length of the line, whatever that holds. Of two expressions each would have fewer states
    to build, which happens when new text needs them; but all later searches would take twice as long.
    """
    squeezed = f"[{re.escape(SQUEEZED_OUT.decode())}]*"

    def _spaced(names: Iterable[bytes]) -> str:
        return any_of(map(bytes.decode, names), squeezed)

    last = any_of(map(bytes.decode, _LAST_LETTERS))
    patterns = (
        f'{_spaced(NAME_ENDINGS)}{squeezed}["=]',
        f"{_spaced(NAMES_BEFORE_SIGN)}{squeezed}=",
        rf"{last}[0-9_.\-]{{0,63}}(?:\\{{0,40}}'|\\+\")?(?: |\t|\\+t){{0,40}}[:=]",
        any_of(stem for pattern in TEXT_PATTERNS for stem in pattern.stems),
        "</|<(?:input|add|property|setting|param)|form-data|-pass",
        rf"{HOLDS_HOME}.*(?:home|users)",
        _UNITS_SPELLED,
        PREFILTER,
        STRING_PREFILTER,
        STATED,
        LAID_OUT,
        arguments.prefilter(),
        vendor_prefilter(),
        _SPELLED_OTHERWISE,
        _BEYOND_A_FLOAT,
    )
    return "|".join(patterns)


_PREFILTER_BYTES = 64 << 20


def _in_rust(expression: str) -> Any:
    """An expression of Rust's without regard to case; its `is_valid(text)` returns whether it matches in the text."""
    options = jsonschema_rs.RegexOptions(size_limit=_PREFILTER_BYTES, dfa_size_limit=_PREFILTER_BYTES)
    return jsonschema_rs.validator_for({"type": "string", "pattern": f"(?i)(?:{expression})"}, pattern_options=options)


# Made before the recorder listens: otherwise the first line would hold up all connections for as long.
_PREFILTER = _in_rust(_prefilter_expression())


def _token_runs(encoded: bytes) -> list[bytes]:
    """The runs of characters that tokens and encoded text are made of, in JSON.

    Backslashes begin escapes, whose letters do not belong to the run.
    """
    runs = []
    for start, end in long_runs(encoded.translate(_IN_RUN), _SHORTEST_RUN):
        run = encoded[start:end]
        if start and encoded[start - 1] == _BACKSLASH:
            letters = _letters_of_escape(encoded, start)
            if not letters and run[0] in _BREAKS and len(run) > _SHORTEST_RUN:
                runs.append(run[1:])  # or a break in JSON that is inside a string
            run = run[letters:]
            if len(run) < _SHORTEST_RUN:
                continue
        runs.append(run)
    return runs


def _letters_of_escape(raw: bytes, start: int) -> int:
    """How many of the characters at `start` belong to an escape that the backslash before them begins."""
    before = start - 1
    while before >= 0 and raw[before] == _BACKSLASH:
        before -= 1
    if (start - before) % 2:
        return 0  # an escaped backslash
    return 5 if _CODE_UNIT.match(raw, start) else 1


def _holds_a_token(runs: list[bytes]) -> bool:
    """Whether any of these runs may be an issuer's token, or encoded text."""
    new = [run for run in runs if run not in _harmless]
    if not new:
        return False
    if _issued(new) or may_hide(new):
        return True
    if len(_harmless) + len(new) > _REMEMBERED:
        _harmless.clear()
    _harmless.update([run for run in new if len(run) <= _LONGEST_REMEMBERED][:_REMEMBERED])
    return False


def _issued(runs: list[bytes]) -> bool:
    joined = b" ".join(runs)
    lowered = joined.lower()
    found = {number for number, *_ in _ISSUED_STEMS.find_matches_as_indexes(lowered, overlapping=True)}
    # Some begin as ordinary words do; the runs are few enough to be searched.
    text = joined.decode("ascii") if found else ""
    return any(pattern.occurs(text) for pattern in {_ISSUED[number][1] for number in found})


def shows_secret(text: str) -> bool:
    """Whether decoded text holds a secret."""
    if len(text) <= _LONG_TEXT:
        encoded = encode({"": text})
        if not (may_name_or_show(encoded) or _issued(_token_runs(encoded))):
            return False
    return KeywordSearch(lambda _secret: "", None).clean(text) != text


_LONG_TEXT = 1024
"""Longer text is searched for keywords at once, which is quicker."""
HIDDEN = HiddenTextSearch(shows_secret)
