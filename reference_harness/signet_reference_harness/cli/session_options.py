"""The options that `run` and `chat` share: the session and its turns, and the provider that is asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

PATH = click.Path(path_type=Path)
_Command = Callable[..., Any]

_SESSION = (
    click.option("--cwd", type=PATH, metavar="DIR", help="The project's folder (default: this one)."),
    click.option("--agent", metavar="ID", help="The agent that works (default: SIGNET_AGENT_ID)."),
    click.option(
        "--session", metavar="NAME", help="The session: gone on with if its file exists (default: a new one)."
    ),
    click.option("--sessions-dir", type=PATH, metavar="DIR", help="Where session files are (default: in --state-dir)."),
    click.option(
        "--state-dir",
        type=PATH,
        metavar="DIR",
        help="What the harness keeps "
        "(default: SIGNET_HARNESS_STATE_DIR, else signet-harness in the user's state folder).",
    ),
    click.option("--max-rounds", type=click.IntRange(0, 1_000), metavar="N", help="Rounds of tool calls (default: 8)."),
    click.option(
        "--context-budget",
        type=click.IntRange(1_000),
        metavar="TOKENS",
        help="Let the model summarise the conversation when its context is larger (default: when the model is full).",
    ),
    click.option(
        "--tool",
        "tools",
        multiple=True,
        metavar="MODULE:ATTRIBUTE",
        help="A tool of your own beside those of memory, secrets, the project's files and installed packages; "
        "repeatable.",
    ),
)
_PROVIDER = (
    click.option(
        "--provider", metavar="NAME", help="Who is asked: anthropic, openai, ollama, or one that is installed."
    ),
    click.option(
        "--api",
        "--protocol",
        metavar="API",
        help="The interface: anthropic-messages, openai-completions, openai-responses or ollama-chat.",
    ),
    click.option("--model", metavar="NAME", help="The model."),
    click.option("--base-url", "--baseurl", metavar="URL", help="Where the interface is served."),
    click.option(
        "--api-key",
        "--apikey",
        metavar="KEY",
        help="The provider's key. Other users of the machine see it here: an environment variable keeps it from them.",
    ),
)


def session_options(function: _Command) -> _Command:
    """Add the options that say which session it is, where its files are, and what its turns may take."""
    return _with(_SESSION, function)


def provider_options(function: _Command) -> _Command:
    """Add the options that name the provider and its model."""
    return _with(_PROVIDER, function)


def _with(options: tuple[Callable[[_Command], _Command], ...], function: _Command) -> _Command:
    for option in reversed(options):
        function = option(function)
    return function
