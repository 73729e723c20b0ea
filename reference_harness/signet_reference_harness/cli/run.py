"""`signet-harness run`: one task, headless."""

from __future__ import annotations

from typing import Any

import click

from signet_reference_harness.cli.session_options import PATH, provider_options, session_options

EPILOG = """\b
Examples:
  signet-harness run "What did we decide about the cache?"
  signet-harness run --prompt-file task.md --cwd ~/acme --output-format json
  git diff | signet-harness run --stdin --quiet --summary summary.json
  signet-harness run --api ollama-chat --model qwen3 "Hello."
  signet-harness run --session nightly "Go on where you stopped."
  signet-harness run --run-id deploy-7 "Deploy what is on main."
  signet-harness run --resume deploy-7

\b
Exit status: 0 done, 1 the provider or the agent failed, 2 wrong usage or
configuration, 124 timed out, 130 or 143 ended by SIGINT or SIGTERM. A session
that has begun is ended at the daemon in each of these cases.
"""


@click.command("run", help="Do one task: PROMPT, with the memory of the Signet daemon.", epilog=EPILOG)
@click.argument("words", nargs=-1, metavar="[PROMPT]")
@click.option("--prompt", metavar="TEXT", help="The task.")
@click.option("--prompt-file", type=PATH, metavar="FILE", help="A file that holds the task, in UTF-8.")
@click.option("--stdin", is_flag=True, help="Read the task from standard input.")
@session_options
@click.option("--run-id", metavar="ID", help="What the run is called (default: an id of its own).")
@click.option("--resume", metavar="ID", help="Go on with a run that failed or was killed, from its last checkpoint.")
@click.option("--timeout-ms", type=click.IntRange(1, 86_400_000), metavar="MS", help="Give the task up after that.")
@click.option(
    "--output-format",
    type=click.Choice(["text", "json", "stream-json", "none"]),
    default="text",
    show_default=True,
    help="What stands on standard output.",
)
@click.option("--summary", type=PATH, metavar="FILE", help="Write what the task came to (signet-run-summary/1).")
@click.option("--quiet", "-q", is_flag=True, help="Write no notes to standard error.")
@provider_options
def command(**given: Any) -> int:
    """Do the task; the exit status is that of its summary."""
    # Imported when there is a task: help and usage need no SDK.
    from signet_reference_harness.cli import told
    from signet_reference_harness.run import perform
    from signet_reference_harness.run.inputs import Options

    return perform(Options(**given), told)
