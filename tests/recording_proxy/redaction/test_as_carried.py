"""A body that stands in its line as it was carried says what it says when it is decoded, and keeps no secret."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st

from signet_recording_proxy.body import KeptBody, as_carried, describe
from signet_recording_proxy.redaction.redactor import Redactor
from tests.recording_proxy.redaction.lines import SHAPED, line
from tests.recording_proxy.redaction.test_suspects import GLUE, SECRETS

NAMES = ("note", "password", "apiToken", "sessionKey", "name", "value", "headers", "agentsDir", "pat\u00e9")
TEXTS = st.lists(st.sampled_from([*GLUE, *SECRETS, "round half to even"]), max_size=4).map("".join)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
DOCUMENTS = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES) | TEXTS, inner, max_size=3),
    max_leaves=6,
)
SPELLINGS = st.builds(
    lambda ascii_only, indent, separators: (
        lambda document: json.dumps(document, ensure_ascii=ascii_only, indent=indent, separators=separators)
    ),
    st.booleans(),
    st.sampled_from([None, None, 1, "\t"]),
    st.sampled_from([(",", ":"), (", ", ": "), (" ,", " : ")]),
)


def kept(body: bytes) -> KeptBody:
    """A body as it came."""
    whole = KeptBody(1 << 20)
    whole.feed(body)
    return whole


def exchange(described: Any) -> dict[str, Any]:
    """One that was asked and answered with the same body."""
    answer = {"status": 200, "headers": [], "body": described}
    return {**line(response=answer), "request": {**line()["request"], "body": described}}


@given(document=DOCUMENTS, spelled=SPELLINGS, escaped=st.sampled_from(["", *"kpw_/"]))
@settings(max_examples=600)
@example(document={"password": "hunter2!"}, spelled=json.dumps, escaped="w")
@example(document="ghp_0123456789abcdefABCDEF0123456789abcd", spelled=json.dumps, escaped="_")
@example(document={"url": "/x?token=abcdefgh1"}, spelled=json.dumps, escaped="/")
def test_it_says_the_same_as_one_that_is_decoded(document: Any, spelled: Any, escaped: str) -> None:
    """Unless it is not written as it was carried, whatever blanks stand in it and however a character is spelled."""
    text = spelled(document)
    if escaped:  # none of these stands in JSON but in its strings
        text = text.replace(escaped, "\\/" if escaped == "/" else f"\\u{ord(escaped):04x}")
    body = kept(text.encode("utf-8", "surrogatepass"))
    carried = as_carried(body)
    if carried is None:
        return
    written = Redactor({}).unsuspected(exchange(carried))
    if written is not None:
        assert written.count(b"\n") == 1
        assert json.loads(written) == json.loads(Redactor({}).exchange(exchange(describe(body, None, None))))


def test_a_plain_body_stands_in_its_line_as_it_came() -> None:
    """Blanks, spellings of numbers and members that stand twice."""
    body = b'{"note": "Round half to even.\\n", "score": 1.50, "score": 1.5e1, "of": [ ]}'
    written = Redactor({}).unsuspected(exchange(as_carried(kept(body))))
    assert written is not None
    assert written.count(body) == 2


@pytest.mark.parametrize("secret", SHAPED)
@pytest.mark.parametrize("member", ["note", "password"])
def test_a_body_that_may_hold_a_secret_is_looked_at_closely(secret: str, member: str) -> None:
    """By its shape or by its name."""
    carried = as_carried(kept(json.dumps({member: secret}).encode()))
    assert Redactor({}).unsuspected(exchange(carried)) is None


def test_so_is_one_that_holds_what_is_known_to_be_a_secret() -> None:
    """A canary, of digits too."""
    for canary in ("plain words of a canary", "1234567890"):
        body = as_carried(kept(json.dumps({"note": f"it is {canary}"}).encode()))
        assert Redactor({"C": canary}).unsuspected(exchange(body)) is None


def test_so_is_a_secret_that_is_stored() -> None:
    """Whatever it looks like."""
    stored = exchange(as_carried(kept(b'{"value": "blue"}')))
    stored["request"]["path"] = "/api/secrets/COLOUR"
    redactor = Redactor({})
    assert redactor.unsuspected(stored) is redactor.request(stored["request"]) is None


@pytest.mark.parametrize(
    "number", ["1e309", "-1E+400", "9" * 310, "1" + "0" * 250 + "e99", "0." + "1" * 250 + "e308", "1.5e0000309"]
)
@pytest.mark.parametrize("around", ["%s", "[%s]", '{"a":%s}', "[1, %s]", '{"a": %s }', "[1,\t%s]"])
def test_a_number_that_may_be_beyond_a_float_is_looked_at_closely(number: str, around: str) -> None:
    """Whoever reads the line could not read it."""
    carried = as_carried(kept((around % number).encode()))
    assert Redactor({}).unsuspected(exchange(carried)) is None


@pytest.mark.parametrize(
    "body",
    [
        b"", b"null and more", b"{'a': 1}", b'{"a": 1,}', b"[01]", b"[1.]", b"[+1]", b"[NaN]", b"nul", b'"\xff"',
        b'"a\tb"', b'"a\nb"', b'"\\x"', b'"\\ud800"', b"\xef\xbb\xbf[]", b'"a', b"[1 2]", b"[" * 101 + b"]" * 101,
    ],
)  # fmt: skip
def test_what_no_line_could_hold_is_never_put_there_as_it_came(body: bytes) -> None:
    """It is no JSON, or nested too deep."""
    assert as_carried(kept(body)) is None or len(body) <= 202


def test_json_that_is_nested_too_deep_is_looked_at_closely() -> None:
    """Where it is large enough to be; and so is one with as many brackets in a row, which costs it nothing."""
    assert as_carried(kept(b"[" * 101 + b"]" * 101)) is None
    assert as_carried(kept(b'{"a": [' + b"{}," * 120 + b"1]}")) is None
    assert as_carried(kept(b'{"a": [' + b"{}," * 90 + b"1]}")) is not None


def test_a_body_that_was_cut_is_looked_at_closely() -> None:
    """Its line says so."""
    cut = KeptBody(4)
    cut.feed(b"[1, 2]")
    assert as_carried(cut) is None
