"""The features of the generated sessions of one target: steps, tools, agents."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from signet_conformance.errors import printable
from signet_conformance.facts.steps import TOOLS
from signet_conformance.trace import Declared
from signet_conformance.trace.marks import StepName

CHUNK = 20
"""The number of generated sessions that one connector process performs."""

SESSION_HOOKS = frozenset({"session-start", "user-prompt-submit", "session-end"})
WHOLE_STEPS = frozenset({"start", "prompt", "tool", "compact", "resume", "clear", "end"})
HALVES = frozenset({"pre_compaction", "compaction_complete"})
STOPPED = "stopped_prompt"
"""The step that a driver lists if it can play a turn which the user stops."""
ATTACHED = "attached_prompt"
"""The step that a driver lists if it can play a prompt with attachments."""


@dataclass(frozen=True, slots=True)
class Features:
    """The features that sessions of one target may use.

    `agents` counts its declared agents; `steps` are those that its driver performs; `checkpoints`: the connector sends
    the transcript of a running session; `restart` allows restarts of the daemon, `slow` the faults that last a
    connector's whole bound. `lives_on`: its process outlives a session, and so remembers refused and unsent requests.
    `undeclared` are the session hooks that the connector does not declare.
    """

    agents: int = 2
    steps: frozenset[str] = WHOLE_STEPS | HALVES
    tools: tuple[str, ...] = tuple(TOOLS)
    checkpoints: bool = False
    restart: bool = True
    slow: bool = False
    lives_on: bool = True
    undeclared: frozenset[str] = frozenset()

    @classmethod
    def of(cls, declared: Declared, steps: frozenset[str], *, can_restart: bool, lives_on: bool) -> Features:
        """Return the features of a target that declares this and whose driver performs these steps."""
        known = declared.capabilities
        if known is not None and "compaction-complete" not in known:
            steps -= {"compact", *HALVES}
        tools = tuple(tool for tool, needs in TOOLS.items() if known is None or needs & set(known))
        waits_s = [bound_s for name, bound_s in declared.bounds_s.items() if name in ("start", "prompt")]
        return cls(
            agents=max(len(declared.agents), 1),
            steps=steps,
            tools=tools if "tool" in steps else (),
            checkpoints=known is not None and "session-checkpoint-extract" in known,
            restart=can_restart,
            slow=max(waits_s, default=15.0) <= QUICK_BOUND_S,
            lives_on=lives_on,
            undeclared=frozenset() if known is None else SESSION_HOOKS - set(known),
        )


def possible_steps(declared: Declared) -> frozenset[str]:
    """Return the steps that make sense with what a target declares, for any driver."""
    features = Features.of(declared, WHOLE_STEPS | HALVES, can_restart=True, lives_on=True)
    return features.steps if features.tools else features.steps - {"tool"}


def listed_steps(hello: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the steps that a driver lists in its answer to hello; None without a list."""
    listed = hello.get("steps")
    return frozenset(map(str, listed)) if isinstance(listed, list) else None


def misspelt_steps(hello: Mapping[str, Any]) -> Iterator[str]:
    """Describe each step of a driver's list that is nearly one of the kit's; or the list, if it has another type."""
    known = [*StepName, STOPPED, ATTACHED]
    for name in sorted((listed_steps(hello) or frozenset()).difference(known)):
        # Drivers may list steps of their own, which nearly no other is spelt like.
        if near := get_close_matches(name, known, 1, 0.75):
            yield f"the driver lists the step {printable(name, 40)}, which no scenario has: did you mean {near[0]}?"
    if hello.get("steps") is not None and listed_steps(hello) is None:
        yield f"the driver's steps are {printable(json.dumps(hello['steps']), 40)}, and no list: the kit tries them out"


QUICK_BOUND_S = 1.5
"""Only connectors with bounds of up to this many seconds get slow faults in generated sessions."""
