"""The identity of a session: key, agent and project, checked once so that no later call can break the contract."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from signet_reference_harness.config import HARNESS_NAME
from signet_reference_harness.errors import IdentityError

CONSTANT_KEYS: Final = frozenset(
    {"hermes-default", "default", "main", "session", "unknown", "none", "null", "undefined"}
)
KEY_PREFIX: Final = "session:"
ABSOLUTE: Final = re.compile(r"/|[A-Za-z]:[\\/]")


@dataclass(frozen=True, slots=True)
class SessionIdentity:
    """Key, agent and absolute project directory of one session of `harness`, the same on every call it makes.

    The key is stored as the daemon normalises it: trimmed, one leading `session:` removed.
    Raises IdentityError for a blank or constant key, a blank agent, the harness's name as agent,
    a key `agent:<id>:…` of another agent, a relative project, or text that UTF-8 cannot hold.
    """

    key: str
    agent: str
    project: str
    harness: str = HARNESS_NAME

    def __post_init__(self) -> None:
        for name, value in (("session key", self.key), ("agent", self.agent), ("project", self.project)):
            _require_text(name, value)
        key = self.key.strip().removeprefix(KEY_PREFIX)
        object.__setattr__(self, "key", key)
        object.__setattr__(self, "agent", self.agent.strip())
        if not key.strip() or key.lower() in CONSTANT_KEYS:
            raise IdentityError(
                f"session key {key!r} would be shared by unrelated sessions",
                remedy="give each session a key of its own, such as a UUID",
            )
        refuse_harness_as_agent(self.agent, self.harness)
        scheme, _, rest = key.partition(":")
        if scheme == "agent" and rest and rest.partition(":")[0].strip() != self.agent:
            raise IdentityError(
                f"session key {key!r} belongs to another agent than {self.agent!r}",
                remedy="use a key of that agent, or start the session as the agent that the key names",
            )
        if not ABSOLUTE.match(self.project):
            raise IdentityError(
                f"project {self.project!r} is not an absolute path", remedy="pass the working directory in full"
            )


def refuse_harness_as_agent(agent: str, harness: str) -> None:
    """Raise IdentityError if an agent has the name of its harness, which is not an agent."""
    if agent == harness:
        raise IdentityError(
            f"agent {agent!r} is the name of the harness", remedy="set SIGNET_AGENT_ID to the agent's own id"
        )


def _require_text(name: str, value: object) -> None:
    if not isinstance(value, str) or not value.strip():
        raise IdentityError(f"{name} is blank or not a string", remedy=f"name the {name}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise IdentityError(f"{name} holds a lone surrogate", remedy="pass valid Unicode text") from error
