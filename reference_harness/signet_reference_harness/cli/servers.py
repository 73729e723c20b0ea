"""`signet-harness adapter` and `llm`: a runtime adapter, and a scripted model, behind HTTP."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from signet_reference_harness.cli import DocumentedCommand


@click.command("adapter", help="Serve the lifecycle of a harness over HTTP (signet-adapter/1).", cls=DocumentedCommand)
@click.option("--harness", metavar="NAME", help="The harness whose sessions they are (default: reference).")
@click.option(
    "--runtime-path", type=click.Choice(["plugin", "legacy"]), default="plugin", show_default=True,
    help="plugin: from inside the harness; legacy: from hooks that it runs.",
)  # fmt: skip
@click.option("--agent", metavar="ID", help="The agent of calls that name no agent (default: SIGNET_AGENT_ID).")
@click.option("--port", type=click.IntRange(0, 65_535), default=0, help="The port; default: a free one.")
@click.option(
    "--host", metavar="ADDRESS", default="127.0.0.1", show_default=True,
    help="The address to listen at. Every client that reaches it speaks to the daemon as the agent.",
)  # fmt: skip
@click.option("--until-stdin-closes", is_flag=True, help="End when standard input is closed.")
def adapter(
    harness: str | None, agent: str | None, port: int, host: str, *, until_stdin_closes: bool, **path: Any
) -> None:
    """Serve until a signal, or the end of standard input.

    Prints one JSON line with its url when it is ready. A harness calls it there:
      curl -d '{"sessionKey": "k-1", "project": "/srv/acme", "source": "startup"}' URL/onSessionStart

    SIGNET_DAEMON_URL, SIGNET_TOKEN and SIGNET_ROUTES say where the daemon is.
    Sessions that are open are ended at the daemon when the server ends: at SIGTERM,
    at SIGINT, and with --until-stdin-closes when standard input is closed.
    """
    from signet_reference_harness.config import HarnessConfig
    from signet_reference_harness.daemon_client.routing import routing_table
    from signet_reference_harness.identity import refuse_harness_as_agent

    config = HarnessConfig.from_environment(os.environ)
    config = replace(
        config, harness=config.harness if harness is None else harness, agent=agent or config.agent, **path
    )
    refuse_harness_as_agent(config.agent, config.harness)
    asyncio.run(_serve(config, routing_table(os.environ), port, host, until_stdin_closes=until_stdin_closes))


async def _serve(config: Any, routing: Any, port: int, host: str, *, until_stdin_closes: bool) -> None:
    from signet_reference_harness.adapter import SessionAdapter
    from signet_reference_harness.adapter.server import RuntimeAdapterServer
    from signet_reference_harness.local_server import is_loopback, serving

    async with SessionAdapter(config, routing=routing) as opened:
        app = RuntimeAdapterServer(opened, config.agent, any_host=not is_loopback(host))
        await serving(app, port, host=host, until_stdin_closes=until_stdin_closes)


@click.command(
    "llm",
    help="Answer like a model, from SCRIPT, over the interfaces of Anthropic, OpenAI and Ollama. "
    "Without SCRIPT each request waits until POST /turns gives its answer.",
    cls=DocumentedCommand,
)
@click.argument("script", type=click.Path(path_type=Path), required=False)
@click.option("--port", type=click.IntRange(0, 65_535), default=0, help="Port on 127.0.0.1; default: a free one.")
@click.option("--until-stdin-closes", is_flag=True, help="End when standard input is closed.")
def llm(script: Path | None, port: int, *, until_stdin_closes: bool) -> None:
    """Serve until a signal, or the end of standard input.

    Prints one JSON line with its url when it is ready. Point a program there:
      ANTHROPIC_BASE_URL=URL   OPENAI_BASE_URL=URL/v1   OLLAMA_HOST=URL

    What reached the model:   curl URL/requests
    Add turns while it plays: curl -d '{"turns": [{"content": "Hello."}]}' URL/turns
    """
    from signet_reference_harness.documents import read_document
    from signet_reference_harness.llm_server import ScriptedModelApp
    from signet_reference_harness.llm_server.script import Script
    from signet_reference_harness.local_server import serving

    loaded = Script(format="signet-llm/1", when_out="wait") if script is None else read_document(Script, script)
    asyncio.run(serving(ScriptedModelApp(loaded), port, until_stdin_closes=until_stdin_closes))
