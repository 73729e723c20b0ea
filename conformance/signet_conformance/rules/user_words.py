"""Requirements on what the user said: turns are submitted as given, and transcripts tell it as it was."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set as AbstractSet
from itertools import takewhile
from math import inf

from signet_conformance.facts import END, HEALTH, PROMPT, REDACTION, START, Call, Recording, Turn, plain, text_or_none
from signet_conformance.rules.excuses import lost_between
from signet_conformance.rules.outcome import PASS, Outcome, in_body, undecided, warn
from signet_conformance.rules.prompt import answered_before, is_in_its_turn
from signet_conformance.rules.start import ABSOLUTE
from signet_conformance.rules.tool_requests import is_tool_output
from signet_conformance.rules.transcripts import (
    SHORTEST_TEXT,
    Transcript,
    begins_a_name,
    names_a_speaker,
    transcripts_of,
    without_cut_marks,
    words_of,
)
from signet_conformance.rules.words import damage, is_said, loses_words, may_be_expanded, normal_form, text_pointer
from signet_conformance.trace.marks import StepMark, StepName

_REFUSED = (401, 403, 409)
_SLOW_PROBE_S = 0.5
"""Connectors wait one or two seconds for a probe; a machine that needs this for one may need the rest elsewhere."""


def text_is_the_current_prompt(recording: Recording) -> Iterator[Outcome]:
    """A submission holds the prompt of the turn that is about to run, as the user gave it."""
    settled: set[int] = set()
    turns = recording.timeline.turns
    for late, transcript, newer_follow in answered_before(recording):
        # Where marks tell what the user said in a step, that is the measure; that it comes late is SIG-PROMPT-003's.
        if newer_follow and not is_in_its_turn(turns, late) and not _is_what_was_said(recording, turns, late):
            settled.add(late.seq)
            if loses_words(recording, late):
                continue
            yield warn(
                late,
                transcript,
                message="a stale text: a transcript shows it answered and followed by a newer user turn",
                pointer=in_body("userMessage"),
                expected="the prompt of the turn about to run",
                received=late.text,
                fold="stale",
            )
    others = {turn.plain_text for turn in turns}
    for turn in turns:
        wanted = turn.plain_text
        answered = any(is_said(recording, call.text or "", wanted) for call in turn.prompts)
        for call in turn.prompts:
            if call.seq in settled or not plain(call.text):
                continue
            settled.add(call.seq)
            if is_said(recording, call.text or "", wanted):
                yield PASS
            elif recording.timeline.is_unmarked_sub_agent(call.key):
                yield undecided(call, message="a sub-agent's prompt, whose words no mark contains")
            elif not loses_words(recording, call):
                yield _another_text(recording, call, turn, others, beside=answered)
    rest = [p for p in recording.of(PROMPT) if p.seq not in settled]
    for call in rest:
        if _is_a_summary(recording, call, others):
            yield warn(
                call,
                message=_SUMMARY,
                pointer=text_pointer(call),
                expected="only what the user said, each in its turn",
                received=call.text,
                fold="summary",
            )
    if rest:
        why = "a prompt without a text, or outside of every turn"
        yield undecided(*rest[:20], message=why if turns else "without step marks the prompt of the turn is not known")


_SUMMARY = "the summary of a compaction, submitted as the user's prompt"


def _is_a_summary(recording: Recording, call: Call, said: AbstractSet[str]) -> bool:
    """Whether a submission holds a summary that the kit gave, and nothing that the user said."""
    text = plain(call.text)
    summaries = (each for each in _summaries(recording) if len(each) >= SHORTEST_TEXT)
    is_one = any(each in words_of(text) for each in summaries)
    return is_one and text not in said and not recording.timeline.is_unmarked_sub_agent(call.key)


def _summaries(recording: Recording) -> AbstractSet[str]:
    """The summaries of compactions that the kit gave."""
    told = (mark.other.get("summary") for mark in recording.timeline.steps)
    return {words_of(each) for each in told if isinstance(each, str)}


def _is_what_was_said(recording: Recording, turns: Sequence[Turn], call: Call) -> bool:
    """Whether a submission holds the text of the step in which it was sent."""
    return any(call in turn.prompts and is_said(recording, call.text or "", turn.plain_text) for turn in turns)


def _another_text(recording: Recording, call: Call, turn: Turn, others: set[str], *, beside: bool) -> Outcome:
    """What to say of a submission that does not hold the text of its step; `beside` another one that does."""
    text, wanted, reply = plain(call.text), turn.plain_text, plain(turn.step.reply)
    if REDACTION in text or REDACTION in wanted:
        return undecided(call, message="the text was redacted")
    if not wanted:
        return undecided(call, message="the prompt is blank: the host decides what to send instead")
    if wanted.startswith("/"):
        return undecided(call, message="the host decides what a slash command becomes")
    if text in others:
        message, fold = "the text of another turn", "stale"
    elif not text.replace(wanted, "").strip():
        message, fold = f"the prompt arrives {text.count(wanted)} times in one submission", "doubled"
    elif may_be_expanded(wanted):
        return undecided(call, message="the host decides what it makes of a file name in a prompt")
    elif wanted in text:
        channel = turn.step.other.get("channel")
        message, fold = "the prompt in the host's envelope", "envelope"
        if isinstance(channel, str):
            named = channel if channel.isalpha() else "a channel"
            message, fold = f"the prompt in the envelope of a channel ({named})", f"envelope of {named}"
    elif any(other in text for other in others if len(other) >= SHORTEST_TEXT):
        message, fold = "the text of another turn, in the host's envelope", "stale"
    elif reply and text == reply:
        message, fold = "the model's answer, submitted as a prompt", "reply"
    elif is_tool_output(recording, text, call.seq):
        message, fold = "what a tool gave back, submitted as the user's prompt", "tool output"
    elif _is_a_summary(recording, call, others):
        message, fold = _SUMMARY, "summary"
    elif beside:
        return undecided(call, message="a text that no step contains, beside the right one")
    else:
        message, fold = _how_changed(text, wanted), "changed"
    return warn(call, message=message, pointer=text_pointer(call), expected=turn.text, fold=fold)


def _how_changed(text: str, wanted: str) -> str:
    form = normal_form(text, wanted)
    if form is not None:
        return f"the prompt arrives in another Unicode normalisation form ({form})"
    return damage(text, wanted) or "the prompt does not arrive unchanged"


def every_turn_is_submitted(recording: Recording) -> Iterator[Outcome]:
    """Each user turn that takes place in a session is submitted, where nothing keeps the connector from it."""
    if PROMPT not in (recording.declared.capabilities or ()):
        return
    timeline = recording.timeline
    prompts = recording.of(PROMPT, cut=True)
    given = [(step, _prompts_in(recording, prompts, step)) for step in _prompts_given(recording)]
    any_submitted = any(_may_be_of(recording, inside, step) for step, inside in given)
    failed: set[tuple[str | None, str]] = set()
    for step, inside in given:
        text, end = plain(step.text), timeline.next_step(step)
        again = (step.session, text) in failed
        if text_or_none(step.reply) is None:
            failed.add((step.session, text))
        if timeline.was_skipped(step) or not _could_be_submitted(recording, step):
            continue
        if _may_be_of(recording, inside, step):
            yield PASS
        elif recording.may_last(_last_step(recording, step)):
            yield undecided(message=f"step {step.index}: it may still be submitted: the recording is not complete")
        elif not text or text.startswith("/") or again:
            yield undecided(message=f"step {step.index}: a turn that the host may not pass on")
        elif any(timeline.are_related(timeline.session_of(prompt.key), step.session) for prompt in inside):
            # A sub-agent's turn is told as its parent's, or the other way round.
            yield undecided(message=f"step {step.index}: submitted under the key of a related session")
        elif _may_be_of(recording, [p for p in prompts if p.seq > end and plain(p.text) == text], step):
            yield undecided(message=f"step {step.index}: its text is submitted later")
        elif not recording.calls:
            yield undecided(message=f"step {step.index}: the recording holds no request at all")
        elif (probe := _slow_probe_before(recording, step)) is not None:
            why = f"the probe before it took {probe.t1 - probe.t0:.1f} s, so the connector may have given it up"
            yield undecided(probe, message=f"step {step.index}: {why}; the machine may be too slow")
        elif timeline.was_stopped(step.seq, end):
            yield undecided(
                message=f"step {step.index}: the host stopped a handler, perhaps because the machine was busy"
            )
        elif (waited_s := _outlasted_its_bound(recording, step, end)) is not None:
            why = f"the turn took {waited_s:.1f} s, so the connector may have given up at its declared bound"
            yield undecided(message=f"step {step.index}: {why}; the machine may be too slow")
        elif not any_submitted:
            yield undecided(message="no prompt of the trace is submitted; only a whole run can judge that")
        else:
            yield _never_submitted(recording, inside, step, end)


def _outlasted_its_bound(recording: Recording, step: StepMark, end: float) -> float | None:
    """The seconds of a turn that took longer than the connector waits for its start or its prompt; else None."""
    declared = recording.declared.bounds_s
    bounds = [declared[name] for name in (StepName.START, StepName.PROMPT) if name in declared]
    times = [mark.t for mark in recording.trace.marks if step.seq <= mark.seq <= end]
    took_s = times[-1] - times[0]
    return took_s if bounds and took_s >= min(bounds) else None


def _slow_probe_before(recording: Recording, step: StepMark) -> Call | None:
    """The last call before a step, if it is a probe that was answered late though no fault was on; else None."""
    before = next((call for call in reversed(recording.calls) if call.seq < step.seq), None)
    if before is None or before.operation != HEALTH or before.fault is not None:
        return None
    return before if before.t1 - before.t0 >= _SLOW_PROBE_S else None


def turns_to_submit(recording: Recording) -> int:
    """The number of turns in which the user said something that nothing but the driver kept from being submitted."""
    told = ((step, plain(step.text)) for step in _prompts_given(recording))
    return sum(_could_be_submitted(recording, step) for step, text in told if text and not text.startswith("/"))


def _could_be_submitted(recording: Recording, step: StepMark) -> bool:
    """Whether the daemon was there in a turn, and nothing kept its session from being started."""
    timeline = recording.timeline
    disturbed = timeline.switches.any_between(step.seq, timeline.end_of(_last_step(recording, step)))
    spoilt = any(call.fault is not None for call in timeline.calls_in(step))
    return not disturbed and not spoilt and _could_start(recording, step)


def _never_submitted(recording: Recording, inside: Sequence[Call], step: StepMark, end: float) -> Outcome:
    """What to say of a turn that no prompt of its session tells; one of another session may hold its text."""
    expected = f"user-prompt-submit with {(step.text or '')[:200]!r}"
    elsewhere = next((prompt for prompt in inside if plain(prompt.text) == plain(step.text)), None)
    if elsewhere is not None:
        if not any(recording.timeline.session_of(start.key) == step.session for start in recording.of(START, cut=True)):
            # Of which session a key is shows where it was started: this one may have been started late, in a step of
            # another, or have the key of another (SIG-SESS-001).
            return undecided(elsewhere, message=f"step {step.index}: no start shows the key of its session")
        return warn(
            elsewhere,
            message=f"step {step.index}: the user's turn is submitted under the key of another session",
            pointer=in_body("sessionKey"),
            expected=f"{expected} in session {step.session}",
            received=elsewhere.key,
            fold="another session",
        )
    message = f"step {step.index}: the user's turn is never submitted"
    before = [call for call in recording.calls if call.seq < end]
    return warn(*before[-1:], message=message, expected=expected, fold="never submitted")


def _prompts_given(recording: Recording) -> Sequence[StepMark]:
    return [step for step in recording.timeline.steps if step.step == StepName.PROMPT]


def _prompts_in(recording: Recording, prompts: Sequence[Call], step: StepMark) -> Sequence[Call]:
    """The prompts that were sent in a step, cut ones among them."""
    until = recording.timeline.next_step(step)
    return [prompt for prompt in prompts if step.seq < prompt.seq < until]


def _may_be_of(recording: Recording, prompts: Sequence[Call], step: StepMark) -> bool:
    """Whether one of some prompts may be of the session of a step."""
    return any(recording.timeline.session_of(prompt.key) in (None, step.session) for prompt in prompts)


def _last_step(recording: Recording, step: StepMark) -> StepMark:
    """The last step of the turn of a prompt: a connector may submit it once the model's tools are done."""
    own = (mark for mark in recording.timeline.steps_of(step.session) if mark.seq > step.seq)
    return [step, *takewhile(lambda mark: mark.step == StepName.TOOL, own)][-1]


def _could_start(recording: Recording, step: StepMark) -> bool:
    """Whether nothing kept the session of a step from being started, as far as its latest start shows."""
    timeline = recording.timeline
    before = (call for call in recording.of(START, cut=True) if call.seq < step.seq)
    starts = [call for call in before if timeline.session_of(call.key) == step.session]
    opened = timeline.last_opening(step)
    if not starts:
        return not any(timeline.was_disturbed_in(mark) for mark in timeline.openings(step))
    if opened is not None and starts[-1].seq <= opened[0]:
        # Opened again, and not started: a request that was refused before may not come a second time (SIG-HTTP-010).
        # Nor may one have been possible, as nothing answered when it was opened.
        refused = any(call.status in _REFUSED for call in starts)
        return starts[-1].accepted and not refused and not timeline.switches.any_between(*opened)
    return starts[-1].accepted


_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_SAYS = (StepName.PROMPT, StepName.SESSIONLESS_PROMPT)


def user_turns_are_the_users(recording: Recording) -> Iterator[Outcome]:
    """Turns that a transcript tells as the user's are words that the user said since the last clear."""
    timeline = recording.timeline
    for transcript in transcripts_of(recording) if timeline.steps else ():
        call, session = transcript.call, timeline.session_of(transcript.call.key)
        if call.operation != END or session is None or timeline.is_unmarked_sub_agent(call.key):
            continue
        told = [words for role, text in transcript.turns if role == "user" and (words := words_of(text))]
        said = _user_marks(recording, session, call)
        if told and said:
            yield from _judge(recording, transcript, session, told, said)
        elif said and call.body_text("transcript") is None and call.body.get("reason") != "clear":
            yield from _judge_path(call)


def _judge_path(call: Call) -> Iterator[Outcome]:
    """The breach of a path at which the daemon finds no file, wherever it runs."""
    path = call.body_text("transcriptPath")
    if path is None or ABSOLUTE.match(path):
        return
    kind = "a URI" if _URI.match(path) else "not absolute"
    yield warn(
        call,
        message=f"transcriptPath is {kind}: the daemon finds no file there and gets nothing of the session",
        pointer=in_body("transcriptPath"),
        expected="the absolute path of a file, or the transcript itself",
        fold="no path",
    )


def _user_marks(recording: Recording, session: str, call: Call) -> Sequence[StepMark]:
    """The marks of what the user said in a session, or in one that belongs to it, before a call."""
    said = (mark for mark in recording.timeline.steps if mark.seq < call.seq and mark.step in _SAYS)
    own = (mark for mark in said if recording.timeline.are_related(mark.session, session))
    return [mark for mark in own if words_of(mark.text)]


def _judge(
    recording: Recording, transcript: Transcript, session: str, told: Sequence[str], said: Sequence[StepMark]
) -> Iterator[Outcome]:
    call = transcript.call
    cleared = _last_clear(recording, session, call)
    now = {words_of(mark.text) for mark in said if mark.seq > cleared or mark.session != session}
    before = {words_of(mark.text) for mark in said} - now
    # A host may keep each line of a prompt as a turn of its own.
    lines, former_lines = _lines_of(said, now), _lines_of(said, before)
    unsaid = [words for words in told if words not in lines and not _is_said(words, now)]
    strange = next((words for words in unsaid if REDACTION not in words), None)
    if strange is None:
        yield PASS
        return
    if any(REDACTION in words for words in now):
        yield undecided(call, message="the conversation contains a secret, which the connector may have removed")
        return
    if not _is_json(call) and _may_be_quoted(recording):
        yield undecided(call, message="the conversation contains a line that looks like the beginning of a turn")
        return
    message, fold = _kind(recording, call, strange, now, before | former_lines)
    if fold in ("not said", "envelope") and len(set(unsaid)) <= _expanded(recording, told, said, now):
        yield undecided(call, message="the host decides what it makes of a command or a file name")
        return
    if fold == "cleared" and _may_have_been_used(recording, call, session, cleared):
        # The daemon keeps nothing of an end that says clear, and one transcript a key.
        yield undecided(
            call, message="the key is the same before and after the clear, so earlier turns belong to it too"
        )
        return
    yield warn(
        call,
        message=f"a user turn of the transcript is {message}",
        pointer=in_body("transcript"),
        expected="only what the user said in this session since the last clear",
        received=strange[:400],
        fold=fold,
    )


def _lines_of(said: Sequence[StepMark], texts: AbstractSet[str]) -> set[str]:
    """The lines of some of the texts that the user said."""
    return {words_of(line) for mark in said if words_of(mark.text) in texts for line in plain(mark.text).split("\n")}


def _expanded(recording: Recording, told: Sequence[str], said: Sequence[StepMark], now: AbstractSet[str]) -> int:
    """The number of commands and prompts with file names that a transcript lacks: a host may have expanded them."""
    given = {words_of(mark.text) for mark in said if not recording.timeline.was_skipped(mark)} & now
    return len({words for words in given if may_be_expanded(words)} - set(told))


def _may_have_been_used(recording: Recording, call: Call, session: str, cleared: int) -> bool:
    """Whether hooks of a call's key came before a clear, or were sent then to nobody who listened."""
    opened = recording.timeline.steps_of(session, cleared)[0].seq
    is_seen = recording.hooks_of[str(call.key)][0].seq < cleared
    return is_seen or lost_between(recording, opened, cleared, call.key) is not None


def _last_clear(recording: Recording, session: str, call: Call) -> int:
    """The number of the clear after which the session began that an end tells; -1 where it was not cleared."""
    asking = recording.timeline.asked_by(call)
    until = inf if asking is None else asking.seq + (asking.step != StepName.CLEAR)
    clears = recording.timeline.clears_of(session, until)
    return clears[-1].seq if clears else -1


def _is_said(words: str, said: AbstractSet[str]) -> bool:
    """Whether words are what was said, the beginning of it, or several such texts one after the other."""
    beginning = without_cut_marks(words)
    if any(words == each or (len(beginning) >= SHORTEST_TEXT and each.startswith(beginning)) for each in said):
        return True
    if beginning != words and any(
        beginning.startswith(each) and begins_a_name(beginning.removeprefix(each)) for each in said
    ):
        return True
    rest = words
    for each in sorted(said, key=len, reverse=True):
        rest = rest.replace(each, "") if len(each) >= SHORTEST_TEXT else rest
    return not rest.strip()


def _kind(recording: Recording, call: Call, words: str, now: set[str], before: set[str]) -> tuple[str, str]:
    """What words that the user did not say are, and the code of it."""
    timeline = recording.timeline
    if _is_said(words, before):
        return "what was said before the user cleared the context", "cleared"
    others = {words_of(mark.text) for mark in timeline.steps if mark.seq < call.seq and mark.step in _SAYS}
    if words in others:
        return "what was said in another session", "another session"
    if any(each and each in words for each in _summaries(recording)):
        return "the summary of a compaction", "summary"
    if any(each in words for each in now if len(each) >= SHORTEST_TEXT):
        return "the user's words inside the host's envelope, or with injected text", "envelope"
    if words in {words_of(mark.reply) for mark in timeline.steps}:
        return "what the model said", "reply"
    # A word or two stands in many a text.
    told = (text_or_none(other.answer_value("inject")) for other in recording.calls if other.seq < call.seq)
    if len(words) >= SHORTEST_TEXT and any(text is not None and words in words_of(text) for text in told):
        return "what the daemon injected", "injected"
    if is_tool_output(recording, words, call.seq):
        return "what a tool gave back", "tool output"
    return "a text that no step of the session contains, such as a tool's result", "not said"


def _is_json(call: Call) -> bool:
    return str(call.body.get("transcript")).lstrip().startswith("{")


def _may_be_quoted(recording: Recording) -> bool:
    """Whether some marked text has a line that opens a turn where each line names its speaker."""
    texts = (each for mark in recording.timeline.steps for each in (mark.text, mark.reply, mark.other.get("summary")))
    return any(isinstance(text, str) and any(map(names_a_speaker, text.splitlines())) for text in texts)
