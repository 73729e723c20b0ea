"""Which scenarios a run performs, about how long each takes, and which few show known breaches again.

The breaches of earlier runs of a target are kept in the user's cache: for each requirement the scenarios that breached
it when last performed. Runs for selected requirements perform those first; nothing else depends on it.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Self

import msgspec

from signet_conformance.drivers.installing import has_installer
from signet_conformance.errors import SignetConformanceError
from signet_conformance.files import write_whole
from signet_conformance.finding import BREACHES, Verdict
from signet_conformance.outcome.conclusion import Conclusion
from signet_conformance.reports.ending import scenario_of
from signet_conformance.running.request import DrivenRequest
from signet_conformance.running.workers import RunWorkers
from signet_conformance.scenarios.scenario import (
    BYPASS,
    Scenario,
    deciding,
    installed,
    read_scenarios,
    real,
    remembered,
    scripted,
    with_each_bypass,
)
from signet_conformance.scenarios.steps import SwitchFaultOn, SwitchFaultsOff
from signet_conformance.targets import Target
from signet_conformance.trace.fault_kinds import SLOW

_STEP_S = 0.05
_SOME_BOUND_S = 1.0
"""For a step without a declared bound."""
_HIDDEN_S = 5.0
"""About how long the other scenarios of a run take: shorter waits end before them."""


def scenarios_of(request: DrivenRequest, workers: RunWorkers) -> Sequence[Scenario]:
    """Return the scenarios of a run: those of its files, or the scripted ones that can decide the requirements."""
    return workers.usable(deciding(request.scenarios or _usual(request.target), request.options.only))


def _usual(target: Target) -> Sequence[Scenario]:
    every = with_each_bypass(scripted(), target.profile.bypass_env or {BYPASS: "1"})
    if target.real is None:
        return (*every, *installed()) if has_installer(target) else every
    return (*real(), *remembered(), *(every if target.every_scenario else ()))


def cost_s(scenario: Scenario, target: Target) -> float:
    """Return about how many seconds a scenario takes."""
    return _STEP_S * (len(scenario.steps) + 1) + waiting_s(scenario, target)


def waiting_s(scenario: Scenario, target: Target) -> float:
    """Return how many seconds a scenario waits for answers that a fault delays: the bounds of its steps."""
    waits_s, slow = 0.0, False
    for step in scenario.steps:
        if isinstance(step, SwitchFaultOn):
            slow = step.fault["kind"] in SLOW
        elif isinstance(step, SwitchFaultsOff):
            slow = False
        elif slow:
            waits_s += target.declared.bounds_s.get(step.step, _SOME_BOUND_S)
    return waits_s


def waits_at_once(waits_s: Iterable[float]) -> int:
    """Return how many waits must run in parallel; short ones run one after another beside the other scenarios."""
    return math.ceil(sum(min(wait_s, _HIDDEN_S) for wait_s in waits_s) / _HIDDEN_S)


def fewest_showing(
    shown: Mapping[str, Collection[str]], scenarios: Sequence[Scenario], cost: Callable[[Scenario], float]
) -> Sequence[Scenario]:
    """Choose few and cheap scenarios that show every requirement again.

    `shown` is requirement to the names of the scenarios that breached it; one that none of `scenarios` breached is
    left out.
    """
    names = {scenario.name for scenario in scenarios}
    missing = {requirement for requirement, where in shown.items() if not names.isdisjoint(where)}
    chosen: list[Scenario] = []
    while missing:
        worth = {
            each.name: sum(each.name in shown[requirement] for requirement in missing) / cost(each)
            for each in scenarios
        }
        chosen.append(max(scenarios, key=lambda each: worth[each.name]))
        missing = {requirement for requirement in missing if chosen[-1].name not in shown[requirement]}
    return chosen


_MOST_TARGETS = 100
"""How many targets are remembered; the one unused for longest is forgotten first."""


class _Shown(msgspec.Struct):
    scenarios: dict[str, list[str]] = msgspec.field(default_factory=dict)
    """Requirement to the names of scripted scenarios."""
    files: dict[str, str] = msgspec.field(default_factory=dict)
    """Requirement to the file of a generated session."""


class EarlierBreaches:
    """The remembered breaches of one target, in a file. A file that cannot be read or written is ignored."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._shown = _Shown()
        with contextlib.suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError):
            self._shown = msgspec.json.decode(path.read_bytes(), type=_Shown)

    @classmethod
    def of(cls, target: Target) -> Self:
        """Return the remembered breaches of a target, by the place of its settings, its name and its face."""
        real = "" if target.real is None else f"{target.real.program.name} {target.real.release}"
        key = "\0".join((str(target.folder.resolve()), target.name, target.face_name, real))
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return cls(cache / "signet-conformance" / "shown" / f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.json")

    def breached(self, requirements: Iterable[str]) -> Mapping[str, Sequence[str]]:
        """Return, for each of these requirements that was breached, the names of the scenarios that showed it."""
        return {name: self._shown.scenarios[name] for name in requirements if name in self._shown.scenarios}

    def saved(self, requirements: Iterable[str]) -> Sequence[Scenario]:
        """Return the generated sessions that breached one of these requirements, if their files still exist."""
        scenarios: dict[str, Scenario] = {}
        for name in requirements:
            with contextlib.suppress(SignetConformanceError, OSError):
                if name in self._shown.files:
                    scenarios.update((each.name, each) for each in read_scenarios(Path(self._shown.files[name])))
        return list(scenarios.values())

    def note(self, conclusion: Conclusion) -> None:
        """Remember the breaches of a run. Those of scenarios that it did not perform stay as they were."""
        shown, generated = self._shown, conclusion.generated
        performed = {name: each.judgements for each in conclusion.judged if (name := scenario_of(each)) is not None}
        for requirement in {*shown.scenarios, *shown.files, *conclusion.judgements}:
            verdicts = {
                name: judged[requirement].verdict for name, judged in performed.items() if requirement in judged
            }
            saved = Path(shown.files.get(requirement, "")).stem
            if verdicts and (generated is not None or verdicts.get(saved, Verdict.FAIL) not in BREACHES):
                shown.files.pop(requirement, None)
            breached = [name for name, verdict in verdicts.items() if verdict in BREACHES]
            kept = [name for name in shown.scenarios.get(requirement, ()) if name not in verdicts]
            shown.scenarios[requirement] = [*breached, *kept]
        shown.scenarios = {name: where for name, where in shown.scenarios.items() if where}
        for breach in () if generated is None else generated.breaches:
            for name in (breach.requirement, *breach.also) if breach.confirmed else ():
                shown.files[name] = str(Path(breach.scenario).absolute())
        with contextlib.suppress(OSError):
            self._write()

    def _write(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(self._path, [msgspec.json.encode(self._shown)])
        others = sorted(self._path.parent.glob("*.json"), key=lambda path: path.stat().st_mtime)
        for path in others[:-_MOST_TARGETS]:
            path.unlink()
