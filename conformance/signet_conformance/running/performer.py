"""Performs the steps of one scenario: passes them to the driver, switches faults, restarts the daemon, writes marks."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from signet_conformance.drivers.answers import handler_marks, offered_mark, printed_mark, sent_mark, tool_answer_mark
from signet_conformance.drivers.played_model import PlayedModel
from signet_conformance.drivers.process import HANDOVER, ConnectorDriver, OnEvent
from signet_conformance.files.json_values import member_of, object_in
from signet_conformance.outcome.time_spent import TimePart
from signet_conformance.running.daemon import DaemonUnderTest
from signet_conformance.running.recorder import RecorderClient, mark_command, model_command
from signet_conformance.running.stopwatch import Stopwatch
from signet_conformance.scenarios import steps
from signet_conformance.scenarios.features import ATTACHED, STOPPED, listed_steps
from signet_conformance.targets import Target
from signet_conformance.targets.face import changes_of_id, leaves_end_unreported
from signet_conformance.trace.marks import RESTART, FaultMark, KitMark, ModelMark, SessionKeyMark, SkippedMark, StepMark

BEYOND, WITHIN = "beyond", "within"
"""The delay of an answer that comes late, but within the bound."""
_NOT_SENT = ("as", "repeat", "for_late_start")
"""Members of steps that concern the kit alone."""
_BOUND_OF: Mapping[object, str] = {
    "/api/hooks/session-start": "start",
    "/api/hooks/user-prompt-submit": "prompt",
    "/api/hooks/pre-compaction": "compact",
    "/api/hooks/session-end": "end",
    "/api/*/remember": "tool",
    "/api/*/recall": "tool",
}
"""The path of a slow fault to the name of the bound that a connector declares for it."""


def _unlisted_feature(step: steps.ConnectorStep, listed: frozenset[str]) -> str | None:
    """Describe the feature of a step that this driver does not list; None if it can perform the step."""
    if isinstance(step, steps.SessionlessPromptStep) and step.step not in listed:
        return "turn without a session"
    if isinstance(step, steps.WaitStep) and step.step not in listed:
        return "clock that can be moved forward"
    if isinstance(step, steps.ForkStep | steps.ReopenStep | steps.RestartHostStep) and step.step not in listed:
        return f"step {step.step}"
    if isinstance(step, steps.PromptStep) and step.attached and ATTACHED not in listed:
        return "prompt with attachments"
    stopped = isinstance(step, steps.PromptStep) and step.stopped
    return "turn that is stopped" if stopped and STOPPED not in listed else None


def turn_goes_on(planned: Sequence[steps.Step], index: int) -> bool:
    """Return True if a tool call of the same turn follows: harnesses report the end of a turn to connectors."""
    step = planned[index]
    if not isinstance(step, steps.PromptStep | steps.ToolStep):
        return False
    later = (other for other in planned[index + 1 :] if isinstance(other, steps.ConnectorStep))
    return isinstance(next((other for other in later if other.session == step.session), None), steps.ToolStep)


def is_resumed(planned: Sequence[steps.Step], index: int) -> bool:
    """Return True if the session that ends with this step is resumed later."""
    step = planned[index]
    return isinstance(step, steps.EndStep) and any(
        isinstance(later, steps.ResumeStep) and later.session == step.session for later in planned[index + 1 :]
    )


class Faults:
    """The faults of one scenario, at the recorder.

    A fault that is meant for a start, and that no request has met when its step switches it off, is switched on again
    for the next turn of each session that opened meanwhile: a connector that starts a session at its first prompt meets
    it there. It goes off for good once a request has met it, or when that turn is over.
    """

    def __init__(self, recorder: RecorderClient, specify: Callable[[steps.SwitchFaultOn], Mapping[str, Any]]) -> None:
        self._recorder = recorder
        self._specify = specify
        self._fault: steps.SwitchFaultOn | None = None
        self._is_on = False
        self._opened: set[str] = set()
        """The sessions that opened under the fault and have had no turn since."""
        self._turn_of: str | None = None
        """The session for whose turn it is on again."""

    def switch_on(self, step: steps.SwitchFaultOn) -> None:
        """Begin a fault. One that still waits for a turn is forgotten."""
        self._end_turn()
        self._fault, self._is_on, self._opened = step, True, set()
        self._ask_for(step, step.count)

    def switch_off(self) -> None:
        """End the fault, or let it wait for the turns of the sessions that opened under it."""
        self._end_turn()
        unmet = self._ask_off()
        self._is_on = False
        if self._fault is not None and not (self._fault.is_for_start and unmet):
            self._fault = None

    def waits_for(self, session: str) -> bool:
        """Whether a fault waits for the next turn of a session."""
        return self._fault is not None and not self._is_on and session in self._opened

    def begin(self, step: steps.ConnectorStep) -> None:
        """Prepare for a step of the connector."""
        if self._turn_of not in (None, step.session):
            self._end_turn()
        if self._fault is None:
            return
        if self._is_on and isinstance(step, steps.StartStep | steps.ResumeStep | steps.ClearStep):
            self._opened.add(step.session)
        elif not self._is_on and isinstance(step, steps.EndStep | steps.CloseStep):
            self._opened.discard(step.session)
        elif isinstance(step, steps.PromptStep) and self.waits_for(step.session):
            self._opened.discard(step.session)
            self._turn_of = step.session
            self._ask_for(self._fault, self._fault.count)

    def end(self, *, turn_goes_on: bool) -> None:
        """End a step of the connector."""
        if not turn_goes_on:
            self._end_turn()

    def _end_turn(self) -> None:
        if self._turn_of is None:
            return
        self._turn_of = None
        if not self._ask_off():
            self._fault = None

    def _ask_for(self, step: steps.SwitchFaultOn, count: int | None) -> None:
        self._recorder.ask({"op": "fault", "fault": self._specify(step), "match": step.match, "count": count})

    def _ask_off(self) -> bool:
        """Switch the fault off. Return True if no request had met it.

        Wait first for an answer that is delayed within the bound: a connector may ask in the background of a step.
        """
        if self._fault is not None and self._fault.fault.get("delay_s") == WITHIN:
            self._recorder.wait_until_idle(self._specify(self._fault)["delay_s"] + 1.0)
        (answer,) = self._recorder.ask({"op": "fault_off", "id": None})
        return bool(answer["unmet"])


class _StepMarker:
    """Writes the mark of a step as soon as the driver reports what the host is about to hand to the connector."""

    def __init__(self, recorder: RecorderClient, index: int, message: Mapping[str, Any], others: OnEvent) -> None:
        self._recorder = recorder
        self._others = others
        self._step = message["step"]
        self._members = {name: value for name, value in message.items() if name not in ("step", "arguments")}
        self._index = index
        self._is_marked = False

    def on_event(self, event: Mapping[str, Any]) -> None:
        """Handle an event of the driver."""
        if event.get("event") == HANDOVER:
            self.mark(event)
        else:
            self._others(event)

    def mark(self, event: Mapping[str, Any] | None = None) -> None:
        """Write the mark, once."""
        if self._is_marked:
            return
        self._is_marked = True
        kinds: Mapping[str, type] = {"folder": str, "arguments": dict}
        handed_over = {name: event[name] for name, kind in kinds.items() if event and isinstance(event.get(name), kind)}
        self._recorder.mark(StepMark(index=self._index, step=self._step, other={**self._members, **handed_over}))


@dataclass(kw_only=True)
class StepPerformer:
    """One scenario in progress, with the results that later steps refer to."""

    recorder: RecorderClient
    daemon: DaemonUnderTest
    target: Target
    driver: ConnectorDriver
    apart: str
    """The suffix of the names of its sessions and projects."""
    on_greeting: Callable[[Mapping[str, Any]], None]
    """Called with what an event of a step says about the connector."""
    stopwatch: Stopwatch
    model: PlayedModel | None
    took_s: list[float] = field(default_factory=list)
    """The seconds that each marked step took."""
    listed_steps: frozenset[str] | None = None
    """The steps that the driver lists in its answer to hello."""
    _results: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    _keys: dict[str, str] = field(default_factory=dict)
    _knows_offered: bool = False
    _timeouts_s: dict[str, float] = field(default_factory=dict)
    """The seconds that installed settings give the hooks of a step."""

    @cached_property
    def _faults(self) -> Faults:
        return Faults(self.recorder, self._specify_fault)

    def note_about(self, about: Mapping[str, Any]) -> None:
        """Note the driver's description of itself: the steps that it lists, the timeouts that were installed."""
        self.listed_steps = listed_steps(about) or self.listed_steps
        for name, seconds in object_in(about.get("timeouts_s")).items():
            if isinstance(seconds, int | float) and not isinstance(seconds, bool) and seconds > 0:
                self._timeouts_s[str(name)] = float(seconds)

    def step(self, index: int, step: steps.Step, hints: Mapping[str, bool]) -> None:
        """Perform one step, after its mark. `hints`: `more`, the turn goes on; `resumed`, the session will be."""
        if isinstance(step, steps.PromptStep) and step.for_late_start and not self._faults.waits_for(step.session):
            return
        if isinstance(step, steps.ConnectorStep):
            self._faults.begin(step)
            self._connector_step(index, step, hints)
            self._faults.end(turn_goes_on=hints.get("more", False))
        elif isinstance(step, steps.SwitchFaultOn):
            if not self._exceeds_undeclared_bound(step):
                self._faults.switch_on(step)
        elif isinstance(step, steps.SwitchFaultsOff):
            self._faults.switch_off()
        elif isinstance(step, steps.RestartDaemon):
            self.recorder.mark(FaultMark(kind=RESTART, on=True))
            with self.stopwatch.on(TimePart.DAEMON_RESTART):
                self.daemon.restart(claims_expire=step.claims_expire)
            self.recorder.mark(FaultMark(kind=RESTART, on=False))

    def _connector_step(self, index: int, step: steps.ConnectorStep, hints: Mapping[str, bool]) -> None:
        if isinstance(step, steps.CloseStep) and step.step not in (self.listed_steps or ()):
            # If a window cannot be closed without ending the program, the user ends the session.
            step = steps.EndStep(session=step.session)
        message = {**self._message_for(step), **hints}
        step_mark = _StepMarker(self.recorder, index, message, self._on_event)
        if not isinstance(step, steps.StartStep | steps.ResumeStep | steps.RestartHostStep | steps.ToolStep):
            step_mark.mark()
        if (unlisted := _unlisted_feature(step, self.listed_steps or frozenset())) is not None:
            self.recorder.mark(SkippedMark(index=index, reason=f"the driver lists no {unlisted}"))
            self.took_s.append(0.0)
            return
        if self.model is not None:
            self.model.begin(message)
        began = time.perf_counter()
        try:
            with self.stopwatch.on(TimePart.CONNECTOR):
                result = self.driver.perform(message, step_mark.on_event)
        finally:
            step_mark.mark()
            self.took_s.append(time.perf_counter() - began)
        handler_problems = handler_marks(index, result, self.target.declared.bounds_s.get(step.step))
        offered = None if self._knows_offered else offered_mark(result)
        self._knows_offered = self._knows_offered or offered is not None
        tool_answer = tool_answer_mark(index, step.tool, result) if isinstance(step, steps.ToolStep) else None
        records = filter(None, (sent_mark(index, result), printed_mark(index, result), tool_answer, offered))
        key_mark = self._key_mark(step, result.get("key"))
        model_calls = [] if self.model is None else [model_command(each) for each in self.model.end(result)]
        self.recorder.ask(*model_calls, *map(mark_command, (*handler_problems, *records, *key_mark)))
        if "skipped" in result:
            self.recorder.mark(SkippedMark(index=index, reason=result["skipped"]))
        if step.as_ is not None:
            content = result.get("content")
            self._results[step.as_] = object_in(content)

    def _key_mark(self, step: steps.ConnectorStep, key: object) -> list[KitMark]:
        before = self._keys.get(step.session)
        if not isinstance(key, str) or before == key:
            return []
        self._keys[step.session] = key
        told_by = None if before is None else changes_of_id(self.target, step.step)
        untold = before is not None and leaves_end_unreported(self.target, step.step)
        session = f"{step.session}{self.apart}"
        return [SessionKeyMark(session=session, key=key, told_by=told_by, end_untold=untold)]

    def _on_event(self, event: Mapping[str, Any]) -> None:
        if event.get("event") == "model":
            model_calls = [] if self.model is None else [model_command(each) for each in self.model.asks(event)]
            self.recorder.ask(mark_command(ModelMark(session=event.get("session"))), *model_calls)
        elif event.get("event") == "hello":
            about = object_in(event.get("about"))
            self.note_about(about)
            self.on_greeting(about)

    def _exceeds_undeclared_bound(self, step: steps.SwitchFaultOn) -> bool:
        """Whether a fault exceeds the bound of a tool, compaction or end, and the target declares no such bound."""
        bound = _BOUND_OF.get((step.match or {}).get("path"), "start")
        undeclared = bound not in (*self.target.declared.bounds_s, "start", "prompt")
        return undeclared and step.fault.get("delay_s") == BEYOND

    def _specify_fault(self, step: steps.SwitchFaultOn) -> Mapping[str, Any]:
        """Return the fault with its delay in seconds."""
        bounds_s = self.target.declared.bounds_s
        step_name = _BOUND_OF.get((step.match or {}).get("path"), "")
        bound_s = bounds_s.get(step_name, max(bounds_s.values(), default=15.0))
        if step.fault.get("delay_s") == BEYOND:
            # Beyond the bound and its grace: only a connector that gives up in time is unharmed.
            return {**step.fault, "delay_s": bound_s + 2.0}
        if step.fault.get("delay_s") == WITHIN:
            # Half of the declared bound, or of the timeout in the installed settings if that is shorter.
            return {**step.fault, "delay_s": min(bound_s, self._timeouts_s.get(step_name, bound_s)) / 2}
        return step.fault

    def _message_for(self, step: steps.ConnectorStep) -> dict[str, Any]:
        """Return the message for a step, with agents for numbers, own names, and results in place of references."""
        message = {name: value for name, value in step.to_json().items() if name not in _NOT_SENT}
        if isinstance(step, steps.PromptStep):
            message["text"] = step.whole_text
        if isinstance(message.get("agent"), int):
            message["agent"] = self._agent(message["agent"])
        for name in ("session", "project", "parent"):
            if name in message:
                message[name] = f"{message[name]}{self.apart}"
        if "arguments" in message:
            message["arguments"] = self._resolve(message["arguments"])
        return message

    def _agent(self, number: int) -> str | None:
        agents = self.target.declared.agents
        return agents[min(number, len(agents) - 1)] if agents else None

    def _resolve(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            if set(value) == {"agent"} and isinstance(value["agent"], int):
                return self._agent(value["agent"])
            if set(value) == {"key"}:
                # If the harness gives a session no key, the model makes one up.
                return self._keys.setdefault(str(value["key"]), str(uuid.uuid4()))
            if set(value) == {"from", "pointer"}:
                parts = str(value["pointer"]).strip("/").split("/")
                result = member_of(self._results.get(value["from"], {}), *parts)
                return result if result is not None else steps.UNKNOWN_MEMORY
            return {k: self._resolve(v) for k, v in value.items()}
        if isinstance(value, list):
            return [self._resolve(v) for v in value]
        return value
