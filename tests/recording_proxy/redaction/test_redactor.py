"""What holds of every line: equal secrets stay equal, and what is no secret stays as it is."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings, strategies as st

from signet_conformance.trace import encode
from signet_recording_proxy.redaction.redactor import Redactor
from tests.recording_proxy.redaction.lines import SHAPED, line, redacted


def test_what_was_redacted_stays_as_it_was() -> None:
    """A trace that went into a capture and comes back keeps its tokens, and which of them are equal."""
    sent = {"a": "<redacted:2>", "b": "<redacted:1>", "password": "<redacted:3>"}
    written = redacted(sent, headers=[("authorization", "Bearer <redacted:2>"), ("cookie", "a=<redacted:1>")])
    assert written["body"]["json"] == sent
    assert written["headers"] == [["authorization", "Bearer <redacted:2>"], ["cookie", "a=<redacted:1>"]]


# Without these characters nothing can be named or shaped like a secret.
harmless_text = st.text(st.characters(exclude_characters="aeoswAEOSW_-.@:="), max_size=20)


documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | harmless_text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(harmless_text, inner, max_size=4),
    max_leaves=12,
)


@given(st.sampled_from(SHAPED), documents)
def test_equal_secrets_have_equal_tokens(secret: str, document: Any) -> None:
    """The same secret in two exchanges, in different places, is the same token; another one is not."""
    redactor = Redactor({})
    first = redactor.exchange(line({"a": document, "b": f"x {secret} y"})).decode()
    second = redactor.exchange(line(headers=[("x-note", secret)], query=[("q", "sig_sk_another_one_12")])).decode()
    token = first[first.index("x <redacted:") + 2 :].partition(">")[0] + ">"
    assert f'["x-note","{token}"]' in second
    assert second.count("<redacted:") == 2
    assert second.count(token) == 1


@given(documents)
@settings(max_examples=200)
def test_documents_without_secrets_stay_as_they_are(document: Any) -> None:
    """A line that holds no secret says what it said; a number may be spelt otherwise, as 1e16 for 1e+16."""
    written = Redactor({"C": "not in there at all"}).exchange(line(document))
    # As text: equal values of different types, 1 and 1.0, are different.
    assert encode(json.loads(written)) == encode(line(document))


MIXED = [
    *SHAPED,
    "パスワード",
    "密码",
    "пароль",
    "κωδικός",
    "비밀번호",
    "\ud83d",
    "\udce9",
    "é",
    " ",
    ":",
    "=",
    '"',
    "7",
    "hunter",
    "\n",
]


@given(st.lists(st.sampled_from(MIXED), max_size=12).map("".join), st.booleans())
@settings(max_examples=300)
def test_halves_of_characters_cost_no_line(text: str, is_long: bool) -> None:
    """JSON can write half of a surrogate pair, and stray bytes of headers become such, beside words of any script."""
    written = Redactor({}).exchange(line({"a": text, text: "b"}, headers=[("x-note", text)]), is_long=is_long)
    assert json.loads(written)["kind"] == "exchange"
