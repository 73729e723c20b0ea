"""`signet-harness chat`: a conversation with an agent, in a terminal."""

from __future__ import annotations

from typing import Any

import click

from signet_reference_harness.cli.session_options import provider_options, session_options

EPILOG = """\b
Examples:
  signet-harness chat
  signet-harness chat --cwd ~/acme --api ollama-chat --model qwen3
  signet-harness chat --session nightly
  printf '%s\\n' "What did we decide?" "And why?" | signet-harness chat

\b
/help in the chat says what can be typed. Ctrl-C stops an answer, /quit or Ctrl-D
ends the session and the chat. In a pipe, or on a dumb terminal, each line is a turn.
Exit status: 0 ended, 2 wrong usage or configuration, 129, 130 or 143 ended by
SIGHUP, SIGINT or SIGTERM. The session is ended at the daemon in each of these cases.
"""


@click.command("chat", help="Talk with an agent, with the memory of the Signet daemon.", epilog=EPILOG)
@session_options
@click.option("--plain", is_flag=True, help="Plain lines, on a terminal too: one line is one turn.")
@click.option(
    "--listen",
    type=click.IntRange(0, 65_535),
    metavar="PORT",
    help="Hold the chat over HTTP instead, at a port of this machine (0: a free one); see docs/harness/chat.md.",
)
@provider_options
def command(*, plain: bool, listen: int | None, **given: Any) -> int:
    """Hold the chat."""
    from signet_reference_harness.chat import perform
    from signet_reference_harness.cli import told
    from signet_reference_harness.run.inputs import Options

    return perform(Options(**given), told, plain=plain, listen=listen)
