"""The table of which daemon serves which agent, if there is more than one.

The table comes from a file or from the environment. An agent that it does not name has no daemon, and nothing of it is
ever sent to another agent's daemon.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from signet_reference_harness.config import HarnessConfig, bare_token, origin_of
from signet_reference_harness.errors import ConfigError, RoutingError

ROUTES: Final = "SIGNET_ROUTES"
ROUTES_FILE: Final = "SIGNET_ROUTES_FILE"


@dataclass(frozen=True, slots=True)
class DaemonRoute:
    """The origin of a daemon, and the token for it."""

    origin: str
    token: str | None = None


@dataclass(frozen=True, slots=True)
class RoutingTable:
    """The daemons by agent; `source` says where the table comes from, for messages."""

    routes: Mapping[str, DaemonRoute]
    source: str

    def settings_for(self, agent: str, config: HarnessConfig) -> HarnessConfig:
        """`config` with the daemon of that agent. Raises RoutingError for one that the table does not name."""
        route = self.routes.get(agent)
        if route is None:
            raise RoutingError(
                f"{self.source}: names no daemon for agent {agent!r}, only for {', '.join(sorted(self.routes))}",
                remedy="add the agent, or start the session as one of these",
            )
        token = route.token
        if token is None and route.origin == config.origin:
            # The token of the environment is meant for the daemon that the environment names, and for no other.
            token = config.token
        return replace(config, origin=route.origin, token=token)


def routing_table(environ: Mapping[str, str]) -> RoutingTable | None:
    """The table that is in the environment, or in a file that it names; None without either. Raises ConfigError.

    SIGNET_ROUTES is a list such as `atlas=http://127.0.0.1:3850, nova=http://127.0.0.1:3851`, SIGNET_ROUTES_FILE a JSON
    file as `schemas/harness/signet-harness-routes-1.schema.json` describes it.
    """
    listed, file = environ.get(ROUTES, "").strip(), environ.get(ROUTES_FILE, "").strip()
    if listed and file:
        raise ConfigError(f"both {ROUTES} and {ROUTES_FILE} are set", remedy="unset one of them")
    if file:
        # Documents import pydantic, which is needed for such a file only.
        from signet_reference_harness.daemon_client.routes_file import read_routes

        urls = read_routes(Path(file))
    elif listed:
        urls = _read_list(listed)
    else:
        return None
    where = file or ROUTES
    return RoutingTable(
        {agent: _route(agent, url, variable, where, environ) for agent, (url, variable) in urls.items()}, where
    )


def _read_list(listed: str) -> dict[str, tuple[str, str | None]]:
    """URL of each agent's daemon; no variable names a token in a list."""
    urls: dict[str, tuple[str, str | None]] = {}
    for entry in filter(None, (part.strip() for part in listed.split(","))):
        name, _, url = (part.strip() for part in entry.partition("="))
        if not url:
            raise ConfigError(
                f"{ROUTES}: {entry!r} is not of the form agent=url", remedy=f"set {ROUTES}=atlas=http://…"
            )
        if name in urls:
            raise ConfigError(f"{ROUTES}: agent {name!r} is named twice", remedy="name each agent once")
        urls[name] = url, None
    return urls


def _route(agent: str, url: str, token_env: str | None, where: str, environ: Mapping[str, str]) -> DaemonRoute:
    if not agent.strip() or agent != agent.strip():
        raise ConfigError(f"{where}: {agent!r} cannot be the id of an agent", remedy="write the bare id")
    place = f"{where}: the daemon of agent {agent!r}"
    origin = origin_of(url, place, remedy="write an origin such as http://127.0.0.1:3850")
    if token_env is None:
        return DaemonRoute(origin)
    token = environ.get(token_env, "").strip()
    if not token:
        raise ConfigError(f"{place}: {token_env} is not set", remedy=f"set {token_env} to its token")
    return DaemonRoute(origin, bare_token(token, f"{place}: the token in {token_env}", remedy="set the bare token"))
