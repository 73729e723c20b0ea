"""What the command line declares of a connector, in place of or beside what a trace's header says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from math import isfinite
from typing import Any, TypeVar

import click

from signet_conformance.contract import document
from signet_conformance.errors import UsageError, printable
from signet_conformance.trace import Declared

BOUNDS = ("start", "prompt")

_Command = TypeVar("_Command", bound=Callable[..., Any])


def declared_options(command: _Command) -> _Command:
    """Add the options that declare agents, harness, bounds, capabilities and a token."""
    for option in (
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


@dataclass(frozen=True, slots=True)
class Overrides:
    """The declarations of a command line. An empty or None member leaves the header's as it is."""

    agents: tuple[str, ...] = ()
    harness: str | None = None
    bounds: tuple[tuple[str, float], ...] = ()
    capabilities: tuple[str, ...] = ()
    token: bool = False

    @classmethod
    def parse(
        cls, agents: Sequence[str], harness: str | None, bounds: Sequence[str], capabilities: Sequence[str], token: bool
    ) -> Overrides:
        """Read the options; raise UsageError naming the option and the value that is off."""
        for option, values in (("--agent", agents), ("--harness", () if harness is None else (harness,))):
            if not all(value.strip() for value in values):
                raise UsageError("the value is blank", where=option, remedy=f"leave {option} out, or give a name")
        for name in capabilities:
            _check_operation(name)
        return cls(
            tuple(agent.strip() for agent in agents), harness, tuple(map(_bound, bounds)), tuple(capabilities), token
        )

    def applied_to(self, declared: Declared) -> Declared:
        """`declared` with these declarations in front: lists replace, bounds merge by name."""
        return replace(
            declared,
            agents=self.agents or declared.agents,
            harness=declared.harness if self.harness is None else self.harness,
            bounds_s={**declared.bounds_s, **dict(self.bounds)},
            capabilities=self.capabilities or declared.capabilities,
            token=self.token or declared.token,
        )

    def words(self) -> list[str]:
        """The options as words of a command line that says the same."""
        words = [f"--agent={agent}" for agent in self.agents]
        words += [] if self.harness is None else [f"--harness={self.harness}"]
        words += [f"--bound={name}={seconds:g}" for name, seconds in self.bounds]
        words += [f"--capability={name}" for name in self.capabilities]
        return [*words, "--token"] if self.token else words


def merged(first: Declared, second: Declared) -> Declared:
    """`first` completed by `second`: what the first says counts, canaries of both."""
    return Declared(
        agents=first.agents or second.agents,
        harness=second.harness if first.harness is None else first.harness,
        bounds_s={**second.bounds_s, **first.bounds_s},
        capabilities=second.capabilities if first.capabilities is None else first.capabilities,
        token=first.token or second.token,
        canaries={**second.canaries, **first.canaries},
    )


def _bound(text: str) -> tuple[str, float]:
    name, _, seconds = text.partition("=")
    try:
        value = float(seconds)
    except ValueError:
        value = 0.0
    if name not in BOUNDS or not isfinite(value) or value <= 0:
        raise UsageError(
            f"{printable(text, 60)!r} is no bound",
            where="--bound",
            remedy=f"write --bound start=15: a name of {', '.join(BOUNDS)}, then seconds above zero",
        )
    return name, value


def _check_operation(name: str) -> None:
    known = document("operations.json")["operations"]
    if name not in known:
        near = get_close_matches(name, known, 3, 0.4)
        raise UsageError(
            f"there is no operation {printable(name, 60)!r}",
            where="--capability",
            remedy="one of " + ", ".join(near) if near else f"an operation such as {', '.join(list(known)[:3])}",
        )
