"""Facts about wording: what programs do to a text before they put it before a model changes none of its words."""

from __future__ import annotations

import pytest

from signet_conformance.rules.model.requests import plain_words


@pytest.mark.parametrize(
    "told",
    [
        "Fish & chips,\nsays Mira",
        "Fish &amp; chips, says&nbsp;Mira",
        "**Fish** chips\\n\\tsays Mira",
        "\\u0046ish chips \\u2014 says Mira",
        "fish_chips <redacted:token-1> SAYS mira",
    ],
)
def test_words_of_a_text(told: str) -> None:
    """They stay when a text is escaped, wrapped, marked up or partly redacted."""
    assert plain_words(told) == "fish chips says mira"
