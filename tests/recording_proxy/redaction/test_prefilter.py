"""One cheap look at a line lets everything pass that a search could find."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter

from hypothesis import example, given, settings, strategies as st

from signet_conformance.trace import encode
from signet_recording_proxy.redaction import arguments, suspects
from signet_recording_proxy.redaction.keyword_search import KeywordSearch
from signet_recording_proxy.redaction.named_values import NAME_ENDINGS, NAMES_BEFORE_SIGN
from signet_recording_proxy.redaction.secret_names import SAMPLE
from signet_recording_proxy.redaction.secret_patterns import TEXT_PATTERNS

WORDS = [name.decode() for name in (*NAME_ENDINGS, *NAMES_BEFORE_SIGN)]
STEMS = sorted({*arguments.STEMS, *(stem for pattern in TEXT_PATTERNS for stem in pattern.stems)})
BETWEEN = [*"_-.\\[]7 \t'\":=é\xff", "\\t", '\\"', "\\\\'", "</", "<input", "pass", "to", " -p", "\\n-u", " --user"]
VALUES = [SAMPLE, f'"{SAMPLE}"', f"='{SAMPLE}'", f": {SAMPLE}", f"@{SAMPLE}", f"={SAMPLE}"]
PIECES = st.sampled_from([*WORDS, *STEMS, *BETWEEN, "agentsdir", "form-data"])


@given(st.lists(PIECES | st.sampled_from(VALUES) | st.text(max_size=3), max_size=12), st.booleans())
@example(["pass", "_", "word", "7", "=", SAMPLE], False)
@example(["key", "\\\\'", "\\t", ":", SAMPLE], True)
@example(["password", " ", '"', SAMPLE], False)
@settings(max_examples=400)
def test_what_a_search_finds_passes_the_prefilter(pieces: list[str], upper: bool) -> None:
    """Names before quotes and signs, assignments, markup, shapes: in any case, between anything."""
    text = "".join(pieces)
    text = text.upper() if upper else text
    if KeywordSearch(lambda _secret: "", suspects.HIDDEN).clean(text) != text:
        assert suspects.is_suspected(encode({"": text}))


def test_plain_text_does_not_pass_the_prefilter() -> None:
    """What connectors and daemons mostly say calls for no search."""
    assert not suspects.may_name_or_show(
        b'{"harness":"pi","sessionKey":"s-1","userMessage":"Round half to even - always."}'
    )
    assert not suspects.may_name_or_show(b'{"userMessage":"Why does invoice_total() round? See memory.lookup(1)."}')


def test_no_number_of_a_line_passes_the_prefilter() -> None:
    """Ports of databases are digits too, and every line counts."""
    frame = b'{"kind":"exchange","seq":%d,"conn":%d,"t0":%d.644571,"t1":0.%d,"request":{}}'
    suspected = [number for number in range(1 << 16) if suspects.may_name_or_show(frame % ((number,) * 4))]
    assert suspected == []


def test_prefilter_is_compiled_before_the_first_line() -> None:
    """Compiling it takes as long as hundreds of lines, and every connection would wait for it."""
    program = (
        "import jsonschema_rs\n"
        "from signet_recording_proxy.redaction import redactor\n"
        "del jsonschema_rs.validator_for\n"
        "print(redactor.Redactor({}).text('api_key=sk-proj-abcdef0123456789abcdef'))\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "api_key=<redacted:1>\n"


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
    plain = suspects._token_runs(re.sub(rb"\\(?:u[0-9a-fA-F]{4}|.)", b" ", escaped))
    found, expected = Counter(suspects._token_runs(escaped)), Counter(plain)
    assert not expected - found
    assert (found - expected).keys() <= {run[1:] for run in plain if run[:1] in b"nrt"}


def test_run_behind_a_break_in_a_string_of_json_begins_behind_its_letter() -> None:
    """JSON inside a string spells a break with two backslashes."""
    run = b"0123456789abcdef"
    assert suspects._token_runs(rb"\\n" + run) == [run, b"n" + run]


@given(st.text(alphabet='ab_./=@:- \n"é', max_size=80))
def test_long_runs_are_found_whole(text: str) -> None:
    """The runs of 15 characters and more of those that tokens are made of."""
    plain = text.encode()
    table = bytes(byte if suspects._IN_RUN[byte] != 0x20 else 0x20 for byte in range(256))
    assert suspects._token_runs(plain) == [run for run in plain.translate(table).split() if len(run) >= 15]
