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
        click.option(
            "--expires", metavar="DAY", help=f"Last day of a written entry (default: in {DEFAULT_DAYS} days)."
        ),
        click.option("--reason", metavar="TEXT", help="Reason of the entries that are written."),
        click.option("--owner", metavar="NAME", help="Owner of the entries that are written (default: you)."),
        click.option("--write-baseline", metavar="FILE", help="Write what fails now into FILE, which must not exist."),
        click.option("--flaky", metavar="FILE", help="Requirements that fail now and then (signet-flaky/1)."),
        click.option("--baseline", "baseline_file", metavar="FILE", help="Known failures, which do not fail the run."),
    ):
        command = option(command)
    return command
