"""The options about known failures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from signet_conformance.outcome.known_failures import DEFAULT_DAYS

_Command = TypeVar("_Command", bound=Callable[..., Any])


def known_options(command: _Command) -> _Command:
    """Add the options that name, and write, files of known failures."""
    for option in (
        click.option("--expires", metavar="DAY", help=f"Last day of a written entry; {DEFAULT_DAYS} days from now."),
        click.option("--reason", metavar="TEXT", help="Why the entries that are written may stand."),
        click.option("--owner", metavar="NAME", help="Who answers for the entries that are written; you by default."),
        click.option("--write-baseline", metavar="FILE", help="Write what fails now into FILE, which must not exist."),
        click.option("--flaky", metavar="FILE", help="Requirements that fail now and then (signet-flaky/1)."),
        click.option("--baseline", "baseline_file", metavar="FILE", help="Known failures: they fail the run no more."),
    ):
        command = option(command)
    return command
