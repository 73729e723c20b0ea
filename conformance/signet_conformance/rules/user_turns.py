"""The requirement on what a transcript tells as the user's words: what the user said in that session."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf

from signet_conformance.facts import END, Call, Recording, text_or_none
from signet_conformance.rules.conversation import words_of
from signet_conformance.rules.outcome import PASS, Outcome, in_body, undecided, warn
from signet_conformance.rules.transcripts import SHORTEST_TEXT, Transcript, names_a_speaker, transcripts_of
from signet_conformance.trace.marks import StepMark, StepName

_REDACTION = "<redacted:"
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


def _user_marks(recording: Recording, session: str, call: Call) -> Sequence[StepMark]:
    """The marks of what the user said in a session, or in one that belongs to it, before a call."""
    timeline = recording.timeline
    return [
        mark
        for mark in timeline.steps
        if mark.seq < call.seq
        and mark.step in _SAYS
        and words_of(mark.text)
        and timeline.are_related(mark.session, session)
    ]


def _judge(
    recording: Recording, transcript: Transcript, session: str, told: Sequence[str], said: Sequence[StepMark]
) -> Iterator[Outcome]:
    call = transcript.call
    cleared = _last_clear(recording, session, call)
    now = {words_of(mark.text) for mark in said if mark.seq > cleared or mark.session != session}
    before = {words_of(mark.text) for mark in said} - now
    strange = next((words for words in told if _REDACTION not in words and not _is_said(words, now)), None)
    if strange is None:
        yield PASS
        return
    if any(_REDACTION in words for words in now):
        yield undecided(call, message="what was said holds a secret, which the connector may have taken out")
        return
    if not _is_json(call) and _may_be_quoted(recording):
        yield undecided(call, message="what was said holds a line that opens a turn in a transcript of lines")
        return
    message, fold = _kind(recording, call, session, strange, now, before)
    if fold == "cleared" and recording.hooks_of[str(call.key)][0].seq < cleared:
        # The daemon keeps nothing of an end that says clear, and one transcript a key.
        yield undecided(call, message="one key before the clear and after it: what was said before has no other place")
        return
    yield warn(
        call,
        message=f"the transcript tells as the user's words {message}",
        pointer=in_body("transcript"),
        expected="what the user said in this session since the context was last cleared",
        received=strange[:400],
        fold=fold,
    )


def _last_clear(recording: Recording, session: str, call: Call) -> float:
    """The number of the clear after which the session began that an end tells; -1 where it was not cleared."""
    asking = recording.timeline.of(call).asked_by
    until = inf if asking is None else asking.seq + (asking.step != StepName.CLEAR)
    clears = [mark.seq for mark in recording.timeline.steps_of(session, until) if mark.step == StepName.CLEAR]
    return clears[-1] if clears else -1


def _is_said(words: str, said: set[str]) -> bool:
    """Whether words are what was said, the beginning of it, or several such texts one after the other."""
    if any(words == each or (len(words) >= SHORTEST_TEXT and each.startswith(words)) for each in said):
        return True
    rest = words
    for each in sorted(said, key=len, reverse=True):
        rest = rest.replace(each, "") if len(each) >= SHORTEST_TEXT else rest
    return not rest.strip()


def _kind(
    recording: Recording, call: Call, session: str, words: str, now: set[str], before: set[str]
) -> tuple[str, str]:
    """What words that the user did not say are, and the code of it."""
    timeline = recording.timeline
    if _is_said(words, before):
        return "what was said before the user cleared the context", "cleared"
    others = {words_of(mark.text) for mark in timeline.steps if mark.seq < call.seq and mark.step in _SAYS}
    if any(words == each for each in others - now - before):
        return "what was said in another session", "another session"
    summaries = {words_of(told) for mark in timeline.steps if isinstance(told := mark.other.get("summary"), str)}
    if any(each and each in words for each in summaries):
        return "the summary of a compaction", "summary"
    if any(each in words for each in now if len(each) >= SHORTEST_TEXT):
        return "what the user said in the host's envelope, or with what was injected", "envelope"
    replies = {words_of(mark.reply) for mark in timeline.steps if mark.session == session} - {""}
    if words in replies:
        return "what the model said", "reply"
    injected = (text_or_none((other.answer or {}).get("inject")) for other in recording.calls if other.seq < call.seq)
    if any(text is not None and words in words_of(text) for text in injected):
        return "what the daemon injected", "injected"
    return "what no step of the session said, such as what a tool gave back", "not said"


def _is_json(call: Call) -> bool:
    return str(call.body.get("transcript")).lstrip().startswith("{")


def _may_be_quoted(recording: Recording) -> bool:
    """Whether some marked text has a line that opens a turn where each line names its speaker."""
    texts = (each for mark in recording.timeline.steps for each in (mark.text, mark.reply, mark.other.get("summary")))
    return any(isinstance(text, str) and any(map(names_a_speaker, text.splitlines())) for text in texts)
