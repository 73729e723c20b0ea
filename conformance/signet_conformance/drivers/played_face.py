"""Plays a recording of a real program again with the host of its face, and notes the events that the host fires."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from signet_conformance.children.environment import clean_environment
from signet_conformance.children.temporary import temporary_folder
from signet_conformance.drivers.hosts.observing import OBSERVERS, Events, write_order
from signet_conformance.drivers.launch import launch
from signet_conformance.targets import Target, load
from signet_conformance.targets.drift import hooks_observed
from signet_conformance.targets.face import HostFace
from signet_conformance.targets.program import find_program_profile
from signet_conformance.targets.program_document import Observer
from signet_conformance.trace import Trace
from signet_conformance.trace.marks import ObservedMark, SkippedMark, StepMark, StepName, marks_of

_STEP_S = 60.0
_WRITE_ARGUMENTS = {"action": "add", "content": "The deploys move to Thursdays."}
_NOWHERE = "http://127.0.0.1:9"
"""In place of the daemon's address: the observing plugin calls no daemon."""


def play_steps(face: HostFace, trace: Trace) -> Sequence[ObservedMark]:
    """The events that the host of a face fires in the steps of a recording, in their order.

    A step that the real program skipped is left out. Raises TargetError when the machine lacks what runs the host.
    """
    observer = find_program_profile(face.data.harness).profile.observer
    if observer is None:
        return ()
    steps = _steps(trace, observer, face.data.own_tools)
    with temporary_folder("face") as home:
        target = _observing(face, home, str(OBSERVERS / observer.module))
        tools = {str(step["tool"]) for step in steps if isinstance(step.get("tool"), str)}
        own = target.profile.tools
        recorded = [(mark.event, mark.args, mark.members) for mark in hooks_observed([trace])]
        more = {"tools": sorted({own.get(tool, tool) for tool in tools}), "recorded": recorded}
        write_order(home, {**observer.model_dump(mode="json"), **more})
        events = Events(home)
        driver = launch(target, clean_environment(home, SIGNET_DAEMON_URL=_NOWHERE), str(home), _STEP_S)
        try:
            driver.hello()
            for step in steps:
                driver.perform(step, lambda _event: None)
            driver.flush()
        finally:
            driver.close()
        return [_mark(row) for row in events.new()]


def _observing(face: HostFace, root: Path, module: str) -> Target:
    """The shipped target of the harness, with the observer in place of its connector."""
    target = load(face.data.harness, root)
    profile = target.profile.model_copy(update={"face": str(face.path), "module": module})
    return dataclasses.replace(target, profile=profile)


def _steps(trace: Trace, observer: Observer, own_tools: Collection[str]) -> Sequence[Mapping[str, Any]]:
    """The steps of a recording as messages to a driver, as the program performed them, without skipped ones."""
    skipped = {mark.index for mark in marks_of(trace, SkippedMark)}
    steps: list[dict[str, Any]] = []
    opened: dict[str | None, dict[str, Any]] = {}
    performed_as: Mapping[Any, str | None] = observer.performed_as
    for mark in marks_of(trace, StepMark):
        kind = performed_as.get(mark.step, mark.step)
        if kind is not None and mark.index not in skipped:
            # The arguments of a real program's own tool are not recorded.
            given = {"arguments": _WRITE_ARGUMENTS} if mark.data.get("tool") in own_tools else {}
            step = {**given, **{name: value for name, value in mark.data.items() if name != "index"}, "step": kind}
            if kind == StepName.START and observer.starts_with_first_words:
                opened[mark.session] = step
                continue
            first = opened.pop(mark.session, None)
            steps += [] if first is None else [first]
            if first is None or kind != StepName.CLEAR:
                steps.append(step)
        elif not mark.other.get("more"):
            # The turn ends before the skipped step, so the step before it is the last one.
            of_session = [step for step in steps if step.get("session") == mark.session]
            if of_session:
                of_session[-1].pop("more", None)
    return steps


def _mark(row: Mapping[str, Any]) -> ObservedMark:
    return ObservedMark(event=row["event"], args=tuple(row["args"]), members=tuple(row["members"]), cwd=row["cwd"])
