"""Which scenarios can decide a requirement: those in which what it speaks of may happen at all.

Only what the steps of a scenario bring about, and a connector does not do by itself, narrows the choice. A scenario
is left out when it holds nothing of it; a requirement that is not named here may be decided by every scenario.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from signet_conformance.scenarios.script import Scenario
from signet_conformance.scenarios.steps import (
    Compact,
    CompactionComplete,
    PreCompaction,
    RestartDaemon,
    Step,
    SwitchFaultOn,
    ToolCall,
)


def _any(_scenario: Scenario) -> bool:
    return True


def _has_step(*kinds: type[Step]) -> Callable[[Scenario], bool]:
    return lambda scenario: any(isinstance(step, kinds) for step in scenario.steps)


def _has_bypass(scenario: Scenario) -> bool:
    return scenario.bypass is not None


def _compacts(scenario: Scenario) -> bool:
    # A compaction under the bypass is told to nobody.
    return not _has_bypass(scenario) and _has_step(Compact, PreCompaction, CompactionComplete)(scenario)


_calls_tools = _has_step(ToolCall)
_is_disturbed = _has_step(SwitchFaultOn, RestartDaemon)

_DECIDED_WHERE: Mapping[str, Callable[[Scenario], bool]] = {
    # A compaction that is announced where the user asked for none is what this one forbids.
    "SIG-CMP-007": _any,
    "SIG-CMP-*": _compacts,
    "SIG-FAIL-004": _has_bypass,
    "SIG-FAIL-*": _is_disturbed,
    "SIG-MEM-*": _calls_tools,
    "SIG-SEC-001": _calls_tools,
    "SIG-SEC-002": _calls_tools,
}
"""Requirements, by id or glob (the first that fits counts), and what a scenario must hold to decide one."""


def deciding(scenarios: Sequence[Scenario], requirements: Iterable[str] | None) -> Sequence[Scenario]:
    """The scenarios, in their order, that can decide any of some requirements; all of them for None.

    All of them too where no scenario is left: a connector may surprise.
    """
    if requirements is None:
        return scenarios
    wanted = [_decides(requirement) for requirement in requirements]
    chosen = [scenario for scenario in scenarios if any(decides(scenario) for decides in wanted)]
    if all(map(_has_bypass, chosen)):
        # That a connector is silent there says something only where it speaks otherwise.
        speaking = [scenario for scenario in scenarios if not _has_bypass(scenario)]
        return [*speaking[:1], *chosen] if chosen else scenarios
    return chosen


def _decides(requirement: str) -> Callable[[Scenario], bool]:
    fitting = (decides for pattern, decides in _DECIDED_WHERE.items() if fnmatchcase(requirement, pattern))
    return next(fitting, _any)
