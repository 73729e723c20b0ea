"""Requirements on session-end and on what may follow it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from math import inf

from signet_conformance.facts import END, OPENING, PROMPT, START, Call, Recording, text_or_none
from signet_conformance.finding import Verdict
from signet_conformance.rules.excuses import BOUNDARY_REASONS, is_boundary
from signet_conformance.rules.fields import check_fields
from signet_conformance.rules.outcome import PASS, Outcome, breach_of, pass_if, undecided
from signet_conformance.rules.start import ABSOLUTE, is_folder, restarts_after, was_always_refused
from signet_conformance.trace.marks import StepMark, StepName


def end_names_the_started_session(recording: Recording) -> Iterator[Outcome]:
    """An end names the session that was started, by sessionKey or sessionId."""
    ends = recording.of(END)
    starts = recording.whole.of(START) if any(c.key is None for c in ends) else []
    any_started = any(c.key is not None for c in starts)
    first_keyless = min((c.seq for c in starts if c.key is None), default=None)
    for call in ends:
        if call.key is None:
            lost = recording.any_open(call.seq) and _a_start_may_be_lost(recording, call)
            if recording.timeline.is_sessionless(call):
                yield undecided(call, message="without a key, in a turn for which the harness knows no session")
            elif not lost and (prompt := _prompt_of_its_session(recording.whole, call)) is not None:
                yield breach_of("SIG-END-002", "keyless end", call, prompt, prompt=prompt)
            elif first_keyless is not None and first_keyless < call.seq:
                if any_started:
                    yield undecided(call, message="an end without a key, after a start without one")
            elif lost:
                yield undecided(call, message="an end without a key; a start without a key may have been refused")
            elif recording.any_open(call.seq):
                yield breach_of("SIG-END-002", "no key", call)
        elif recording.earlier(call):
            yield PASS
        elif recording.abandoned_since < call.seq:
            yield breach_of("SIG-END-002", "unused key", call, received=call.key)
        else:
            yield undecided(call, message="a lone end: its session may have begun before the recording")


def _prompt_of_its_session(recording: Recording, call: Call) -> Call | None:
    """The last prompt, under an open key, of the session whose step contains an end without a key.

    None without step marks, and if the session is also ended under its key, or may still be.
    """
    step = recording.timeline.step_at(call.seq)
    if step is None or step.session is None or recording.may_go_on:
        return None
    prompts = (c for c in recording.of(PROMPT) if c.seq < call.seq and recording.is_open(c.key, call.seq))
    own = [c for c in prompts if recording.timeline.session_of(c.key) == step.session]
    beside = (c.seq for c in recording.of(END) if own and c.key == own[-1].key)
    is_ended = any(step.seq < seq < recording.timeline.next_step(step) for seq in beside)
    return own[-1] if own and not is_ended else None


def _a_start_may_be_lost(recording: Recording, call: Call) -> bool:
    """Whether a step before a call that may have started a session ran while no daemon listened.

    Without step marks, whether no daemon listened for some time before the call.
    """
    steps = [mark for mark in recording.marks(StepMark) if mark.seq < call.seq]
    if not steps:
        return recording.timeline.switches.closed_between(0, call.seq)
    return any(mark.step != StepName.END and recording.timeline.was_closed_in(mark) for mark in steps)


TURNS_STORED_SINCE = "0.237"
"""From this release on the daemon stores a turn from the last words of the model."""


def _contains_its_turn(end: Call) -> bool:
    """Whether an end contains the model's last message, or is of a harness whose ends contain nothing else."""
    messages = (end.body.get(name) for name in ("lastAssistantMessage", "last_assistant_message"))
    return any(map(text_or_none, messages)) or end.body.get("harness") == "muse-code"


def transcript_is_sent(recording: Recording) -> Iterator[Outcome]:
    """An end contains a transcript or its path, unless marks show that the user said nothing."""
    for outcome in check_fields("SIG-END-003")(recording):
        if outcome is not PASS and outcome.verdict is Verdict.WARN:
            (end,) = (recording.by_seq[seq] for seq in outcome.exchanges)
            if recording.at_least(TURNS_STORED_SINCE) and _contains_its_turn(end):
                yield PASS
                continue
            if was_silent(recording, _first_of_repeats(recording, end)):
                yield undecided(end, message="no transcript; nothing was said in the session")
                continue
        yield outcome


def was_silent(recording: Recording, end: Call) -> bool:
    """Whether the user said nothing in the session that an end belongs to, since it was opened."""
    timeline, step = recording.timeline, recording.timeline.asked_by(end)
    span = timeline.host_ids.span_of(timeline.session_of(end.key), end.key) or _span_of_former_key(recording, end)
    if span is not None:
        # The session has had another id since, so the end may come in any later step.
        prompts = (mark for mark in timeline.performed if mark.step == StepName.PROMPT and mark.seq in span)
        return not any(mark.session == timeline.session_of(end.key) for mark in prompts)
    if step is None or step.session is None:
        return False
    done = [
        mark.step
        for mark in timeline.steps_of(step.session, step.seq + 1)
        if not (mark.step == StepName.PROMPT and timeline.was_skipped(mark))
    ]
    if done[-1:] == [StepName.CLEAR]:
        # The end is of the session before the clear.
        done.pop()
    opened = max((place for place, kind in enumerate(done) if kind in OPENING), default=-1)
    return StepName.PROMPT not in done[opened + 1 :]


def _span_of_former_key(recording: Recording, end: Call) -> range | None:
    """The numbers from a key's start until its session was started under another key, before an end; else None.

    A connector may derive its keys from the ids of the host.
    """
    session = recording.timeline.session_of(end.key)
    starts = [call for call in recording.whole.of(START) if call.seq < end.seq]
    own = next((call for call in reversed(starts) if call.key == end.key), None)
    if own is None or session is None:
        return None
    others = (call.seq for call in starts if call.seq > own.seq and recording.timeline.session_of(call.key) == session)
    after = next(others, None)
    return None if after is None else range(own.seq, after)


def _first_of_repeats(recording: Recording, end: Call) -> Call:
    """The first of repeated ends; a repetition may come while the user is in another session."""
    before = reversed(recording.earlier(end))
    return [end, *takewhile(lambda call: call.operation == END, before)][-1]


def working_directory_is_the_project(recording: Recording) -> Iterator[Outcome]:
    """The working directory of an end is the project that the session was started with."""
    projects: dict[str, str] = {}
    project_of_cwd: dict[str, str] = {}
    for call in recording.hooks:
        if call.operation == START and call.key is not None:
            project = call.body.get("project")
            if isinstance(project, str) and project.strip():
                projects[call.key] = project
        elif call.operation == END:
            yield _judge_cwd(recording, call, projects.get(call.key or ""), project_of_cwd)


def _judge_cwd(recording: Recording, end: Call, started: str | None, project_of_cwd: dict[str, str]) -> Outcome:
    """Judge the cwd of an end by the folder of the session, if marks name it.

    Otherwise only contradictions can be found: `started` is the project of the start, `project_of_cwd` the user's
    project for each cwd that was sent before.
    """
    cwd, timeline = end.body.get("cwd"), recording.timeline
    folder = timeline.folder_of(end) if timeline.steps else None
    if not isinstance(cwd, str) or not cwd.strip():
        return breach_of("SIG-END-004", "no cwd", end)
    if folder is not None:
        return pass_if(is_folder(cwd, folder)) or breach_of("SIG-END-004", "another folder", end, folder=folder)
    if started is not None and not (is_folder(cwd, started) if timeline.steps else cwd == started):
        # In a driven run the host may have passed on another spelling of the folder.
        return breach_of("SIG-END-004", "another cwd", end, started=started)
    if not timeline.steps:
        return PASS
    if (project := timeline.project_of(end.key)) is None:
        return undecided(end, message="no mark says in which folder the user worked")
    if started is None and ABSOLUTE.match(project) and not ABSOLUTE.match(cwd):
        return breach_of("SIG-END-004", "no absolute path", end, project=project)
    if project_of_cwd.setdefault(cwd, project) != project:
        return breach_of("SIG-END-004", "another project", end, project=project)
    return undecided(end, message="no mark says in which folder the host ran, or which folder it passed on")


def started_key_is_ended(recording: Recording) -> Iterator[Outcome]:
    """Every session key that was started is ended, and nothing uses it afterwards."""
    yield from _closed_windows(recording)
    for hooks in recording.hooks_of.values():
        start = next((c for c in hooks if c.operation == START), None)
        if start is None:
            continue
        last_end = _last_place(hooks, END)
        if last_end < 0:
            if was_always_refused(hooks):
                yield undecided(
                    start, message="every start of the key was answered 409: SIG-HTTP-012 requires silence after it"
                )
            elif _could_not_be_ended(recording, start):
                yield undecided(start, message="the driver skipped the step in which its window is closed")
            else:
                why = _describe_left_key(recording, start) or _describe_lost_end(recording, start)
                yield breach_of("SIG-END-005", "no end", start, why=why)
        else:
            further = hooks[last_end + 1 :]
            yield pass_if(not further) or breach_of(
                "SIG-END-005", "used after end", *further[:10], hooks[last_end], start, received=further[0].operation
            )


def _last_place(hooks: Sequence[Call], *operations: str) -> int:
    """The place of the last hook of some operations; -1 without one."""
    return max((place for place, call in enumerate(hooks) if call.operation in operations), default=-1)


def _describe_left_key(recording: Recording, start: Call) -> str:
    """Say that the session of a start has had another key since its host was restarted; else empty."""
    timeline = recording.timeline
    session = timeline.session_of(start.key)
    restarts = restarts_after(recording, start)
    if not restarts or len(timeline.host_ids.of(session)) > 1:
        return ""
    keys = (hooks[0] for key, hooks in recording.whole.hooks_of.items() if timeline.session_of(key) == session)
    if not any(first.seq > restarts[0].seq for first in keys):
        return ""
    return f": since its host was restarted (step {restarts[0].index}) the session continues under another key"


def _describe_lost_end(recording: Recording, start: Call) -> str:
    """Say that no daemon listened when the user ended the session of a start; else empty."""
    leaving = _steps_leaving(recording, start)
    if not leaving or not recording.timeline.was_closed_in(leaving[-1]):
        return ""
    return f": no daemon listened when the user ended it (step {leaving[-1].index}), and its end was not sent later"


def _could_not_be_ended(recording: Recording, start: Call) -> bool:
    """Whether the one step that would have ended the session of a start was skipped by the driver."""
    leaving, timeline = _steps_leaving(recording, start), recording.timeline
    return bool(leaving) and all(step.step == StepName.CLOSE and timeline.was_skipped(step) for step in leaving)


def _steps_leaving(recording: Recording, start: Call) -> Sequence[StepMark]:
    """The steps after a start in which the user closed or ended its session."""
    steps = recording.timeline.steps_of(recording.timeline.session_of(start.key))
    return [step for step in steps if step.step in (StepName.CLOSE, StepName.END) and step.seq > start.seq]


def _closed_windows(recording: Recording) -> Iterator[Outcome]:
    """A session is ended when the user closes its window, even if the program keeps running."""
    timeline = recording.timeline
    for step in timeline.steps:
        if step.step != StepName.CLOSE or timeline.was_skipped(step) or timeline.was_disturbed_in(step):
            continue
        # A connector that sends from a queue may send the end in the next step.
        following = next((each for each in timeline.steps if each.seq > step.seq), None)
        until = inf if following is None else timeline.next_step(following)
        if until == inf or timeline.was_stopped_in(step) or timeline.start_was_disturbed(step):
            continue
        own = [key for key in recording.whole.hooks_of if timeline.session_of(key) == step.session]
        for key in (key for key in own if recording.is_open(key, step.seq)):
            hooks = recording.hooks_of[key]
            is_ended = any(call.operation == END and step.seq < call.seq < until for call in hooks)
            yield pass_if(is_ended) or breach_of(
                "SIG-END-005", "closed window", next(call for call in reversed(hooks) if call.seq < step.seq), step=step
            )


def end_is_not_repeated(recording: Recording) -> Iterator[Outcome]:
    """A session is not ended twice without another hook in between."""
    for hooks in recording.hooks_of.values():
        ended: Sequence[Call] = ()
        for call in hooks:
            if call.operation != END:
                ended = ()
                continue
            yield pass_if(not ended) or breach_of("SIG-END-006", "second end", call, *ended)
            if call.accepted and not call.answer_value("skipped"):
                ended = (call,)


def nothing_but_a_turn_follows_the_last_end(recording: Recording) -> Iterator[Outcome]:
    """After the last end of a key, only a start or a prompt may use it."""
    for hooks in recording.hooks_of.values():
        last_end = _last_place(hooks, END)
        if last_end < 0:
            continue
        stray = list(takewhile(lambda call: call.operation not in (START, PROMPT), hooks[last_end + 1 :]))
        last = hooks[last_end]
        if stray and recording.may_go_on:
            yield undecided(stray[0], last, message="another end may follow: the recording is not complete")
        else:
            yield pass_if(not stray) or breach_of(
                "SIG-END-007", "used after end", *stray[:20], last, received=stray[0].operation
            )


def boundary_reason_is_given(recording: Recording) -> Iterator[Outcome]:
    """The last end of a key gives a reason that closes the session for good."""
    for hooks in recording.hooks_of.values():
        last_turn = _last_place(hooks, START, PROMPT)
        last_bounded = max((i for i, c in enumerate(hooks) if c.operation == END and is_boundary(c)), default=-1)
        for index, call in enumerate(hooks):
            if call.operation != END:
                continue
            if index < last_turn:
                if not is_boundary(call):
                    yield PASS
            elif index <= last_bounded:
                yield PASS
            elif recording.may_go_on:
                yield undecided(call, message="another turn may follow: the recording is not complete")
            else:
                yield breach_of("SIG-END-008", "no boundary reason", call, reasons=", ".join(sorted(BOUNDARY_REASONS)))
