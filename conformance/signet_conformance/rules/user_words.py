"""SIG-PROMPT-010, a prompt is that of the current turn, and SIG-END-013, transcripts give the user no other words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set as AbstractSet
from math import inf

from signet_conformance.facts import END, PROMPT, REDACTION, Call, Recording, Turn, plain, text_or_none
from signet_conformance.rules.excuses import lost_between
from signet_conformance.rules.handlers import survived_clears
from signet_conformance.rules.outcome import PASS, Outcome, breach_of, undecided
from signet_conformance.rules.prompt import is_in_its_turn, prompts_answered_before
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


def text_is_the_current_prompt(recording: Recording) -> Iterator[Outcome]:
    """A submission contains the prompt of the turn that is about to run, unchanged."""
    judged: set[int] = set()
    turns = recording.timeline.turns
    for late, transcript, newer_follow in prompts_answered_before(recording):
        # If marks show what the user said in a step, they decide; SIG-PROMPT-003 judges lateness.
        if newer_follow and not is_in_its_turn(recording, late) and not _is_what_was_said(recording, late):
            judged.add(late.seq)
            if loses_words(recording, late):
                continue
            yield breach_of("SIG-PROMPT-010", "stale", late, transcript, received=late.text)
    others = {turn.plain_text for turn in turns}
    for turn in turns:
        wanted = turn.plain_text
        answered = any(is_said(recording, call.text or "", wanted) for call in turn.prompts)
        for call in turn.prompts:
            if call.seq in judged or not plain(call.text):
                continue
            judged.add(call.seq)
            if is_said(recording, call.text or "", wanted):
                yield PASS
            elif recording.timeline.is_unmarked_sub_agent(call.key):
                yield undecided(call, message="a sub-agent's prompt, whose words no mark contains")
            elif not loses_words(recording, call):
                yield _judge_another_text(recording, call, turn, others, beside=answered)
    rest = [p for p in recording.of(PROMPT) if p.seq not in judged]
    # In a large recording, each prompt's text would have to be read from its file.
    for call in rest if _summaries(recording) else ():
        if _is_a_summary(recording, call, others):
            yield breach_of("SIG-PROMPT-010", "lone summary", call, received=call.text, place=text_pointer(call))
    if rest:
        why = "a prompt without a text, or outside of every turn"
        yield undecided(*rest[:20], message=why if turns else "without step marks the prompt of the turn is not known")


def _is_a_summary(recording: Recording, call: Call, said: AbstractSet[str]) -> bool:
    """Whether a submission contains a summary from a step, and differs from the user's texts."""
    text = plain(call.text)
    has_summary = any(each in words_of(text) for each in _summaries(recording) if len(each) >= SHORTEST_TEXT)
    return has_summary and text not in said and not recording.timeline.is_unmarked_sub_agent(call.key)


def _summaries(recording: Recording) -> AbstractSet[str]:
    """The summaries of compactions, from the steps."""
    summaries = (mark.other.get("summary") for mark in recording.timeline.steps)
    return {words_of(each) for each in summaries if isinstance(each, str)}


def _is_what_was_said(recording: Recording, call: Call) -> bool:
    """Whether a submission contains the text of the step in which it was sent."""
    turn = recording.timeline.turn_of(call)
    return turn is not None and is_said(recording, call.text or "", turn.plain_text)


def _judge_another_text(recording: Recording, call: Call, turn: Turn, others: set[str], *, beside: bool) -> Outcome:
    """The outcome of a submission without the text of its step; with `beside`, another submission has that text."""
    text, wanted, reply = plain(call.text), turn.plain_text, plain(turn.step.reply)
    if REDACTION in text or REDACTION in wanted:
        return undecided(call, message="the text was redacted")
    if not wanted:
        return undecided(call, message="the prompt is blank: the host decides what to send instead")
    if wanted.startswith("/"):
        return undecided(call, message="the host decides what a slash command becomes")
    said_in = turn.step.other.get("channel")
    channel = said_in if isinstance(said_in, str) and said_in.isalpha() else "a channel"
    change = None
    if text in others:
        name = "another turn"
    elif not text.replace(wanted, "").strip():
        name = "doubled"
    elif may_be_expanded(wanted):
        return undecided(call, message="the host decides what it makes of a file name in a prompt")
    elif wanted in text:
        name = "attachment" if turn.step.other.get("attached") else "envelope"
        if isinstance(said_in, str):
            name = "envelope of a channel"
    elif any(other in text for other in others if len(other) >= SHORTEST_TEXT):
        name = "another turn in an envelope"
    elif reply and text == reply:
        name = "reply"
    elif is_tool_output(recording, text, call.seq):
        name = "tool output"
    elif _is_a_summary(recording, call, others):
        name = "summary"
    elif beside:
        return undecided(call, message="a text that no step contains, beside the right one")
    elif (change := normal_form(text, wanted)) is not None:
        name = "another form"
    elif change := damage(text, wanted):
        name = "changed"
    else:
        # A short text of another turn may stand in it by chance, so it is only mentioned.
        is_mentioned = any(other and re.search(rf"(?<!\w){re.escape(other)}(?!\w)", text) for other in others)
        name = "another text with a turn" if is_mentioned else "another text"
    place, times = text_pointer(call), text.count(wanted)
    return breach_of(
        "SIG-PROMPT-010", name, call, wanted=turn.text, place=place, times=times, channel=channel, change=change
    )


_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_WITH_WORDS = (StepName.PROMPT, StepName.SESSIONLESS_PROMPT)


def user_turns_are_the_users(recording: Recording) -> Iterator[Outcome]:
    """The user turns of a transcript are words that the user said since the last clear."""
    timeline = recording.timeline
    for transcript in transcripts_of(recording) if timeline.steps else ():
        call, session = transcript.call, timeline.session_of(transcript.call.key)
        if call.operation != END or session is None or timeline.is_unmarked_sub_agent(call.key):
            continue
        sent = [words for role, text in transcript.turns if role == "user" and (words := words_of(text))]
        steps = _user_marks(recording, session, call)
        if sent and steps:
            yield _judge(recording, transcript, session, sent, steps)
        elif steps and call.body_text("transcript") is None and call.body.get("reason") != "clear":
            yield from _judge_path(call)


def _judge_path(call: Call) -> Iterator[Outcome]:
    """A breach if the daemon cannot find a file at the path, wherever it runs."""
    path = call.body_text("transcriptPath")
    if path is None or ABSOLUTE.match(path):
        return
    kind = "a URI" if _URI.match(path) else "not absolute"
    yield breach_of("SIG-END-013", "no path", call, kind=kind)


def _user_marks(recording: Recording, session: str, call: Call) -> Sequence[StepMark]:
    """The steps before a call in which the user said something in a session or a related one."""
    said = (mark for mark in recording.timeline.steps if mark.seq < call.seq and mark.step in _WITH_WORDS)
    own = (mark for mark in said if recording.timeline.are_related(mark.session, session))
    return [mark for mark in own if words_of(mark.text)]


def _judge(
    recording: Recording, transcript: Transcript, session: str, sent: Sequence[str], steps: Sequence[StepMark]
) -> Outcome:
    call = transcript.call
    cleared = _last_clear(recording, session, call)
    copied = _prompts_in_a_copy(recording, session, call)
    own = [mark for mark in steps if mark.seq not in copied]
    now = {words_of(mark.text) for mark in own if cleared is None or mark.seq > cleared or mark.session != session}
    before = {words_of(mark.text) for mark in own} - now
    # A host may store each line of a prompt as a turn.
    lines, former_lines = _lines_of(own, now), _lines_of(own, before)
    unsaid = [words for words in sent if words not in lines and not _is_said(words, now)]
    strange = next((words for words in unsaid if REDACTION not in words), None)
    if strange is None:
        return PASS
    if any(REDACTION in words for words in now):
        return undecided(call, message="the conversation contains a secret, which the connector may have removed")
    if not _is_json(call) and _may_be_quoted(recording):
        return undecided(call, message="the conversation contains a line that looks like the beginning of a turn")
    message, fold = _kind(recording, call, strange, now, before | former_lines)
    if fold in ("not said", "envelope") and len(set(unsaid)) <= _count_expanded(recording, sent, steps, now):
        return undecided(call, message="the host decides what it makes of a command or a file name")
    if fold == "cleared" and cleared is not None and _may_have_been_used(recording, call, session, cleared):
        # The daemon stores one transcript for each key, and nothing of an end with the reason clear.
        return undecided(
            call, message="the key is the same before and after the clear, so earlier turns belong to it too"
        )
    return breach_of("SIG-END-013", "not the user's", call, received=strange[:400], what=message, code=fold)


def _prompts_in_a_copy(recording: Recording, session: str, call: Call) -> AbstractSet[int]:
    """The numbers of the prompts between a fork or a clear and the return from it, all sent under another key."""
    in_copy: list[int] | None = None
    copied: set[int] = set()
    for mark in recording.timeline.steps:
        if mark.seq > call.seq or mark.session != session:
            continue
        if mark.step in (StepName.FORK, StepName.CLEAR):
            in_copy = []
        elif mark.step == StepName.REOPEN:
            copied.update(in_copy or ())
            in_copy = None
        elif in_copy is not None:
            in_copy.append(mark.seq)
    keys = {turn.step.seq: {prompt.key for prompt in turn.prompts} for turn in recording.timeline.turns}
    return {seq for seq in copied if keys.get(seq) and call.key not in keys[seq]}


def _lines_of(steps: Sequence[StepMark], texts: AbstractSet[str]) -> set[str]:
    """The lines of those of the user's texts that are in `texts`."""
    return {words_of(line) for mark in steps if words_of(mark.text) in texts for line in plain(mark.text).split("\n")}


def _count_expanded(recording: Recording, sent: Sequence[str], steps: Sequence[StepMark], now: AbstractSet[str]) -> int:
    """The number of commands and prompts with file names that a transcript lacks: a host may have expanded them."""
    given = {words_of(mark.text) for mark in steps if not recording.timeline.was_skipped(mark)} & now
    return len({words for words in given if may_be_expanded(words)} - set(sent))


def _may_have_been_used(recording: Recording, call: Call, session: str, cleared: int) -> bool:
    """Whether hooks of a call's key came before a clear, or were lost then because no daemon listened."""
    opened = recording.timeline.steps_of(session, cleared)[0].seq
    is_seen = recording.hooks_of[str(call.key)][0].seq < cleared
    return is_seen or lost_between(recording, opened, cleared, call.key) is not None


def _last_clear(recording: Recording, session: str, call: Call) -> int | None:
    """The number of the last clear of a session before the step of an end; None without one."""
    asking = recording.timeline.asked_by(call)
    until = inf if asking is None else asking.seq + (asking.step != StepName.CLEAR)
    clears = survived_clears(recording, session, until)
    return clears[-1].seq if clears else None


def _is_said(words: str, said: AbstractSet[str]) -> bool:
    """Whether words are one of the texts in `said`, its beginning, or several of them in a row."""
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
    """Describe words that the user did not say, for a message, and name their kind."""
    timeline = recording.timeline
    if _is_said(words, before):
        return "from before the user cleared the context", "cleared"
    others = {words_of(mark.text) for mark in timeline.steps if mark.seq < call.seq and mark.step in _WITH_WORDS}
    if words in others:
        return "from another session", "another session"
    if any(each and each in words for each in _summaries(recording)):
        return "the summary of a compaction", "summary"
    if any(each in words for each in now if len(each) >= SHORTEST_TEXT):
        return "the user's words inside the host's envelope, or with injected text", "envelope"
    if words in {words_of(mark.reply) for mark in timeline.steps}:
        return "the model's answer", "reply"
    # Many texts contain a given word or two.
    injects = (text_or_none(other.answer_value("inject")) for other in recording.calls if other.seq < call.seq)
    if len(words) >= SHORTEST_TEXT and any(text is not None and words in words_of(text) for text in injects):
        return "text that the daemon injected", "injected"
    if is_tool_output(recording, words, call.seq):
        return "a tool's result", "tool output"
    return "a text that no step of the session contains, such as a tool's result or the host's own prompt", "not said"


def _is_json(call: Call) -> bool:
    return str(call.body.get("transcript")).lstrip().startswith("{")


def _may_be_quoted(recording: Recording) -> bool:
    """Whether a text of a step has a line that looks like the beginning of a turn, such as `User: ...`."""
    texts = (each for mark in recording.timeline.steps for each in (mark.text, mark.reply, mark.other.get("summary")))
    return any(isinstance(text, str) and any(map(names_a_speaker, text.splitlines())) for text in texts)
