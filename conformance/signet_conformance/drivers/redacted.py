"""What programs say of their failures, without the secrets in it: it reaches terminals, reports and the logs of CI."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from signet_recording_proxy.redaction.redactor import Redactor


@cache
def _redactor() -> Redactor:
    # Needed when something failed, and not before.
    from signet_recording_proxy.redaction.redactor import Redactor

    return Redactor({})


def redacted(text: str) -> str:
    """`text` as the recorder would write it into a trace; equal secrets get equal tokens."""
    return _redactor().text(text)
