"""Decides whether a line, or text, has to be searched: cheap looks at the whole spare most lines the search.

Each look passes everything that the search could find, and takes microseconds: most lines of a recording hold no
secret, and are written unchanged.
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
from signet_recording_proxy.redaction.beside_names import GATE, STRING_GATE
from signet_recording_proxy.redaction.hidden_text import Hidden, may_hide, shows_escapes
from signet_recording_proxy.redaction.keyword_search import KeywordSearch
from signet_recording_proxy.redaction.keywords import HOLDS_HOME
from signet_recording_proxy.redaction.laid_out import GATE as LAID_OUT
from signet_recording_proxy.redaction.named_values import NAME_ENDINGS, NAMES_BEFORE_SIGN, SQUEEZED_OUT
from signet_recording_proxy.redaction.secret_patterns import ISSUED, TEXT_PATTERNS
from signet_recording_proxy.redaction.spans import flags_of, long_runs
from signet_recording_proxy.redaction.statements import GATE as STATED
from signet_recording_proxy.redaction.tables import any_of
from signet_recording_proxy.redaction.vendor_kinds import gate as vendor_gate

_ISSUED = [(stem.encode(), pattern) for pattern in ISSUED for stem in pattern.stems]
_ISSUED_STEMS = BytesAhoCorasick([stem for stem, _ in _ISSUED], implementation=Implementation.DFA)
_IN_RUN = flags_of("_.~+/=@:-" + string.ascii_letters + string.digits)
_SHORTEST_RUN = 15
"""No issuer's token is a shorter run of these characters."""

_REMEMBERED, _LONGEST_REMEMBERED = 4096, 256
_harmless: set[bytes] = set()
"""Runs that were examined before: lines repeat names of headers, keys of sessions and paths."""

_BACKSLASH = b"\\"[0]
_BREAKS = b"nrt"
_CODE_UNIT = re.compile(rb"u[0-9a-fA-F]{4}")
_LONG_TAILS = {b"secretkeybase": (b"key_base", b"keybase", b"key-base", b"key.base")}
# Three letters tell a name from most others, but for those that end as `database` and `release` do.
_LAST_LETTERS = {tail for ending in (*NAME_ENDINGS, b"key") for tail in _LONG_TAILS.get(ending, (ending[-3:],))}


def is_suspected(encoded: bytes) -> bool:
    """Whether an encoded JSON line, or text, may hold a secret that nothing but a search knows.

    The looks are made for the output of our encoder. A raw body that spells a character otherwise, or has blanks at
    the end of the line, may hide from them, and so is suspected. So is a number beyond a float, which no
    reader could parse.
    """
    return _holds_a_token(_token_runs(encoded)) or shows_escapes(encoded) or may_name_or_show(encoded)


def may_name_or_show(encoded: bytes) -> bool:
    """Whether a line may hold a secret by its name, its place or its shape; never False if it does."""
    try:
        text = encoded.decode()
    except UnicodeDecodeError:
        text = encoded.decode("latin-1")
    return bool(_GATE.is_valid(text))


_UNITS_SPELLED = r"\\\\u[0-9a-f]{4}"
_SPELLED_OTHERWISE = r"[\x00-\x1f]|[^\\](?:\\\\)*\\(?:(?-i:u)|/)"
"""Of our encoder's output that are the characters without a form of their own, such as those of terminals' colours."""
_BEYOND_A_FLOAT = r"[\[:,\s]-?(?:[0-9.]{200}|[0-9.]{1,200}e\+?[0-9]{3})"


def _gate() -> str:
    """All that those looks search for, as one expression.

    A pattern of a JSON Schema is an expression of Rust's: it looks at a whole line in the time in which one of
    Python's looks at its first tenth, and takes time in proportion to the line whatever stands there. Two expressions
    would have half the states, which are made as it meets new text, and take twice the time once these are there.
    """
    squeezed = f"[{re.escape(SQUEEZED_OUT.decode())}]*"

    def _spaced(names: Iterable[bytes]) -> str:
        return any_of(map(bytes.decode, names), squeezed)

    last = any_of(map(bytes.decode, _LAST_LETTERS))
    looks = (
        f'{_spaced(NAME_ENDINGS)}{squeezed}["=]',
        f"{_spaced(NAMES_BEFORE_SIGN)}{squeezed}=",
        rf"{last}[0-9_.\-]{{0,63}}(?:\\{{0,40}}'|\\+\")?(?: |\t|\\+t){{0,40}}[:=]",
        any_of(stem for pattern in TEXT_PATTERNS for stem in pattern.stems),
        "</|<(?:input|add|property|setting|param)|form-data|-pass",
        rf"{HOLDS_HOME}.*(?:home|users)",
        _UNITS_SPELLED,
        GATE,
        STRING_GATE,
        STATED,
        LAID_OUT,
        arguments.gate(),
        vendor_gate(),
        _SPELLED_OTHERWISE,
        _BEYOND_A_FLOAT,
    )
    return "|".join(looks)


_GATE_BYTES = 64 << 20


def _in_rust(expression: str) -> Any:
    """An expression of Rust's without regard to case; `is_valid(text)` of it says whether the text holds it."""
    options = jsonschema_rs.RegexOptions(size_limit=_GATE_BYTES, dfa_size_limit=_GATE_BYTES)
    return jsonschema_rs.validator_for({"type": "string", "pattern": f"(?i)(?:{expression})"}, pattern_options=options)


# Made before the recorder listens: otherwise the first line would hold up all connections for as long.
_GATE = _in_rust(_gate())


def _token_runs(encoded: bytes) -> list[bytes]:
    """The runs of characters that tokens and encoded text are made of, in JSON.

    Backslashes begin escapes, and the letters of those are no part of what follows them.
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
    """Whether text that an encoding hid holds a secret."""
    if len(text) <= _LONG_TEXT:
        encoded = encode({"": text})
        if not (may_name_or_show(encoded) or _issued(_token_runs(encoded))):
            return False
    return KeywordSearch(lambda _secret: "", None).clean(text) != text


_LONG_TEXT = 1024
"""In longer text it is quicker to look for keywords at once."""
HIDDEN = Hidden(shows_secret)
