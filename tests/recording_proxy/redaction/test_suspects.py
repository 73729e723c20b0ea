"""What spares a line the search spares it no secret."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from hypothesis import example, given, settings, strategies as st

from signet_recording_proxy.redaction import (
    arguments,
    assigned_values,
    beside_names,
    keyword_search,
    named_values,
    statements,
)
from signet_recording_proxy.redaction.keywords import Hits
from signet_recording_proxy.redaction.redactor import Redactor
from signet_recording_proxy.redaction.secret_patterns import ISSUED, TEXT_PATTERNS
from signet_recording_proxy.redaction.secret_walk import Cleaner
from signet_recording_proxy.redaction.shown_text import search_shown
from signet_recording_proxy.redaction.spans import Token, replace_spans
from signet_recording_proxy.redaction.suspects import HIDDEN
from signet_recording_proxy.redaction.vendor_kinds import replace_vendor_secrets
from tests.attacks.test_secret_kinds import CODED, TOKENS, WRITTEN

REPLACED: tuple[Callable[[str, Token], str], ...] = (
    *(pattern.replace for pattern in (*ISSUED, *TEXT_PATTERNS)),
    lambda text, token: named_values.replace_nested(text, [(0, len(text))], token),
    *(part.replace for part in (named_values.PARAMETERS, named_values.MULTIPART, named_values.MEMBERS)),
    assigned_values.replace_assignments,
    assigned_values.replace_markup,
    arguments.replace_arguments,
    lambda text, token: beside_names.replace_at(text, [m.start() for m in beside_names._BESIDE.finditer(text)], token),
    replace_vendor_secrets,
    lambda text, token: replace_spans(text, statements.spans(text, Hits(text).stated), token),
    lambda text, token: replace_spans(text, keyword_search._laid_out(text, Hits(text)), token),
    lambda text, token: replace_spans(text, beside_names.strings_of(text, Hits(text).strings), token),
    HIDDEN.replace,
)
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


class ThoroughCleaner(Cleaner):
    """One that searches all of each text for everything."""

    def text(self, text: str, *, names: bool = False) -> str:  # noqa: ARG002 - the base class names it
        """Without its secrets."""

        def search(text: str, token: Token) -> str:
            for replace in REPLACED:
                text = replace(text, token)
            return text

        return search_shown(text, self._token, search) if len(text) >= 8 else text


def searched_for_everything(value: Any) -> Any:
    """What remains of a value that nothing spares the search."""
    tokens: dict[str, str] = {}
    cleaner = ThoroughCleaner(lambda secret: tokens.setdefault(secret, f"<redacted:{len(tokens) + 1}>"), str, ())
    return cleaner.value(value)


@settings(max_examples=400)
@given(parts=TEXTS, wrapped=WRAPPED)
@example(parts=["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", "cGFzc3dvcmQ9aHVudGVyMkNvcnJlY3Q="], wrapped=str)
def test_nothing_is_spared_that_holds_a_secret(parts: list[str], wrapped: Any) -> None:
    """Whatever stands around it, and however it is encoded."""
    value = {"said": [wrapped("".join(parts))]}
    tokens: dict[str, str] = {}
    cleaner = Cleaner(lambda secret: tokens.setdefault(secret, f"<redacted:{len(tokens) + 1}>"), str, ())
    assert Redactor({}).document(value) == cleaner.value(value)
