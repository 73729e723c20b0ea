"""`signet-harness run` and `chat`: one task without a person, and a conversation with one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from signet_reference_harness.cli import DocumentedCommand, report_failure

PATH = click.Path(path_type=Path)
_Command = Callable[..., Any]

_SESSION = (
    click.option("--cwd", type=PATH, metavar="DIR", help="The project's folder (default: this one)."),
    click.option("--agent", metavar="ID", help="The agent that works (default: SIGNET_AGENT_ID)."),
    click.option("--session", metavar="NAME", help="The session: continued if its file exists (default: a new one)."),
    click.option("--continue", "goes_on", is_flag=True, help="The session of this agent in this project used last."),
    click.option("--sessions-dir", type=PATH, metavar="DIR", help="Where session files are (default: in --state-dir)."),
    click.option(
        "--state-dir",
        type=PATH,
        metavar="DIR",
        help="Where the harness keeps its files "
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
        "--tools",
        "allowed",
        multiple=True,
        metavar="NAMES",
        help="Let the model use these tools without asking: names or patterns with commas, such as file_write,mcp__*.",
    ),
    click.option("--read-only", is_flag=True, help="Refuse every tool that changes something."),
    click.option("--without-memory", is_flag=True, help="Ask the daemon nothing."),
    click.option(
        "--tool",
        "tools",
        multiple=True,
        metavar="MODULE:ATTRIBUTE",
        help="A tool of your own, in addition to the built-in and installed ones; repeatable.",
    ),
)
_PROVIDER = (
    click.option("--provider", metavar="NAME", help="The provider: anthropic, openai, ollama, or an installed one."),
    click.option(
        "--api",
        "--protocol",
        metavar="API",
        help="The interface: anthropic-messages, openai-completions, openai-responses or ollama-chat.",
    ),
    click.option("--model", metavar="NAME", help="The model."),
    click.option("--max-tokens", type=click.IntRange(1), metavar="N", help="Tokens of one answer at most."),
    click.option("--temperature", type=click.FloatRange(0, 2), metavar="T", help="How freely the model chooses words."),
    click.option("--stop", multiple=True, metavar="TEXT", help="Stop an answer before this text; repeatable."),
    click.option("--base-url", "--baseurl", metavar="URL", help="Where the interface is served."),
    click.option(
        "--api-key",
        "--apikey",
        metavar="KEY",
        help="The provider's key. Other users can see it on the command line; an environment variable hides it.",
    ),
)


def _add(options: tuple[Callable[[_Command], _Command], ...]) -> Callable[[_Command], _Command]:
    def decorate(function: _Command) -> _Command:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


@click.command("run", help="Do one task: PROMPT, with the memory of the Signet daemon.", cls=DocumentedCommand)
@click.argument("words", nargs=-1, metavar="[PROMPT]")
@click.option("--prompt", metavar="TEXT", help="The task.")
@click.option("--prompt-file", type=PATH, metavar="FILE", help="A file that holds the task, in UTF-8.")
@click.option("--stdin", is_flag=True, help="Read the task from standard input.")
@_add(_SESSION)
@click.option("--run-id", metavar="ID", help="The run's name (default: an id of its own).")
@click.option("--resume", metavar="ID", help="Continue a run that failed or was killed, from its last checkpoint.")
@click.option(
    "--timeout-ms", type=click.IntRange(1, 86_400_000), metavar="MS", help="Give the task up after this time."
)
@click.option(
    "--output-format",
    type=click.Choice(["text", "json", "stream-json", "none"]),
    default="text",
    show_default=True,
    help="What goes to standard output.",
)
@click.option("--summary", type=PATH, metavar="FILE", help="Write the summary of the task (signet-run-summary/1).")
@click.option("--explain", is_flag=True, help="Show on standard error how each memory affected the answer.")
@click.option("--compare-memory", is_flag=True, help="Ask a second time without memory, and show both answers.")
@click.option("--quiet", "-q", is_flag=True, help="Write no notes to standard error.")
@_add(_PROVIDER)
def run(**given: Any) -> int:
    """Do the task; return the exit status of its summary.

    Examples:
      signet-harness run "What did we decide about the cache?"
      signet-harness run --prompt-file task.md --cwd ~/acme --output-format json
      git diff | signet-harness run --stdin --quiet --summary summary.json
      signet-harness run --api ollama-chat --model qwen3 "Hello."
      signet-harness run --session nightly "Go on where you stopped."
      signet-harness run --run-id deploy-7 "Deploy what is on main."
      signet-harness run --resume deploy-7

    Exit status: 0 done, 1 the provider or the agent failed, 2 wrong usage or
    configuration, 124 timed out, 130 or 143 ended by SIGINT or SIGTERM. A session
    that has begun is ended at the daemon in each of these cases.
    """
    # Imported only for a task, since help and usage do not need it.
    from signet_reference_harness.run import perform
    from signet_reference_harness.run.inputs import Options

    return perform(Options(**given), report_failure)


@click.command("chat", help="Talk with an agent, with the memory of the Signet daemon.", cls=DocumentedCommand)
@_add(_SESSION)
@click.option("--plain", is_flag=True, help="Plain lines, on a terminal too: one line is one turn.")
@click.option(
    "--listen",
    type=click.IntRange(0, 65_535),
    metavar="PORT",
    help="Hold the chat over HTTP instead, at a port of this machine (0: a free one); see docs/harness/chat.md.",
)
@_add(_PROVIDER)
def chat(*, plain: bool, listen: int | None, **given: Any) -> int:
    r"""Run the chat.

    Examples:
      signet-harness chat
      signet-harness chat --cwd ~/acme --api ollama-chat --model qwen3
      signet-harness chat --session nightly
      printf '%s\n' "What did we decide?" "And why?" | signet-harness chat

    /help in the chat lists the commands. Ctrl-C stops an answer, /quit or Ctrl-D
    ends the session and the chat. In a pipe, or on a dumb terminal, each line is a turn.
    Exit status: 0 ended, 2 wrong usage or configuration, 129, 130 or 143 ended by
    SIGHUP, SIGINT or SIGTERM. The session is ended at the daemon in each of these cases.
    """
    from signet_reference_harness.chat import perform
    from signet_reference_harness.run.inputs import Options

    return perform(Options(**given), report_failure, plain=plain, listen=listen)
