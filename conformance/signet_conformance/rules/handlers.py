"""Requirements on the connector in its host: it loads, its handlers lose no turn, it calls the given address."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from msgspec import Struct

from signet_conformance.facts import FIRST_CALLS, LIFECYCLE, OPENING, START, Call, Recording
from signet_conformance.facts.whole_run import registers_nothing
from signet_conformance.finding import Finding
from signet_conformance.rules.outcome import PASS, Outcome, breach_of, no_subject, pass_if
from signet_conformance.trace import fault_kinds, marks
from signet_conformance.trace.marks import FAILED, THROWN, HandlerMark, StepMark, StepName, Switch

_HOOK_PATHS = ("/api/hooks/user-prompt-submit", "/api/hooks/session-start")
OUTAGE = "outage"
_AFTER_THE_START = frozenset(
    {StepName.PROMPT, StepName.COMPACT, StepName.PRE_COMPACTION, StepName.COMPACTION_COMPLETE, StepName.END}
)
"""Steps for which a connector has another hook than that of the session's start."""


class LostTurn(Struct, frozen=True):
    """A step that a handler lost: the marks of both, and the calls between them, those with a fault first.

    `faults` are the kinds of fault that were on; `away` is true if one of them made the daemon unreachable or slow.
    """

    step: StepMark
    handler: HandlerMark
    faults: frozenset[str]
    away: bool
    calls: Sequence[Call]

    @property
    def loss(self) -> str:
        """Describe how the handler lost the turn, for the reader of a report."""
        if _ended_the_harness(self.step, self.handler):
            return f"{self.handler.event} ended the harness"
        if self.handler.lost is None:
            return f"{self.handler.event} blocked the user's turn"
        return f"the user's turn was lost in {self.handler.event}"


def lost_turns(recording: Recording) -> Iterator[LostTurn]:
    """The prompts that a handler lost, and the other steps in which the harness ended.

    A handler that only failed or timed out loses nothing: the harness continued without it.
    """
    for step, handler, faults in _failed_handlers(recording):
        if step is not None and (handler.lost is True or (step.step == StepName.PROMPT and handler.lost_the_turn)):
            away = any(kind == OUTAGE or kind in fault_kinds.AWAY or kind in fault_kinds.SLOW for kind in faults)
            calls = (call for call in recording.calls if step.seq < call.seq < handler.seq)
            ranked = sorted(calls, key=lambda call: (call.fault is None, -call.seq))
            yield LostTurn(step, handler, faults, away, ranked)


def survived_clears(recording: Recording, session: str, before: float) -> Sequence[StepMark]:
    """The clears of a session before a number, without those in which the harness ended, perhaps before clearing."""
    lost = {turn.step.index for turn in lost_turns(recording)}
    return [mark for mark in recording.timeline.clears_of(session, before) if mark.index not in lost]


def _failed_handlers(recording: Recording) -> Iterator[tuple[StepMark | None, HandlerMark, frozenset[str]]]:
    """The handlers that failed, with their step and the kinds of fault that were on; at most one for a lost step."""
    lost: set[int] = set()
    for step, handler in recording.timeline.handlers:
        if handler.lost_the_turn:
            since = recording.timeline.step_at(handler.seq)
            number = -1 if since is None else since.seq
            if number in lost:
                continue
            lost.add(number)
        # A fault for one request ends before the handler does, so the whole step counts.
        switched = recording.timeline.switches.on_between(handler.seq if step is None else step.seq, handler.seq)
        on = frozenset(map(_fault_of_a_turn, switched)) - {""}
        yield step, handler, on | _faults_of_step(recording, step, handler)


def _faults_of_step(recording: Recording, step: StepMark | None, handler: HandlerMark) -> frozenset[str]:
    """The faults of any calls in a step; none for a prompt, for which the marks suffice."""
    if step is None or step.step == StepName.PROMPT:
        return frozenset()
    return frozenset(call.fault for call in _calls_of(recording, step, handler) if call.fault is not None)


def _fault_of_a_turn(mark: Switch) -> str:
    """The kind of a fault or outage that concerns starts or prompts; empty for any other."""
    if not isinstance(mark, marks.FaultMark):
        return OUTAGE if isinstance(mark, marks.OutageMark) else ""
    path = (mark.match or {}).get("path")
    if path is not None and not any(fnmatchcase(hook, str(path)) for hook in _HOOK_PATHS):
        return ""
    return OUTAGE if mark.is_restart else str(mark.kind)


def connector_loads(recording: Recording) -> Iterator[Outcome]:
    """The connector loads, and no handler takes a turn away."""
    for loaded in recording.marks(marks.LoadedMark):
        step = recording.timeline.step_at(loaded.seq)
        if step is not None and recording.timeline.was_disturbed_in(step):
            continue  # a memory server starts with its session, and may end because no daemon answers
        host = marks.name_host(loaded)
        words = f": {loaded.words}" if loaded.words else ""
        yield pass_if(loaded.ok is not False) or breach_of(
            "SIG-LOAD-001", "not loaded", received=loaded.words, host=host, words=words, recording=recording
        )
    yield from filter(None, (_empty_registration(recording), _dead_hooks(recording)))
    for step, handler, faults in _failed_handlers(recording):
        if handler.lost_the_turn:
            # SIG-FAIL-001 and SIG-FAIL-003 judge the effects of a fault.
            if not faults:
                yield _loss_without_fault(recording, step, handler)
        elif _is_caught(handler, faults):
            what = "threw" if handler.outcome == THROWN else "failed"
            calls = _calls_of(recording, step, handler)
            yield breach_of("SIG-LOAD-001", "caught", *calls, received=handler.text, handler=handler, what=what)


def _empty_registration(recording: Recording) -> Finding | None:
    """A breach if nothing was registered with the host although the target declares what needs a handler or tool."""
    declared = recording.declared.capabilities
    registered = recording.marks(marks.RegisteredMark)
    if declared is None or FIRST_CALLS.isdisjoint(declared) or not registers_nothing(registered):
        return None
    if any(call.operation in FIRST_CALLS for call in recording.calls):
        return None
    # A connector that is switched off, or whose daemon is disturbed at that moment, may register nothing.
    switches = recording.timeline.switches
    if switches.was_bypassed or any(switches.any_at(mark.seq) for mark in registered):
        return None
    host = marks.name_host(registered[0], "the host")
    return breach_of("SIG-LOAD-001", "nothing registered", host=host, recording=recording)


def _is_caught(handler: HandlerMark, faults: frozenset[str]) -> bool:
    return handler.lost is False and (handler.outcome == THROWN or (handler.outcome == FAILED and not faults))


def _dead_hooks(recording: Recording) -> Finding | None:
    """A breach if the hooks of all prompts, compactions and ends failed without a fault and reached no daemon."""
    steps = {mark.index: mark.step for mark in recording.timeline.performed if mark.step in _AFTER_THE_START}
    if not {StepName.PROMPT, StepName.END} <= {*steps.values()} or recording.of(*LIFECYCLE - {START}, cut=True):
        return None
    if not all(start.accepted for start in recording.of(START, cut=True)):
        # The hooks of a session whose start was refused have to keep silent (SIG-HTTP-012).
        return None
    dead: dict[int | None, HandlerMark] = {}
    for step, handler, faults in _failed_handlers(recording):
        if step is not None and not faults and _is_caught(handler, faults):
            dead.setdefault(step.index, handler)
    if not steps.keys() <= dead.keys():
        return None
    events = ", ".join(dict.fromkeys(str(dead[index].event) for index in steps))
    text = next((dead[index].text for index in steps if dead[index].text), None)
    return breach_of("SIG-LOAD-001", "dead hooks", received=text, events=events)


def _loss_without_fault(recording: Recording, step: StepMark | None, handler: HandlerMark) -> Finding:
    where = "" if step is None else f"step {step.index}: "
    name = "ended the harness" if _ended_the_harness(step, handler) else "lost"
    calls = _calls_of(recording, step, handler)
    return breach_of("SIG-LOAD-001", name, *calls, received=handler.text, where=where, handler=handler)


def _ended_the_harness(step: StepMark | None, handler: HandlerMark) -> bool:
    return handler.lost is True and step is not None and step.step in OPENING | {StepName.END}


def _calls_of(recording: Recording, step: StepMark | None, handler: HandlerMark) -> tuple[Call, ...]:
    """The calls before a handler ended, the latest first, since the handler may have failed on its answer."""
    since = -1 if step is None else step.seq
    return tuple(call for call in reversed(recording.calls) if since < call.seq < handler.seq)[:20]


def nothing_goes_on_after_the_host(recording: Recording) -> Iterator[Outcome]:
    """No process of the connector keeps running after its harness has ended."""
    for mark in recording.marks(marks.LeftMark):
        after = "" if mark.after_s is None else f" {mark.after_s:g} s"
        memory = "" if mark.memory_mb is None else f", with {mark.memory_mb:.0f} MB of memory"
        yield pass_if(mark.command is None) or breach_of("SIG-LOAD-004", "left", mark=mark, after=after, memory=memory)


def address_is_the_given_one(recording: Recording) -> Iterator[Outcome]:
    """The connector calls the daemon address that it was given."""
    strays = recording.marks(marks.StrayMark)
    for mark in strays[:20]:
        name = "stray with its token" if mark.token else "stray"
        request = f"{mark.method or 'a request'} {mark.path or ''}"
        address = mark.address or "the default port"
        yield breach_of("SIG-LOAD-003", name, mark=mark, request=request, address=address)
    unheard = next(iter(recording.marks(marks.UnheardPortMark)), None)
    if unheard is not None and not strays:
        yield no_subject(
            f"requests to the default port could not be observed: {unheard.words or 'the kit did not hold it'}"
        )
    elif not strays and recording.calls and recording.marks(StepMark):
        yield from [PASS] * len(recording.calls)
