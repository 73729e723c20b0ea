"""Chooses the scenarios that can decide a requirement: those in which its subject may occur.

Only events that the steps of a scenario cause, and no connector causes by itself, narrow the choice. Every scenario may
decide a requirement that is not listed here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from signet_conformance.scenarios.scenario import Scenario
from signet_conformance.scenarios.steps import (
    CompactionCompleteStep,
    CompactStep,
    PreCompactionStep,
    RestartDaemon,
    Step,
    SwitchFaultOn,
    ToolStep,
)


def _any(_scenario: Scenario) -> bool:
    return True


def _has_step(*kinds: type[Step]) -> Callable[[Scenario], bool]:
    return lambda scenario: any(isinstance(step, kinds) for step in scenario.steps)


def _has_bypass(scenario: Scenario) -> bool:
    return scenario.bypass is not None


def _compacts(scenario: Scenario) -> bool:
    # Under the bypass no compaction is reported.
    return not _has_bypass(scenario) and _has_step(CompactStep, PreCompactionStep, CompactionCompleteStep)(scenario)


_calls_tools = _has_step(ToolStep)
_is_disturbed = _has_step(SwitchFaultOn, RestartDaemon)

_DECIDED_WHERE: Mapping[str, Callable[[Scenario], bool]] = {
    # This one forbids compactions that the user did not ask for.
    "SIG-CMP-007": _any,
    "SIG-CMP-*": _compacts,
    # A handler may be slow by itself, in any scenario.
    "SIG-FAIL-002": _any,
    "SIG-FAIL-004": _has_bypass,
    "SIG-FAIL-*": _is_disturbed,
    "SIG-MEM-*": _calls_tools,
    "SIG-SEC-001": _calls_tools,
    "SIG-SEC-002": _calls_tools,
}
"""Requirement (an id or a glob; the first match counts) to the scenarios that can decide it."""


def deciding(scenarios: Sequence[Scenario], requirements: Iterable[str] | None) -> Sequence[Scenario]:
    """Choose the scenarios, in their order, that can decide one of some requirements; all for None.

    Where no scenario is left, all are chosen: a connector may surprise.
    """
    if requirements is None:
        return scenarios
    wanted = [_decides(requirement) for requirement in requirements]
    chosen = [scenario for scenario in scenarios if any(decides(scenario) for decides in wanted)]
    if all(map(_has_bypass, chosen)):
        # Silence under the bypass proves something only if the connector speaks without it.
        speaking = [scenario for scenario in scenarios if not _has_bypass(scenario)]
        return [*speaking[:1], *chosen] if chosen else scenarios
    return chosen


def _decides(requirement: str) -> Callable[[Scenario], bool]:
    fitting = (decides for pattern, decides in _DECIDED_WHERE.items() if fnmatchcase(requirement, pattern))
    return next(fitting, _any)
