"""What a command line says of known failures, before anybody reads the files that it names."""

from __future__ import annotations

from msgspec import Struct

DEFAULT_DAYS = 30
"""How long an entry that is written holds, unless the command line says until when."""


class KnownOptions(Struct, frozen=True, kw_only=True):
    """What a command line says of known failures, each as it was written; None where it says nothing."""

    baseline: str | None = None
    flaky: str | None = None
    write_baseline: str | None = None
    owner: str | None = None
    reason: str | None = None
    expires: str | None = None
