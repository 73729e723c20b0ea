"""What spares a line the search spares it no secret: searched for everything, every text comes out alike."""

from __future__ import annotations

import base64
from typing import Any
from urllib.parse import quote

from hypothesis import example, given, settings, strategies as st

from signet_recording_proxy.redaction import named_values
from signet_recording_proxy.redaction.assigned_values import ASSIGNMENTS, MARKUP
from signet_recording_proxy.redaction.beside_names import BESIDE
from signet_recording_proxy.redaction.commands import COMMANDS
from signet_recording_proxy.redaction.named_values import NESTED
from signet_recording_proxy.redaction.redactor import Redactor
from signet_recording_proxy.redaction.secret_patterns import ISSUED, TEXT_PATTERNS
from signet_recording_proxy.redaction.secret_walk import Cleaner
from signet_recording_proxy.redaction.statements import STATEMENTS
from signet_recording_proxy.redaction.suspects import HIDDEN, Suspects
from signet_recording_proxy.redaction.vendor_kinds import VENDORS
from tests.attacks.test_secret_kinds import CODED, TOKENS, WRITTEN

EVERYTHING = (
    *ISSUED, *TEXT_PATTERNS, NESTED, named_values.PARAMETERS, named_values.MULTIPART, named_values.MEMBERS,
    ASSIGNMENTS, MARKUP, COMMANDS, BESIDE, VENDORS, STATEMENTS, HIDDEN,
)  # fmt: skip
SECRETS = [*TOKENS.values(), *(text for text, _ in WRITTEN.values()), *CODED.values()]
GLUE = (
    *("", " ", "\n", "\t", "\\", "\\n", "\\t", "\\r", "\\\\n", "%3D", "%20", "%", "=", ": ", ":", "'", '"', '\\"'),
    *('\\\\"', "<", ">", "</", "x", "7", "-", "_", "/", ".", "&", "?", ";", "é", "\u2028", "\ud83d", "\x00"),
    *("token", "KEY=", " -p "),
)
WRAPPED = st.sampled_from(
    [
        str,
        lambda text: quote(text, errors="replace"),
        lambda text: quote(quote(text, errors="replace")),
        lambda text: base64.b64encode(text.encode("utf-8", "replace")).decode(),
        lambda text: text.encode("utf-8", "replace").hex(),
        lambda text: '{"a": "' + text + '"}',
        lambda text: '{\\"password\\": \\"' + text + '\\"}',
    ]
)
TEXTS = st.lists(st.sampled_from(GLUE) | st.sampled_from(SECRETS) | st.sampled_from(sorted(WRITTEN)), max_size=7)


def searched_for_everything(value: Any) -> Any:
    """What remains of a value that nothing spares the search."""
    tokens: dict[str, str] = {}
    cleaner = Cleaner(lambda secret: tokens.setdefault(secret, f"<redacted:{len(tokens) + 1}>"), ALL, ())
    return cleaner.value(value)


ALL = Suspects(EVERYTHING, ())


@settings(max_examples=400)
@given(parts=TEXTS, wrapped=WRAPPED)
@example(parts=["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", "cGFzc3dvcmQ9aHVudGVyMkNvcnJlY3Q="], wrapped=str)
def test_nothing_is_spared_that_holds_a_secret(parts: list[str], wrapped: Any) -> None:
    """Whatever stands around it, and however it is encoded."""
    value = {"said": [wrapped("".join(parts))]}
    assert Redactor({}).document(value) == searched_for_everything(value)
