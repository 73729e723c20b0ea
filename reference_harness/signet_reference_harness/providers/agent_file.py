"""The agent's own file, agent.yaml: the harness reads its member `runtime`, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field

from signet_reference_harness.documents import StrictModel, demand, parse_yaml, read_file
from signet_reference_harness.errors import ConfigError, os_errors
from signet_reference_harness.providers import Api
from signet_reference_harness.providers.failures import CallFailure, FailureKind

NAMES: Final = ("agent.yaml", "AGENT.yaml", "config.yaml")
"""In the order in which the daemon looks for them."""
LARGEST_FILE: Final = 1024 * 1024
NAME_ANOTHER: Final = "name another workspace by SIGNET_PATH"
READABLE: Final = f"make it readable, or {NAME_ANOTHER}"
Seconds = Annotated[float, Field(gt=0, strict=False)]


class PricePart(StrictModel):
    """Dollars for a million tokens of a model: those it reads, and those it writes."""

    input: Annotated[float, Field(ge=0, strict=False)]
    output: Annotated[float, Field(ge=0, strict=False)]


class RetryPolicy(StrictModel):
    """When a failed call is tried again. Times are in seconds.

    There are `attempts` calls at most, and none begins later than `total_s` after the first. A wait that the provider
    requests is kept exactly; without one, the wait is between `shortest_wait_s` and a ceiling that doubles up to
    `longest_backoff_s`. If the requested wait is above `longest_wait_s`, or ends after `total_s`, the call fails with
    the error that `too_long` names. The four switches name the failures that are tried again at all.
    """

    attempts: Annotated[int, Field(ge=1, le=20)] = 3
    total_s: Seconds = 60.0
    longest_wait_s: Seconds = 20.0
    shortest_wait_s: Seconds = 0.5
    longest_backoff_s: Seconds = 8.0
    network: bool = True
    timeouts: bool = True
    rate_limits: bool = True
    server_errors: bool = True
    too_long: Literal["deferred", "error"] = "deferred"

    def covers(self, kind: FailureKind) -> bool:
        """Whether a failure of this kind is tried again at all."""
        switches = {
            FailureKind.NETWORK: self.network,
            FailureKind.TIMEOUT: self.timeouts,
            FailureKind.RATE_LIMIT: self.rate_limits,
            FailureKind.SERVER: self.server_errors,
        }
        return switches.get(kind, False)

    def is_too_long(self, failure: CallFailure, elapsed_s: float) -> bool:
        """Whether the provider requests too long a wait, for a failure that is tried again otherwise."""
        requested_s = failure.requested_wait_s
        if requested_s is None or not self.covers(failure.kind):
            return False
        return requested_s > self.longest_wait_s or elapsed_s + requested_s > self.total_s

    def wait_s(self, failure: CallFailure, *, attempt: int, elapsed_s: float, chance: float) -> float | None:
        """The wait after attempt number `attempt`, counted from 1, has failed `elapsed_s` after the first began.

        None if the call is not tried again. `chance` is a number from 0 to 1.
        """
        if not self.covers(failure.kind) or attempt >= self.attempts or self.is_too_long(failure, elapsed_s):
            return None
        if failure.requested_wait_s is not None:
            return failure.requested_wait_s
        ceiling = min(self.longest_backoff_s, self.shortest_wait_s * 2**attempt)
        wait_s = self.shortest_wait_s + chance * max(0.0, ceiling - self.shortest_wait_s)
        return wait_s if elapsed_s + wait_s <= self.total_s else None


class McpServerPart(StrictModel):
    """An MCP server: a `command` to run, or the `url` of one that runs. `env` and `headers` may hold secrets."""

    command: Annotated[str | None, Field(min_length=1)] = None
    args: list[str] = Field(default_factory=list)
    env: Any = None
    cwd: str | None = None
    url: str | None = None
    headers: Any = None
    tools: list[str] | None = None
    """the tools to use, by the server's names of them"""
    timeout_s: Seconds | None = None
    """for one call of a tool"""
    start_timeout_s: Seconds | None = None
    """until the server has named its tools"""
    enabled: bool = True


class RuntimePart(StrictModel):
    """The member `runtime`. Members that the harness does not know may be the daemon's."""

    model_config = ConfigDict(extra="ignore")

    provider: str | None = None
    api: Api | None = None
    model: str | None = None
    base_url: str | None = None
    api_key_env: str | None = None
    """the environment variable that holds the key"""
    timeout_s: Seconds | None = None
    longest_answer: Annotated[int | None, Field(ge=1)] = None
    """bytes of one answer"""
    retry: RetryPolicy = RetryPolicy()
    prices: dict[str, PricePart] = Field(default_factory=dict)
    """of models, by their names"""
    mcp_servers: dict[str, McpServerPart] = Field(default_factory=dict)
    """MCP servers by their names"""
    mcp_registry: bool = True
    """whether the servers of the daemon's registry are used, too"""


@dataclass(frozen=True, slots=True)
class AgentFile:
    """The settings of the file at `path`. `api_key` is the key itself, if the file holds it."""

    path: Path
    runtime: RuntimePart
    api_key: str | None


def read_agent_file(workspace: Path) -> AgentFile | None:
    """The agent's file in `workspace`, or None if it does not exist. Raises ConfigError when it cannot be used."""
    for name in NAMES:
        path = workspace / name
        with os_errors(path, READABLE), suppress(FileNotFoundError):
            path.stat()
            return _read_members(path, read_file(path, LARGEST_FILE, remedy=READABLE, smaller=NAME_ANOTHER))
    return None


def _read_members(path: Path, data: bytes) -> AgentFile:
    value = parse_yaml(data, path)
    value = {} if value is None else value
    if not isinstance(value, Mapping):
        raise ConfigError(f"{path} holds no mapping", remedy="write members such as 'runtime:' with values beneath")
    runtime = value.get("runtime")
    runtime = {} if runtime is None else runtime
    if not isinstance(runtime, Mapping) or not all(isinstance(name, str) for name in runtime):
        raise ConfigError(
            f"{path}: /runtime: is not a mapping of names", remedy="write 'provider: anthropic' beneath it"
        )
    members = dict(runtime)
    # The key is checked separately: an error about it must not show its value.
    key = members.pop("api_key", None)
    if key is not None and not isinstance(key, str):
        raise ConfigError(f"{path}: /runtime/api_key: is not a text", remedy="write it in quotes, or use api_key_env")
    known = [*RuntimePart.model_fields, "api_key"]
    for name in members.keys() - set(known):
        near = get_close_matches(name, known, 1, 0.8)
        if near:
            raise ConfigError(f"{path}: /runtime: unknown member {name[:80]!r}", remedy=f"write {near[0]}")
    return AgentFile(path, demand(RuntimePart, members, f"{path}: /runtime"), key)
