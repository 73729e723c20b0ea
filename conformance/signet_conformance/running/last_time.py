"""What earlier runs of a target showed: for each requirement the scenarios that breached it when last performed.

Kept in the user's cache. Runs for few requirements perform those scenarios first; nothing else depends on it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Self

import msgspec

from signet_conformance.errors import SignetConformanceError
from signet_conformance.files import write_whole
from signet_conformance.finding import BREACHES, Verdict
from signet_conformance.outcome.conclusion import Conclusion
from signet_conformance.reports.ending import scenario_of
from signet_conformance.scenarios.scenario import Scenario, read_scenarios
from signet_conformance.targets import Target

_MOST_TARGETS = 100
"""Targets that are remembered; the longest unused is forgotten first."""


class _Shown(msgspec.Struct):
    scenarios: dict[str, list[str]] = msgspec.field(default_factory=dict)
    """Requirement to the names of scripted scenarios."""
    files: dict[str, str] = msgspec.field(default_factory=dict)
    """Requirement to the file of a generated session."""


class LastTime:
    """The memory of one target, in a file. A file that cannot be read or written is as good as none."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._shown = _Shown()
        with contextlib.suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError):
            self._shown = msgspec.json.decode(path.read_bytes(), type=_Shown)

    @classmethod
    def of(cls, target: Target) -> Self:
        """Return the memory of a target, by the place of its settings, its name and its face."""
        real = "" if target.real is None else f"{target.real.program.name} {target.real.release}"
        key = "\0".join((str(target.folder.resolve()), target.name, target.face_name, real))
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return cls(cache / "signet-conformance" / "shown" / f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.json")

    def breached(self, requirements: Iterable[str]) -> Mapping[str, Sequence[str]]:
        """Return, for each of these requirements that was breached, the names of the scenarios that showed it."""
        return {name: self._shown.scenarios[name] for name in requirements if name in self._shown.scenarios}

    def saved(self, requirements: Iterable[str]) -> Sequence[Scenario]:
        """Return the generated sessions that breached one of these requirements, as far as their files are there."""
        scenarios: dict[str, Scenario] = {}
        for name in requirements:
            with contextlib.suppress(SignetConformanceError, OSError):
                if name in self._shown.files:
                    scenarios.update((each.name, each) for each in read_scenarios(Path(self._shown.files[name])))
        return list(scenarios.values())

    def note(self, conclusion: Conclusion) -> None:
        """Take in what a run showed. Scenarios that it did not perform stay as they were."""
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
