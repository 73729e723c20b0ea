"""The options that declare what a trace cannot show of a connector."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from math import isfinite
from typing import Any, TypeVar

import click

from signet_conformance.errors import UsageError, printable
from signet_conformance.trace import BOUNDS, Declared

BYPASSES = ("connector", "application")

_Command = TypeVar("_Command", bound=Callable[..., Any])


def declared_options(command: _Command) -> _Command:
    """Add the options that declare agents, harness, bounds, capabilities, a token and what the connector leaves."""
    for option in (
        click.option(
            "--bypass",
            type=click.Choice(BYPASSES),
            help="Who heeds the user's bypass (default: the connector).",
        ),
        click.option(
            "--prompt-chars",
            type=click.IntRange(1),
            metavar="N",
            help="After how many characters the connector cuts what the user says.",
        ),
        click.option("--token", is_flag=True, help="The connector was given a token."),
        click.option(
            "--capability",
            "capabilities",
            multiple=True,
            metavar="OPERATION",
            help="An operation the connector declares; repeatable.",
        ),
        click.option(
            "--bound",
            "bounds",
            multiple=True,
            metavar="NAME=SECONDS",
            help="When the connector gives up, such as start=15 or prompt=5; repeatable.",
        ),
        click.option("--harness", metavar="NAME", help="The harness the connector names."),
        click.option(
            "--agent", "agents", multiple=True, metavar="ID", help="An agent id the connector acts as; repeatable."
        ),
    ):
        command = option(command)
    return command


def parse_declared(
    agents: Sequence[str],
    harness: str | None,
    bounds: Sequence[str],
    capabilities: Sequence[str],
    token: bool,
    prompt_chars: int | None,
    bypass: str | None,
) -> Declared:
    """What the options declare; raises UsageError naming the option and the wrong value."""
    for option, values in (("--agent", agents), ("--harness", () if harness is None else (harness,))):
        if not all(value.strip() for value in values):
            raise UsageError("the value is blank", where=option, remedy=f"leave {option} out, or give a name")
    for name in capabilities:
        _check_operation(name)
    return Declared(
        agents=tuple(agent.strip() for agent in agents),
        harness=harness,
        bounds_s=dict(map(_bound, bounds)),
        capabilities=tuple(capabilities) or None,
        token=token,
        prompt_chars=prompt_chars,
        bypass=bypass,
    )


def _bound(text: str) -> tuple[str, float]:
    name, _, seconds = text.partition("=")
    try:
        value = float(seconds)
    except ValueError:
        value = 0.0
    if name not in BOUNDS or not isfinite(value) or value <= 0:
        raise UsageError(
            f"{printable(text, 60)!r} is not a bound",
            where="--bound",
            remedy=f"write --bound start=15: a name of {', '.join(BOUNDS)}, then seconds above zero",
        )
    return name, value


def _check_operation(name: str) -> None:
    # Not at the top: few recordings need it, and it takes a while to import.
    from signet_conformance.contract import document

    known = document("operations.json")["operations"]
    if name not in known:
        near = get_close_matches(name, known, 3)
        raise UsageError(
            f"there is no operation {printable(name, 60)!r}",
            where="--capability",
            remedy=f"did you mean {' or '.join(near)}?" if near else f"one of {', '.join(known)}",
        )
