"""What the generated sessions of one target may hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from signet_conformance.trace import Declared

CHUNK = 20
"""Generated sessions that one connector process performs, one after the other."""

TOOLS: Mapping[str, frozenset[str]] = {
    "memory_search": frozenset({"memory-recall", "hooks-recall", "memory-search"}),
    "memory_store": frozenset({"memory-remember", "hooks-remember"}),
    "memory_get": frozenset({"memory-get"}),
    "memory_modify": frozenset({"memory-modify", "memory-patch"}),
    "memory_forget": frozenset({"memory-forget", "memory-delete"}),
    "memory_feedback": frozenset({"memory-feedback"}),
    "secret_exec": frozenset({"secrets-exec"}),
}
"""Each tool with the operations of which its connector declares at least one."""

SESSION_HOOKS = frozenset({"session-start", "user-prompt-submit", "session-end"})
WHOLE_STEPS = frozenset({"start", "prompt", "tool", "compact", "resume", "clear", "end"})
HALVES = frozenset({"pre_compaction", "compaction_complete"})


@dataclass(frozen=True, slots=True)
class Features:
    """What the sessions of one target may hold.

    `agents` counts its declared agents; `steps` are the steps that its driver performs; `tools` those that
    it has; `checkpoints` tells that its connector hands over what was said while a session goes on; `restart` allows
    restarts of the daemon, `slow` the faults that cost a connector its whole bound. `lives_on` tells that its process
    outlives a session, and so knows later what was refused or never went out. `unspoken` are the operations of
    sessions that the connector does not declare.
    """

    agents: int = 2
    steps: frozenset[str] = WHOLE_STEPS | HALVES
    tools: tuple[str, ...] = tuple(TOOLS)
    checkpoints: bool = False
    restart: bool = True
    slow: bool = False
    lives_on: bool = True
    unspoken: frozenset[str] = frozenset()

    @classmethod
    def of(cls, declared: Declared, steps: frozenset[str], *, can_restart: bool, lives_on: bool) -> Features:
        """The features of a target, from its profile and the steps that its driver performs."""
        known = declared.capabilities
        if known is not None and "compaction-complete" not in known:
            steps -= {"compact", *HALVES}
        tools = tuple(tool for tool, needs in TOOLS.items() if known is None or needs & set(known))
        return cls(
            agents=max(len(declared.agents), 1),
            steps=steps,
            tools=tools if "tool" in steps else (),
            checkpoints=known is not None and "session-checkpoint-extract" in known,
            restart=can_restart,
            slow=max(declared.bounds_s.values(), default=15.0) <= QUICK_BOUND_S,
            lives_on=lives_on,
            unspoken=frozenset() if known is None else SESSION_HOOKS - set(known),
        )


def possible_steps(declared: Declared) -> frozenset[str]:
    """The steps that make sense with what a target declares, whatever its driver performs."""
    features = Features.of(declared, WHOLE_STEPS | HALVES, can_restart=True, lives_on=True)
    return features.steps if features.tools else features.steps - {"tool"}


def said_steps(hello: Mapping[str, Any]) -> frozenset[str] | None:
    """The steps that a driver lists in its answer to hello; None where it lists none."""
    listed = hello.get("steps")
    return frozenset(map(str, listed)) if isinstance(listed, list) else None


QUICK_BOUND_S = 1.5
"""Up to this bound a connector is made to wait for it now and then."""
