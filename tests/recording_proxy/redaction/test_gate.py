"""One cheap look at a line lets everything pass that a search could find."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from hypothesis import example, given, settings, strategies as st

from signet_recording_proxy.redaction import suspects
from signet_recording_proxy.redaction.beside_names import SAMPLE
from signet_recording_proxy.redaction.named_values import NAME_ENDINGS, NAMES_BEFORE_SIGN

WORDS = [name.decode() for name in (*NAME_ENDINGS, *NAMES_BEFORE_SIGN)]
STEMS = [stem.decode() for stem in suspects._SHAPED]
BETWEEN = [*"_-.\\[]7 \t'\":=é\xff", "\\t", '\\"', "\\\\'", "</", "<input", "pass", "to", " -p", "\\n-u", " --user"]
PROGRAMS = [program.decode() for program in suspects._PROGRAMS]
PIECES = st.sampled_from(
    [*WORDS, *STEMS, *(word[-3:] for word in WORDS), *BETWEEN, *PROGRAMS, "agentsdir", "form-data"]
)


@given(st.lists(PIECES | st.text(max_size=3), max_size=12), st.booleans())
@example(["pass", "_", "word", "7", '"'], False)
@example(["key", "\\\\'", "\\t", ":"], True)
@example(["password", " ", '"', SAMPLE], False)
@settings(max_examples=400)
def test_what_a_search_could_find_passes_the_gate(pieces: list[str], upper: bool) -> None:
    """Names before quotes and signs, assignments, markup, shapes: in any case, between anything."""
    text = "".join(pieces)
    text = text.upper() if upper else text
    raw = text.encode("utf-8", "surrogatepass")
    lowered = raw.lower()
    could = [
        *suspects._shapes(lowered),
        *suspects._name_patterns(lowered),
        *suspects._assigned(lowered, suspects._ASSIGNED_IN_LINE),
    ]
    # An option before its program is not one of its options, and a word beside a name may be any word.
    vague = (suspects.COMMANDS, suspects.BESIDE)
    if [pattern for pattern in could if pattern not in vague or _finds(pattern, text)] or b"agentsdir" in lowered:
        assert suspects.may_name_or_show(raw)


def _finds(pattern: Any, text: str) -> bool:
    return any(pattern.replace(each, lambda _: "") != each for each in (text, text.lower()))


def test_plain_text_does_not_pass_the_gate() -> None:
    """What connectors and daemons mostly say calls for no search."""
    assert not suspects.may_name_or_show(
        b'{"harness":"pi","sessionKey":"s-1","userMessage":"Round half to even - always."}'
    )


@given(
    st.lists(st.sampled_from([*'\\\\\\n"uu0%.', "\\u00e4", "\\u0", "npm_0123456789", "0123456789abcde"]), max_size=30)
)
@example(["\\", "n", "0123456789abcde"])
@example(["\\", "\\", "n", "0123456789abcde"])
@example(["\\", "\\", "n", "0123456789abcde", '"', "0123456789abcde"])
@example(["\\u00e4", "0123456789abcde"])
def test_letters_of_escapes_belong_to_no_run(pieces: list[str]) -> None:
    """As if a blank stood in the place of each escape; what may be a break in a string of JSON is left out too."""
    escaped = "".join(pieces).encode()
    plain = suspects._long_runs(re.sub(rb"\\(?:u[0-9a-fA-F]{4}|.)", b" ", escaped))
    found, expected = Counter(suspects._long_runs(escaped, escaped=True)), Counter(plain)
    assert not expected - found
    assert (found - expected).keys() <= {run[1:] for run in plain if run[:1] in b"nrt"}


def test_run_behind_a_break_in_a_string_of_json_begins_behind_its_letter() -> None:
    """JSON inside a string spells a break with two backslashes."""
    run = b"0123456789abcdef"
    assert suspects._long_runs(rb"\\n" + run, escaped=True) == [run, b"n" + run]


@given(st.text(alphabet='ab_./=@:- \n"é', max_size=80))
def test_long_runs_are_found_whole(text: str) -> None:
    """The runs of 15 characters and more of those that tokens are made of."""
    plain = text.encode()
    table = bytes(byte if suspects._IN_RUN[byte] != 0x20 else 0x20 for byte in range(256))
    assert suspects._long_runs(plain) == [run for run in plain.translate(table).split() if len(run) >= 15]
