"""The options about known failures."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from signet_conformance.outcome.known_options import DEFAULT_DAYS, KnownOptions


def known_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options that name, and write, files of known failures; the command gets what they say as `known`."""

    @wraps(command)
    def with_known(**given: Any) -> int:
        named = KnownOptions(**{name: given.pop(name) for name in KnownOptions.__struct_fields__})
        return command(known=named, **given)

    asking: Callable[..., int] = with_known
    for option in (
        click.option(
            "--expires", metavar="DAY", help=f"Last day of a written entry (default: in {DEFAULT_DAYS} days)."
        ),
        click.option("--reason", metavar="TEXT", help="Reason of the entries that are written."),
        click.option("--owner", metavar="NAME", help="Owner of the entries that are written (default: you)."),
        click.option("--write-baseline", metavar="FILE", help="Write what fails now into FILE, which must not exist."),
        click.option("--flaky", metavar="FILE", help="Requirements that fail now and then (signet-flaky/1)."),
        click.option("--baseline", metavar="FILE", help="Known failures, which do not fail the run."),
    ):
        asking = option(asking)
    return asking
