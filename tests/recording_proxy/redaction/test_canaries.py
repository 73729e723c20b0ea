"""Secrets that the recorder was told of, in every form and every part of an exchange."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import quote, quote_plus

from hypothesis import given, strategies as st

from signet_conformance.trace import Declared, Header, encode
from signet_recording_proxy.redaction.redactor import Redactor
from tests.recording_proxy.redaction.lines import body_json, line


def test_the_header_names_canaries() -> None:
    """`declared.canaries` tells which token stands for which canary; the target is running text."""
    header = Header(target="pi sig_sk_0123456789", declared=Declared(agents=("a",)))
    shown = Redactor({"NAME": "the value of it"}).header(header)
    assert shown.declared == Declared(agents=("a",), canaries={"<redacted:1>": "NAME"})
    assert shown.target == "pi <redacted:2>"


def test_a_canary_of_digits() -> None:
    """A canary that JSON can write as a number is found there too."""
    assert body_json({"pin": 12345678, "n": 1.5, "t": True}, canaries={"PIN": "12345678"}) == {
        "pin": "<redacted:1>",
        "n": 1.5,
        "t": True,
    }


def test_a_canary_is_found_in_every_part() -> None:
    """Method, path, query, headers, body, answer, note of an error, parameters of a fault."""
    canary = "Canary-Value-42"
    response = {"status": 200, "headers": [("x-a", canary)], "body": {"text": canary, "media_type": canary}}
    exchange = line(
        *({canary: [canary]},),
        method=f"X-{canary}",
        path=f"/{canary}",
        query=[(canary, canary)],
        headers=[("host", canary), (canary, "x")],
        response=response,
    )
    exchange["error"] = {"kind": "upstream_reset", "note": canary}
    exchange["fault"] = {"kind": "shape", "body": {"x": canary}}
    written = Redactor({"C": canary}).exchange(exchange).decode()
    assert canary not in written
    assert written.count("<redacted:1>") == 13


canary_values = st.text(st.characters(exclude_categories=["Cs"]), min_size=8, max_size=30).filter(lambda s: s.strip())


@st.composite
def hidden(draw: st.DrawFn) -> tuple[str, Any]:
    """A canary, and a document that holds it in one of its forms, somewhere deep."""
    secret = draw(canary_values)
    escaped = json.dumps(secret)[1:-1]
    form = draw(
        st.sampled_from(
            [
                *(secret, escaped, json.dumps(escaped)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]),
                *(quote(secret), quote(secret, safe=""), quote_plus(secret)),
            ]
        )
    )
    value: Any = draw(st.text(max_size=5)) + form + draw(st.text(max_size=5))
    for _ in range(draw(st.integers(0, 4))):
        value = draw(st.sampled_from([[value], {"k": value}, {"a": 1, "z": [value]}]))
    return secret, value if draw(st.booleans()) or not isinstance(value, str) else {value: 1}


@given(hidden())
def test_no_form_of_a_canary_is_left(case: tuple[str, Any]) -> None:
    """Raw, escaped or URL-encoded, in values and names: the line does not hold it."""
    secret, document = case
    # Text that the frame of the line or a token holds anyway proves nothing.
    frame = encode(line({"<redacted:1>": 1})).decode()
    for form in (secret, json.dumps(secret)[1:-1]):
        if form in frame:
            return
    written = Redactor({"C": secret}).exchange(line(document)).decode()
    assert secret not in json.dumps(json.loads(written)["request"]["body"], ensure_ascii=False)
    assert quote(secret, safe="") not in written or quote(secret, safe="").isalnum()
    assert "<redacted:1>" in written


@given(canary_values, st.binary(max_size=10), st.binary(max_size=10))
def test_no_base64_of_a_canary_is_left(secret: str, before: bytes, after: bytes) -> None:
    """In the middle of encoded bytes, at any offset, a canary is recognised."""
    encoded = base64.b64encode(before + secret.encode() + after).decode()
    assert "<redacted:1>" in Redactor({"C": secret}).exchange(line({"data": encoded})).decode()
