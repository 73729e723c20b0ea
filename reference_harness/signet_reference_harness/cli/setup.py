"""`signet-harness setup`: finds the daemon, the vendors' keys and the models of this machine, and proposes settings."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from signet_reference_harness.cli import DocumentedCommand
from signet_reference_harness.messages import objects

LOOKUP_S: Final = 1.0
"""How long a server of this machine may take to name its models."""
SERVERS: Final = (
    ("ollama", "http://127.0.0.1:11434"),
    ("openai-compatible", "http://127.0.0.1:1234/v1"),
    ("openai-compatible", "http://127.0.0.1:8000/v1"),
    ("openai-compatible", "http://127.0.0.1:8080/v1"),
)
"""Where Ollama, LM Studio, vLLM and llama.cpp listen by default."""
MOST_MODELS: Final = 20


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A server of this machine, and its models."""

    provider: str
    base_url: str
    models: tuple[str, ...]


@click.command("setup", help="Find the daemon, keys and local models, and propose settings.", cls=DocumentedCommand)
@click.option("--write", is_flag=True, help="Write the proposal into agent.yaml if that file does not exist.")
def setup(*, write: bool) -> int:
    """Look for them, report and propose; return the exit status.

    It sends only a request for the daemon's health and for the models of servers on this
    machine. No key is shown. Exit status: 0 when a session can begin, else 1.
    """
    from signet_reference_harness.errors import ConfigError
    from signet_reference_harness.providers import settings

    workspace = settings.workspace_of(os.environ)
    has_daemon = asyncio.run(_report_daemon())
    servers = list(local_servers(os.environ))
    for variable in _key_variables():
        click.echo(f"key: {variable} is {'set' if os.environ.get(variable, '').strip() else 'not set'}")
    for server in servers:
        names = ", ".join(server.models[:MOST_MODELS]) or "no model"
        click.echo(f"models: {server.provider} at {server.base_url}: {names}")
    try:
        used = settings.load({}, os.environ, workspace)
    except ConfigError as failure:
        click.echo(f"model: {failure.message}")
    else:
        click.echo(f"model: {used.provider} {used.model or ''}".rstrip() + f" ({used.provider_source or 'by default'})")
        return 0 if has_daemon else 1
    proposed = proposal(servers, os.environ)
    if proposed is None:
        click.echo("try: start Ollama with a model, or set ANTHROPIC_API_KEY or OPENAI_API_KEY, then run setup again")
        return 1
    return _propose(workspace, proposed, write=write)


def _propose(workspace: Path, proposed: str, *, write: bool) -> int:
    from signet_reference_harness.errors import ConfigError, os_errors
    from signet_reference_harness.providers.agent_file import NAMES

    existing = next((workspace / name for name in NAMES if (workspace / name).exists()), None)
    path = existing or workspace / NAMES[0]
    if write and existing is not None:
        raise ConfigError(f"{existing} exists and is not changed", remedy=f"add these lines to it:\n{proposed}")
    if write:
        with os_errors(path, "name another folder by SIGNET_PATH"):
            workspace.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as file:
                file.write(proposed)
        click.echo(f"written: {path}")
        return 0
    click.echo(f"proposal for {path}; {'add these lines' if existing else '--write writes it'}:\n\n{proposed}")
    return 1


async def _report_daemon() -> bool:
    from signet_reference_harness.config import HarnessConfig
    from signet_reference_harness.daemon_client import AdapterClient

    async with aclosing(AdapterClient(HarnessConfig.from_environment(os.environ))) as client:
        reply = await client.health()
    origin = client.config.origin
    if reply.shows_no_daemon:
        click.echo(f"daemon: {reply.describe_no_daemon(origin)}")
    else:
        click.echo(f"daemon: {reply.text('version') or 'of no known version'} at {origin}")
    return not reply.shows_no_daemon


def local_servers(environ: Mapping[str, str]) -> Iterator[LocalServer]:
    """The model servers that answer on this machine; Ollama at OLLAMA_HOST, if that is set."""
    import httpx

    from signet_reference_harness.providers import settings

    with httpx.Client(timeout=LOOKUP_S, trust_env=False, verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)) as client:
        for provider, usual in SERVERS:
            base_url = usual
            if provider == "ollama" and environ.get("OLLAMA_HOST", "").strip():
                flags = {"provider": provider, "model": "any"}
                base_url = settings.load(flags, {"OLLAMA_HOST": environ["OLLAMA_HOST"]}, None).base_url or usual
            try:
                response = client.get(f"{base_url}/api/tags" if provider == "ollama" else f"{base_url}/models")
                models = tuple(_names(response.json()))
            except (httpx.HTTPError, ValueError):
                continue
            if response.is_success:
                yield LocalServer(provider, base_url, models)


def _names(value: Any) -> Iterator[str]:
    rows = (value.get("models") or value.get("data")) if isinstance(value, dict) else None
    for row in objects(rows):
        name = row.get("name") or row.get("id")
        if isinstance(name, str):
            yield name


def _key_variables() -> list[str]:
    from signet_reference_harness.providers.settings import KINDS

    return list(dict.fromkeys(kind.key_variable for kind in KINDS.values() if kind.needs_key and kind.key_variable))


def proposal(servers: list[LocalServer], environ: Mapping[str, str]) -> str | None:
    """Lines for agent.yaml: a local model, else a vendor whose key is set; None without either."""
    from signet_reference_harness.providers.settings import KINDS

    for server in servers:
        if server.models:
            address = "" if KINDS[server.provider].base_url == server.base_url else f"\n  base_url: {server.base_url}"
            return f"runtime:\n  provider: {server.provider}\n  model: {server.models[0]!r}{address}\n"
    for provider, kind in KINDS.items():
        if kind.needs_key and kind.key_variable and environ.get(kind.key_variable, "").strip():
            return f"runtime:\n  provider: {provider}\n  model: NAME  # one of the vendor's models\n"
    return None
