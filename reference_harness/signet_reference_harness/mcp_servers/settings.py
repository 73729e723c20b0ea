"""How MCP servers are reached: read from agent.yaml, which the user wrote, and from the daemon's registry.

Values of `env` and `headers` are never shown or logged. The registry's commands are used only if the daemon runs on
this machine, its addresses only if they too are on this machine: no other machine decides what runs here or is called.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import urlsplit

from pydantic import ValidationError

from signet_reference_harness.config import Secret, url_problem
from signet_reference_harness.daemon_client.reply import Reply
from signet_reference_harness.errors import ConfigError, printable
from signet_reference_harness.local_server import is_loopback
from signet_reference_harness.messages import objects
from signet_reference_harness.providers.agent_file import AgentFile, McpServerPart

CALL_TIMEOUT_S: Final = 60.0
START_TIMEOUT_S: Final = 30.0
LONGEST_TIMEOUT_S: Final = 600.0
LONGEST_NAME: Final = 60
MOST_SERVERS: Final = 32
REGISTRY: Final = "the daemon's registry"
SECRET_REFERENCE: Final = "secret://"  # noqa: S105 - the beginning of a reference, not a secret
UNREADABLE: Final = "the registry does not say how it is reached"
_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
Secrets = Mapping[str, Secret]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """One server. It has either a `command` (spoken to over its standard streams) or a `url` (streamable HTTP)."""

    name: str
    source: str
    """The file or registry that names it, for messages."""
    command: tuple[str, ...] = ()
    env: Secrets = field(default_factory=dict)
    cwd: str | None = None
    url: str = ""
    headers: Secrets = field(default_factory=dict)
    tools: frozenset[str] | None = None
    """The tools to use, by the server's own names; None for all."""
    timeout_s: float = CALL_TIMEOUT_S
    """The bound of one tool call."""
    start_timeout_s: float = START_TIMEOUT_S

    def scrub(self, text: str) -> str:
        """Hide this server's secrets in `text`."""
        for secret in (*self.env.values(), *self.headers.values()):
            text = secret.hide_in(text)
        return text


@dataclass(frozen=True, slots=True)
class ServerList:
    """The servers to start, and a notice for each server that cannot be started."""

    servers: tuple[ServerSettings, ...] = ()
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class McpSettings(ServerList):
    """The servers of agent.yaml, and whether the servers of the daemon's registry are used too."""

    with_registry: bool = True
    left_out: frozenset[str] = frozenset()
    """Names of servers that agent.yaml switches off, in the registry too."""


def read_mcp_settings(file: AgentFile | None, environ: Mapping[str, str]) -> McpSettings:
    """Read the servers of agent.yaml. Raises ConfigError for an invalid entry."""
    if file is None:
        return McpSettings()
    servers: list[ServerSettings] = []
    notices: list[str] = []
    for name, part in file.runtime.mcp_servers.items():
        where = f"{file.path}: /runtime/mcp_servers/{printable(name)[:LONGEST_NAME]}"
        server, unset = _read_entry(name, part, where, environ)
        if unset and part.enabled:
            notices.append(
                f"The MCP server {server.name} is not used: {', '.join(sorted(unset))} is not set, which {where} needs."
            )
        elif part.enabled:
            servers.append(server)
    left_out = frozenset(name for name, part in file.runtime.mcp_servers.items() if not part.enabled)
    return McpSettings(tuple(servers), tuple(notices), file.runtime.mcp_registry, left_out)


def _read_entry(
    name: str, part: McpServerPart, where: str, environ: Mapping[str, str] | None
) -> tuple[ServerSettings, set[str]]:
    """Return the server that an entry describes, and the names of the variables that are not set.

    Without `environ`, variables are not replaced. Raises ConfigError.
    """
    if not name.strip() or len(name) > LONGEST_NAME or not name.isprintable():
        raise ConfigError(f"{where}: cannot name a server", remedy=f"name it with up to {LONGEST_NAME} characters")
    if (part.command is None) == (part.url is None):
        mistake = "neither a command nor a url" if part.command is None else "both a command and a url"
        raise ConfigError(f"{where}: has {mistake}", remedy="give one of them: command for a program, url for HTTP")
    if part.url is not None and (problem := url_problem(part.url)):
        raise ConfigError(f"{where}/url: {problem}", remedy="write it such as http://127.0.0.1:8000/mcp")
    if any("\0" in text for text in (part.command or "", *part.args)):
        raise ConfigError(f"{where}/args: holds a NUL", remedy="write the words of a command line")
    env, lacking = _expand_variables(_read_texts(part.env, f"{where}/env"), environ)
    headers, more = _expand_variables(_read_texts(part.headers, f"{where}/headers"), environ)
    _check_headers(headers, f"{where}/headers")
    server = ServerSettings(
        name=name,
        source=str(where.partition(": ")[0]),
        command=() if part.command is None else (part.command, *part.args),
        env=env,
        cwd=part.cwd,
        url=part.url or "",
        headers=headers,
        tools=None if part.tools is None else frozenset(part.tools),
        timeout_s=min(part.timeout_s or CALL_TIMEOUT_S, LONGEST_TIMEOUT_S),
        start_timeout_s=min(part.start_timeout_s or START_TIMEOUT_S, LONGEST_TIMEOUT_S),
    )
    return server, lacking | more


def _read_texts(value: Any, where: str) -> dict[str, str]:
    """Return `value` as a mapping of texts. Raises ConfigError; its message shows no value, which may be secret."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ConfigError(f"{where}: is not a mapping", remedy="write a name, a colon and a text on each line")
    for name, text in value.items():
        if not isinstance(name, str) or not isinstance(text, str) or "\0" in name + text or "=" in name:
            raise ConfigError(f"{where}/{printable(str(name))[:60]}: is not a text", remedy="write it in quotes")
    return dict(value)


def _expand_variables(
    texts: Mapping[str, str], environ: Mapping[str, str] | None
) -> tuple[dict[str, Secret], set[str]]:
    """Replace each `${NAME}` by the environment's value. Also return the names that are not set."""
    if environ is None:
        return {name: Secret(text) for name, text in texts.items()}, set()
    names = {name for text in texts.values() for name in _VARIABLE.findall(text)}
    secrets = {name: Secret(_VARIABLE.sub(lambda m: environ.get(m[1], ""), text)) for name, text in texts.items()}
    return secrets, {name for name in names if not environ.get(name)}


def _check_headers(headers: Secrets, where: str) -> None:
    for name, value in headers.items():
        if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name) or not value.reveal().isascii():
            raise ConfigError(f"{where}/{printable(name)[:60]}: is not a valid header", remedy="use ASCII only")
        if any(character in value.reveal() for character in "\r\n"):
            raise ConfigError(f"{where}/{name}: holds a line break", remedy="write it on one line")


def read_registry(reply: Reply, origin: str) -> ServerList:
    """Read the servers that the daemon at `origin` lists. Never raises: a bad row becomes a notice."""
    if reply.failure is not None:
        return ServerList()
    servers: list[ServerSettings] = []
    notices: list[str] = []
    rows = [row for row in objects(reply.body.get("servers")) if row.get("enabled") is True]
    for row in rows[:MOST_SERVERS]:
        name = printable(str(row.get("id") or row.get("name") or "")).replace("\n", " ")[:LONGEST_NAME].strip()
        server = _read_registry_row(name, row.get("config"), local=is_local(origin))
        if isinstance(server, ServerSettings):
            servers.append(server)
        else:
            notices.append(f"The MCP server {name or '(without a name)'} of {REGISTRY} is not used: {server}.")
    if len(rows) > MOST_SERVERS:
        notices.append(f"{len(rows) - MOST_SERVERS} further MCP servers of {REGISTRY} are not used.")
    return ServerList(tuple(servers), tuple(notices))


def _read_registry_row(name: str, config: Any, *, local: bool) -> ServerSettings | str:
    """Return the server of a row of the registry, or the reason why it is not used."""
    if not name or not isinstance(config, Mapping):
        return UNREADABLE
    members = {"stdio": ("command", "args", "env", "cwd"), "http": ("url", "headers")}.get(
        str(config.get("transport")), ()
    )
    try:
        part = McpServerPart.model_validate({member: config[member] for member in members if config.get(member)})
        server, _ = _read_entry(name, part, REGISTRY, None)
    except (ConfigError, ValidationError):
        return UNREADABLE
    secrets = [secret.reveal() for secret in (*server.env.values(), *server.headers.values())]
    if any(text.startswith(SECRET_REFERENCE) for text in (*server.command, *secrets)):
        return "it needs secrets that never leave the daemon; name it in agent.yaml to use it here"
    if server.command and not local:
        return "another machine's daemon does not say what runs here; name it in agent.yaml to use it"
    if server.url and not (local and is_local(server.url)):
        return "its address is not on this machine; name it in agent.yaml to use it"
    return replace(server, timeout_s=_seconds(config.get("timeoutMs")))


def _seconds(milliseconds: Any) -> float:
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int | float) or not milliseconds > 0:
        return CALL_TIMEOUT_S
    return min(milliseconds / 1000, LONGEST_TIMEOUT_S)


def is_local(url: str) -> bool:
    """Whether an address names this machine. No name is looked up."""
    host = urlsplit(url).hostname or ""
    return host == "localhost" or is_loopback(host)
