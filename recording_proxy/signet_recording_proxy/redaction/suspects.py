"""Decides which patterns a line, or text, has to be searched for: cheap looks at the whole spare most lines the search.

Each look lets everything pass that its patterns could match, and takes microseconds: most lines of a recording hold no
secret, and are written unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple, Protocol

import jsonschema_rs

from signet_recording_proxy.redaction.assigned_values import ASSIGNMENTS, ELEMENTS, MARKUP
from signet_recording_proxy.redaction.beside_names import BESIDE, FOLLOWED, GATE
from signet_recording_proxy.redaction.commands import COMMANDS
from signet_recording_proxy.redaction.glued_letters import unglue
from signet_recording_proxy.redaction.hidden_text import Hidden, may_hide, shows_escapes
from signet_recording_proxy.redaction.keyword_search import KeywordSearch
from signet_recording_proxy.redaction.known_secrets import KnownSecrets
from signet_recording_proxy.redaction.named_values import (
    MEMBERS,
    NAME_ENDINGS,
    NAMES_BEFORE_SIGN,
    NESTED,
    SQUEEZED_OUT,
    backwards,
    suspected,
)
from signet_recording_proxy.redaction.secret_patterns import ISSUED, TEXT_PATTERNS, TextPattern
from signet_recording_proxy.redaction.statements import GATE as STATED, STATEMENTS
from signet_recording_proxy.redaction.vendor_kinds import VENDORS, gate as vendor_gate


class Pattern(Protocol):
    """One pattern of secrets in text."""

    def replace(self, text: str, token: Callable[[str], str]) -> str:
        """`text` with each secret replaced by what `token` gives for it."""


class Suspects(NamedTuple):
    """What text has to be searched for: patterns, and forms of known secrets with their tokens."""

    patterns: Sequence[Pattern]
    known: Sequence[tuple[str, str]]


def _by_stem(patterns: Sequence[TextPattern]) -> dict[bytes, list[int]]:
    stems: dict[bytes, list[int]] = {}
    for number, pattern in enumerate(patterns):
        for stem in pattern.stems:
            stems.setdefault(stem.encode(), []).append(number)
    return stems


_ISSUED = _by_stem(ISSUED)
_SHAPED = _by_stem(TEXT_PATTERNS)
_IN_RUN = bytes(
    b"x"[0] if chr(byte) in "_.~+/=@:-" or (chr(byte).isalnum() and byte < 128) else 0x20 for byte in range(256)
)
_LONG_RUN = b"x" * 15
"""No issuer's token is a shorter run of these characters."""

_REMEMBERED, _LONGEST_REMEMBERED = 4096, 256
_harmless: set[bytes] = set()
"""Runs that were examined already: lines repeat names of headers, keys of sessions and paths."""

_BACKSLASH = b"\\"[0]
_BREAKS = b"nrt"
_CODE_UNIT = re.compile(rb"u[0-9a-fA-F]{4}")
_GATES = {
    gate: tuple(stem for stem in _SHAPED if gate in stem)
    for gate in (b"@", b"=", b"--", b"-----", b"putty", b"begin", b"password", b"*")
}
# The end of an option's name, which two hyphens begin.
_GATES[b"--"] += tuple(stem for stem in _SHAPED if stem[:1] == b"-" and stem[-1:] == b" ")
# What stands between these and the password says that it is one.
_GATES[b"password"] += tuple(stem for stem in _SHAPED if stem in (b"machine", b"default login"))
_SHAPES_OPEN = tuple(set(_SHAPED) - {stem for gated in _GATES.values() for stem in gated})

_BETWEEN = rb"[:=](?: |\t|t\\{1,40}){0,40}+(?:'\\{0,40}|\"\\{%s,40})?[0-9_.\-]{0,63}+"
_LONG_TAILS = {b"secretkeybase": (b"key_base", b"keybase", b"key-base", b"key.base")}
# Three letters tell a name from most others, but for those that end as `database` and `release` do.
_LAST_LETTERS = {tail for ending in (*NAME_ENDINGS, b"key") for tail in _LONG_TAILS.get(ending, (ending[-3:],))}
_ASSIGNED_IN_LINE = backwards(_BETWEEN % b"1", _LAST_LETTERS)
"""A sign of assignment and a name's end; in a JSON string its double quotes have a backslash before them."""
_ASSIGNED_IN_TEXT = backwards(_BETWEEN % b"0", _LAST_LETTERS)
_PROGRAMS = tuple(stem.encode() for stem in COMMANDS.STEMS)


def suspects(encoded: bytes, known: KnownSecrets) -> Suspects | None:
    """The patterns that an encoded JSON line has to be searched for; None when it holds no secret."""
    issued, hides = _in_runs(_long_runs(encoded, escaped=True))
    patterns: list[Pattern] = [*issued]
    shaped: list[TextPattern] = []
    lowered = b""
    if may_name_or_show(encoded):
        lowered = encoded.lower()
        shaped = _shapes(lowered)
        patterns += (*shaped, *_name_patterns(lowered), *_assigned(lowered, _ASSIGNED_IN_LINE))
    # A secret that is taken out may leave encoded text behind that it was glued to.
    if hides or issued or shaped or shows_escapes(encoded):
        patterns.append(HIDDEN)
    forms = known.in_line(encoded)
    return Suspects(patterns, forms) if patterns or forms or b"agentsdir" in lowered else None


def is_plain(encoded: bytes, known: KnownSecrets) -> bool:
    """Whether a JSON line with raw bodies may be written, because it holds no secret.

    The looks of `suspects` are made for the output of our encoder. JSON that spells a character otherwise may hide from
    them, and so may blanks between members that end the line: neither is plain. A number beyond a float is not plain
    either, since readers could not parse it.
    """
    issued, hides = _in_runs(_long_runs(encoded, escaped=True))
    if issued or hides or shows_escapes(encoded) or known.in_line(encoded):
        return False
    try:
        return not _gate(as_carried=True).is_valid(encoded.decode())
    except UnicodeDecodeError:
        return False


def may_name_or_show(encoded: bytes) -> bool:
    """Whether a line, or text, may hold what `_shapes`, `suspected` or `_assigned` finds; never False where it does."""
    try:
        text = encoded.decode()
    except UnicodeDecodeError:
        text = encoded.decode("latin-1")
    return bool(_gate().is_valid(text))


_SPELLED_OTHERWISE = r"[\x00-\x1f]|\\[u/]"
_BEYOND_A_FLOAT = r"[\[:,\s]-?(?:[0-9.]{200}|[0-9.]{1,200}e\+?[0-9]{3})"


@cache
def _gate(*, as_carried: bool = False) -> Any:
    """All that those looks search for, as one expression.

    A pattern of a JSON Schema is an expression of Rust's: it looks at a whole line in the time in which one of
    Python's looks at its first tenth, and takes time in proportion to the line whatever stands there.
    """
    squeezed = f"[{re.escape(SQUEEZED_OUT.decode())}]*"

    def _spaced(names: Iterable[bytes]) -> str:
        return "|".join(squeezed.join(map(re.escape, name.decode())) for name in sorted(names))

    last = "|".join(sorted(re.escape(ending.decode()) for ending in _LAST_LETTERS))
    looks = (
        f'(?:{_spaced(NAME_ENDINGS)}){squeezed}["=]',
        f"(?:{_spaced(NAMES_BEFORE_SIGN)}){squeezed}=",
        rf"(?:{last})[0-9_.\-]{{0,63}}(?:\\{{0,40}}'|\\+\")?(?: |\t|\\+t){{0,40}}[:=]",
        "|".join(re.escape(stem.decode()) for stem in _SHAPED),
        "</|<(?:input|add|property|setting|param)|form-data|agentsdir|-pass",
        *COMMANDS.gates(),
        GATE,
        STATED,
        vendor_gate(),
        *((_SPELLED_OTHERWISE, _BEYOND_A_FLOAT) if as_carried else ()),
    )
    return _in_rust("|".join(looks))


_GATE_BYTES = 64 << 20


def _in_rust(expression: str) -> Any:
    """An expression of Rust's without regard to case; `is_valid(text)` of it says whether the text holds it."""
    options = jsonschema_rs.RegexOptions(size_limit=_GATE_BYTES, dfa_size_limit=_GATE_BYTES)
    return jsonschema_rs.validator_for({"type": "string", "pattern": f"(?i)(?:{expression})"}, pattern_options=options)


def _long_runs(raw: bytes, *, escaped: bool = False) -> list[bytes]:
    """The runs of characters that tokens and encoded text are made of.

    Where `escaped`, backslashes begin escapes, and the letters of those are no part of what follows them.
    """
    find, runs = raw.translate(_IN_RUN).find, []
    start = find(_LONG_RUN)
    while start >= 0:
        end = find(b" ", start + len(_LONG_RUN))
        if end < 0:
            end = len(raw)
        if escaped and start and raw[start - 1] == _BACKSLASH:
            letters = _letters_of_escape(raw, start)
            if not letters and raw[start] in _BREAKS and end - start > len(_LONG_RUN):
                runs.append(raw[start + 1 : end])  # or a break in JSON that is inside a string
            start += letters
        if end - start >= len(_LONG_RUN):
            runs.append(raw[start:end])
        start = find(_LONG_RUN, end)
    return runs


def _letters_of_escape(raw: bytes, start: int) -> int:
    """How many of the characters at `start` belong to an escape that the backslash before them begins."""
    before = start - 1
    while before >= 0 and raw[before] == _BACKSLASH:
        before -= 1
    if (start - before) % 2:
        return 0  # an escaped backslash
    return 5 if _CODE_UNIT.match(raw, start) else 1


def _in_runs(runs: list[bytes]) -> tuple[list[TextPattern], bool]:
    """Which issuers' tokens runs hold, and whether any could be encoded text."""
    new = [run for run in runs if run not in _harmless]
    if not new:
        return [], False
    issued, hides = _issued(new), may_hide(new)
    if not issued and not hides:
        if len(_harmless) + len(new) > _REMEMBERED:
            _harmless.clear()
        _harmless.update([run for run in new if len(run) <= _LONGEST_REMEMBERED][:_REMEMBERED])
    return issued, hides


def _issued(runs: list[bytes]) -> list[TextPattern]:
    joined = b" ".join(runs)
    lowered = joined.lower()
    possible = {number for stem, numbers in _ISSUED.items() if stem in lowered for number in numbers}
    # Some begin as ordinary words do: the runs are few enough to be searched.
    text = joined.decode("ascii") if possible else ""
    return [ISSUED[number] for number in sorted(possible) if ISSUED[number].occurs(text)]


def _name_patterns(lowered: bytes) -> list[Pattern]:
    patterns = suspected(lowered)
    return [NESTED, *patterns] if MEMBERS in patterns else [*patterns]


def _shapes(lowered: bytes) -> list[TextPattern]:
    stems = [stem for stem in _SHAPES_OPEN if stem in lowered]
    for gate, gated in _GATES.items():
        if gate in lowered:
            stems += [stem for stem in gated if stem in lowered]
    return [TEXT_PATTERNS[number] for number in sorted({number for stem in stems for number in _SHAPED[stem]})]


def _assigned(lowered: bytes, assigned: re.Pattern[bytes]) -> list[Pattern]:
    patterns: list[Pattern] = []
    if assigned.search(lowered[::-1]):
        patterns.append(ASSIGNMENTS)
    if b"</" in lowered or any(element in lowered for element in ELEMENTS):
        patterns.append(MARKUP)
    if any(program in lowered for program in _PROGRAMS):
        patterns.append(COMMANDS)
    if FOLLOWED.search(lowered.decode("utf-8", "replace")):
        patterns.append(BESIDE)
    if _names_vendor().is_valid(lowered.decode("utf-8", "replace")):
        patterns.append(VENDORS)
    if _states().is_valid(lowered.decode("utf-8", "replace")):
        patterns.append(STATEMENTS)
    return patterns


@cache
def _names_vendor() -> Any:
    # Python's expression took two hundred times as long, on each line with a name that secrets have.
    return _in_rust(vendor_gate())


@cache
def _states() -> Any:
    return _in_rust(STATED)


def shows_secret(text: str) -> bool:
    """Whether text that an encoding hid holds a secret."""
    if len(text) > _LONG_TEXT:
        return KeywordSearch(_nothing, None).clean(text) != text
    text = unglue(text)
    raw = text.encode("utf-8", "surrogatepass")
    lowered = raw.lower()
    looks: tuple[Callable[[], Sequence[Pattern]], ...] = (
        lambda: _assigned(lowered, _ASSIGNED_IN_TEXT),
        lambda: _name_patterns(lowered),
        lambda: _shapes(lowered),
        lambda: _issued(_long_runs(raw)),
    )
    return any(pattern.replace(text, _nothing) != text for look in looks for pattern in look())


def _nothing(_secret: str) -> str:
    return ""


_LONG_TEXT = 1024
"""In longer text it is quicker to look for keywords first."""
HIDDEN = Hidden(shows_secret)
