"""Rules on what the model is told: the outcome of its tools, and nothing untrue after a failed or late start."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from signet_conformance import facts
from signet_conformance.facts import Call, Recording
from signet_conformance.files.json_values import objects_in, parse_object, text_in
from signet_conformance.rules.model.given import answers_before
from signet_conformance.rules.model.requests import (
    ModelCall,
    SaidPart,
    ToolUse,
    marker_lines,
    padded,
    plain_words,
    results,
    says,
)
from signet_conformance.rules.model.turns import ModelTurn, model_requests, turns_of, turns_with_tools
from signet_conformance.rules.outcome import PASS, Outcome, breach_of, unclear
from signet_conformance.rules.tool_requests import asked_changes, asked_ids
from signet_conformance.trace.marks import FaultMark, OutageMark

_FIRST_WORDS = 5
_RECALLS = (facts.RECALL, facts.HOOK_RECALL, facts.MEMORY_SEARCH)
_BY_ID = (facts.GET, facts.PATCH, facts.DELETE, facts.MODIFY, facts.FORGET)
_NOT_FOUND = 404
_FAILURE = re.compile(
    r"\b(?:errors?|fail(?:s|ed|ure)?|unavailable|unreachable|offline|refused|rejected|denied|forbidden|unauthori[sz]ed"
    r"|could not|couldn t|cannot|can t|unable|(?:not|didn t) (?:available|reachable|running|saved|stored|respond\w*"
    r"|answer\w*|work\w*)|no (?:answer|reply|response)|unexpected|unsuccessful\w*|went wrong|problem|try again"
    r"|timed? ?out|timeout|aborted|invalid|conflict|busy|exception|false|econn\w+|[45]\d\d)\b"
)
_SUCCESS = re.compile(r"\b(?:saved|stored|remembered|recorded|noted|added|kept|success\w*|done|ok|true)\b")
_CHANGED = re.compile(
    r"\b(?:updated|modified|changed|edited|saved|forgotten|forgot|deleted|removed|success\w*|done|ok|true)\b"
)
_LATER = re.compile(r"\b(?:will|later|queued?|pending|retr(?:y|ies)|once|until)\b")
_NO_SUCCESS = re.compile(
    r"\b(?:not|never|cannot|can t|failed to|unable to|could not|couldn t)(?: \w+){0,2} "
    r"(?:sav|stor|remember|record|not|add|keep|kept|succe)\w*\b"
    r"|\bnothing (?:was |is |has been |could be )?(?:saved|stored|remembered|recorded|noted|added|kept)\b"
)
_UNCHANGED = re.compile(
    r"\b(?:not|never|nothing|no|cannot|can t|failed to|unable to|could not|couldn t)(?: \w+){0,2} "
    r"(?:update[ds]?|modif\w+|chang\w+|edit\w*|saved?|forg[eo]t\w*|deleted?|remov\w+|success\w*)\b"
)
_NOTHING = re.compile(
    r"\b(?:no (?:\w+ ){0,3}(?:memor(?:y|ies)|results?|match(?:es)?|hits?|entries)|nothing|none|not find|not found|empty"
    r"|0 (?:results|memories))\b"
)
_OUTCOMES = (_FAILURE, _SUCCESS, _CHANGED, _LATER, _NO_SUCCESS, _UNCHANGED, _NOTHING)

_NO_WORDS = frozenset({"", "object object", "undefined", "null", "nan", "none"})
"""Results without content, such as JavaScript writes for an object or a missing value."""


def tool_outcome_is_told(recording: Recording) -> Iterator[Outcome]:
    """The result of a memory tool tells the model what the daemon answered."""
    for turn in turns_with_tools(recording):
        calls = [c for c in recording.of(*_RECALLS, *facts.SAVES) if turn.low < c.seq < turn.high]
        for call in calls:
            answered = _request_with_result(call, turn)
            if answered is None:
                continue
            request, part = answered
            later = [
                c
                for c in calls
                if c.seq > call.seq and _identifying_words(c) == _identifying_words(call) and c.t0 <= request.t0
            ]
            if not later:
                text = _without(plain_words(part.text), _identifying_words(call))
                yield _judge_result(call, request, part, _NO_SUCCESS.sub("failed", text))
        yield from _judge_tools_of_one_memory(recording, turn)


def _judge_tools_of_one_memory(recording: Recording, turn: ModelTurn) -> Iterator[Outcome]:
    """Judge tools that read, change or forget a memory by its id, each where its result is the only new one."""
    for before, request in pairwise(turn.main):
        known = [] if request.chained else list(results(before))
        new = list(results(request))[len(known) :]
        calls = [call for call in recording.of(*_BY_ID) if before.t0 <= call.t0 <= request.t0]
        if len(new) != 1 or not calls:
            continue
        (use, part) = new[0]
        ids = [plain_words(identifier) for call in calls for identifier in _ids_of(call)]
        done = {_is_done(call) for call in calls}
        if ids and all(_used_for(use, each) for each in ids) and len(done) == 1 and None not in done:
            text = plain_words(part.text)
            bodies = [body for call in calls for body in (call.body, *objects_in(call.body.get("patches")))]
            for words in (*ids, *(plain_words(text_in(body.get("content"))) for body in bodies)):
                text = _without(text, words)
            yield _judge_result(calls[-1], request, part, _UNCHANGED.sub("failed", text))


def _without(text: str, repeated: str) -> str:
    """A result without the query, id or saved text that it repeats, if that may itself speak of the outcome."""
    speaks = any(pattern.search(repeated) for pattern in _OUTCOMES)
    return f" {text} ".replace(f" {repeated} ", " ") if speaks else text


def _ids_of(call: Call) -> Iterable[str]:
    """The ids of the memories that a request reads, changes or forgets."""
    if call.operation in (facts.MODIFY, facts.FORGET):
        return (*asked_ids(call.body), *(identifier for identifier, _ in asked_changes(call.body)))
    return (call.memory_id,)


def _is_done(call: Call) -> bool | None:
    """Whether the daemon did what a request asks; None if its answer does not say.

    A memory that does not exist leaves it open: there was nothing to forget.
    """
    if call.status == _NOT_FOUND or call.fault == "shape" or call.answer_value("status") == "already_deleted":
        return None
    if not call.accepted:
        return False
    is_done = call.operation == facts.GET or call.answer_value("status") in ("updated", "deleted")
    return True if is_done else None


def _describe_answer(call: Call) -> str:
    if call.status is None:
        return "the daemon did not answer"
    if not call.delivered:
        return "the daemon did not answer in time"
    return f"the daemon answered {call.status}{' with nothing of use' if call.status < 300 else ''}"


def _identifying_words(call: Call) -> str:
    """What distinguishes a call of a tool from others: the query, or the text to save."""
    if call.operation == facts.MEMORY_SEARCH:
        return plain_words(text_in(call.query.get("q")))
    return plain_words(text_in(call.body.get("query", call.body.get("content"))))


def _request_with_result(call: Call, turn: ModelTurn) -> tuple[ModelCall, SaidPart] | None:
    """The first request with the result of the tool that made a call; None if several tools may have made it."""
    words = _identifying_words(call)
    for request in turn.asked:
        if not words or request.t0 < call.t0:
            continue
        alike = [part for use, part in results(request) if _used_for(use, words)]
        if alike:
            return (request, alike[-1]) if len(alike) == 1 else None
    return None


def _used_for(use: ToolUse, words: str) -> bool:
    return words in plain_words(use.arguments)


def _judge_result(call: Call, request: ModelCall, part: SaidPart, text: str) -> Outcome:
    """Judge a result by its words; one that claims neither success nor failure is undecided."""
    reads = call.operation in (*_RECALLS, facts.GET)
    says_failure = part.failed or _FAILURE.search(text) is not None
    if not call.accepted or call.answer_value("success") is False:
        if says_failure:
            return PASS
        if call.fault == "shape":
            return unclear(call, asked=[request], message="an answer of an unexpected shape was taken for success")
        if not _claims_success(call, text):
            return unclear(call, asked=[request], message="the tool's result shows neither success nor failure")
        denies = reads or (call.operation in facts.SAVES and _SUCCESS.search(text) is None)
        claim = "nothing is known" if denies else "it was done"
        received, answer = part.text[:300], _describe_answer(call)
        return breach_of(
            "SIG-MODEL-007", "failure unsaid", call, asked=[request], received=received, answer=answer, claim=claim
        )
    if reads:
        return _judge_memories(call, request, part, text)
    is_save = call.operation in facts.SAVES
    # A tool that passes the daemon's own answer on is truthful, although that may contain the word false.
    shows_success = (_SUCCESS if is_save else _CHANGED).search(text) or (is_save and _names_the_row(call, part))
    if says_failure and not shows_success:
        done = "stored" if is_save else "forgot" if call.operation == facts.DELETE else "changed"
        received = part.text[:300]
        return breach_of("SIG-MODEL-007", "success denied", call, asked=[request], received=received, done=done)
    return PASS


def _claims_success(call: Call, text: str) -> bool:
    """Whether a result says that a call was done, or that the daemon knows nothing."""
    if call.operation == facts.GET:
        return _NOTHING.search(text) is not None
    if call.operation in _BY_ID:
        return _CHANGED.search(text) is not None and _LATER.search(text) is None
    return _SUCCESS.search(text) is not None or _NOTHING.search(text) is not None


def _judge_memories(call: Call, request: ModelCall, part: SaidPart, text: str) -> Outcome:
    """Judge a result by the memories that the daemon answered with."""
    contents = _contents(call)
    if not contents:
        return unclear(call, asked=[request], message="the daemon found nothing, so any result of the tool can be true")
    said = padded([part.text])
    if any(any(says(_first_words(line), said) for line in lines) for lines in contents):
        return PASS
    says_failure = part.failed or _FAILURE.search(text) is not None
    if says_failure or _NOTHING.search(text) or text in _NO_WORDS or _lists_nothing(part.text):
        memories = "1 memory" if len(contents) == 1 else f"{len(contents)} memories"
        received = part.text[:300]
        return breach_of(
            "SIG-MODEL-007", "memories unsaid", call, asked=[request], received=received, memories=memories
        )
    return unclear(call, asked=[request], message="the tool's result holds no line of the memories that were recalled")


def _first_words(line: str) -> str:
    """The first words of a line: a program that shortens lines still shows them."""
    return " ".join(line.split(" ")[:_FIRST_WORDS])


def _lists_nothing(text: str) -> bool:
    """Whether a result is a JSON object with lists that are all empty."""
    lists = [value for value in parse_object(text).values() if isinstance(value, list)]
    return bool(lists) and not any(lists)


def _names_the_row(call: Call, part: SaidPart) -> bool:
    """Whether a result holds the id that the daemon gave the saved memory."""
    words = plain_words(text_in(call.answer_value("id")))
    return bool(words) and says(words, padded([part.text]))


def _contents(call: Call) -> Sequence[tuple[str, ...]]:
    """The marker lines of each memory that was recalled."""
    found = (call.answer_value(name) for name in ("results", "memories"))
    rows = next((value for value in found if isinstance(value, list)), [call.answer])
    return [lines for row in objects_in(rows) if (lines := marker_lines(text_in(row.get("content"))))]


_OFFLINE = re.compile(
    r"\b(?:offline|not running|unreachable|not reachable|(?:is|seems) down|connection refused"
    r"|(?:could not|couldn t|cannot|can t|unable to|failed to) (?:connect to|reach|be reached))\b"
)
_OF_MEMORY = re.compile(r"\b(?:signet|daemon|memory)\b")
_HEADING = re.compile(r"^#+\s+(.+?)\s*$", re.MULTILINE)
_IDENTITY = ("agent instructions", "identity", "soul")
"""The headings under which an answer to a start, or a program that got no answer, describes the agent."""


def unheard_start_is_told_as_that(recording: Recording) -> Iterator[Outcome]:
    """After a late or failed start or prompt, the model gets no word that the daemon is away and no other identity."""
    for call in recording.of(facts.START, facts.PROMPT):
        session = recording.timeline.session_of(call.key)
        if session is None or (call.accepted and call.fault is None):
            continue
        request = _next_request(recording, session, call)
        if request is not None:
            said = padded(mark.text or "" for mark in recording.timeline.steps_of(session))
            known = f"{answers_before(recording, session, request.t0)}|{said}"
            yield (
                _offline_claim(recording, call, request, known)
                or _other_identity(recording, call, request, known)
                or PASS
            )


def _next_request(recording: Recording, session: str, call: Call) -> ModelCall | None:
    """The first request of a session's next turn after a call; None if the session is started again before."""
    turn = next((turn for turn in turns_of(recording, session) if turn.high > call.seq), None)
    starts = [each.seq for each in recording.of(facts.START) if each.key == call.key]
    if turn is None or any(call.seq < seq < turn.low for seq in starts):
        return None
    return next((each for each in turn.main if each.t0 >= call.t0), None)


def _offline_claim(recording: Recording, call: Call, request: ModelCall, known: str) -> Outcome | None:
    asked = recording.of(facts.START, facts.PROMPT, facts.HEALTH)
    if any(_is_away(each) for each in asked if each.seq >= call.seq and each.t0 <= request.t0):
        return None
    for line in (line for text in request.context_texts for line in text.splitlines()):
        words = plain_words(line)
        claims_absence = _OFFLINE.search(words) and _OF_MEMORY.search(words) and not says(words, known)
        if claims_absence and not _was_said_undisturbed(recording, words, call):
            return breach_of("SIG-MODEL-013", "told as offline", call, asked=[request], received=line.strip()[:200])
    return None


def _is_away(call: Call) -> bool:
    """Whether a harness may call the daemon unreachable: a call got an error, no answer, or a part of one."""
    return not call.is_answered(200, 300) or call.error == "upstream_reset"


def _was_said_undisturbed(recording: Recording, words: str, call: Call) -> bool:
    """Whether the model was told a line before anything went wrong, as in instructions for when the daemon is away."""
    switches = (*recording.marks(FaultMark), *recording.marks(OutageMark))
    switched = [recording.mark_times[mark.seq] for mark in switches]
    spoilt = [each.t0 for each in recording.calls if each.fault is not None or each.error is not None]
    until = min([call.t0, *switched, *spoilt])
    return any(says(words, each.everything) for each in model_requests(recording) if each.t0 < until)


def _other_identity(recording: Recording, call: Call, request: ModelCall, known: str) -> Outcome | None:
    """The breach of a request that gives the model another identity than the daemon gives the same agent."""
    starts = [each for each in recording.of(facts.START) if each.agent == call.agent]
    sent = [section for each in starts for section in _sections(text_in(each.answer_value("inject")))]
    for heading, lines in (section for text in request.context_texts for section in _sections(text)):
        own = [line for name, own_lines in sent if name == heading for line in own_lines]
        told = [line for line in lines if not says(line, known)]
        if own and told and not set(own) & set(lines):
            return breach_of(
                "SIG-MODEL-013",
                "another identity",
                call,
                asked=[request],
                received=told[0][:200],
                heading=heading,
                own=own[0][:200],
            )
    return None


def _sections(text: str) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the headings of identity in a text, each with the lines under it, in plain words."""
    pieces = _HEADING.split(text)
    for title, body in zip(pieces[1::2], pieces[2::2], strict=True):
        if (heading := plain_words(title)) in _IDENTITY:
            yield heading, [words for line in body.splitlines() if (words := plain_words(line))]
