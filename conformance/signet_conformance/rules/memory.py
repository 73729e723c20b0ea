"""Requirements on recall, remember, modify, forget and on secret jobs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any
from urllib.parse import unquote

from signet_conformance import facts
from signet_conformance.facts import Call, Recording, text_or_none
from signet_conformance.files.json_values import list_in, object_in
from signet_conformance.rules.outcome import (
    PASS,
    Outcome,
    breach_of,
    in_body,
    judge_cut,
    pass_if,
    subjects_of,
    undecided,
)

MAX_UNCONFIRMED = 25
MAX_POLLS = 20
TIGHT_POLL_S = 0.1
TERMINAL = ("completed", "failed")
NO_IDS = frozenset({"", "stats", "undefined", "null", "none", "nan", "[object object]"})


def recall_has_a_query(recording: Recording) -> Iterator[Outcome]:
    """A recall asks something: its query is not blank, and a hook names its harness."""
    for call in subjects_of(recording, "SIG-REC-001", cut=True):
        if call.operation == facts.MEMORY_SEARCH:
            yield _has_text(call, "q", call.query)
        elif call.cut:
            yield judge_cut(call)
        else:
            yield _has_text(call, "query", call.body)


def _has_text(call: Call, name: str, members: Mapping[str, Any]) -> Outcome:
    """Judge a request that has to contain a text and, if it is a hook, its harness."""
    wanted = (name, "harness") if call.is_hook else (name,)
    missing = next((each for each in wanted if text_or_none(members.get(each)) is None), None)
    if missing is None:
        return PASS
    place = "/request/query" if call.operation == facts.MEMORY_SEARCH else in_body(missing)
    return breach_of("SIG-REC-001", "without text", call, received=members.get(missing), missing=missing, place=place)


def recall_carries_the_open_key(recording: Recording) -> Iterator[Outcome]:
    """A recall during a session carries the key of that session."""
    for call in recording.of(facts.RECALL, facts.HOOK_RECALL):
        if not recording.any_open(call.seq) or not _its_session_may_be_open(recording, call):
            continue
        if recording.is_open(call.key, call.seq):
            owner = recording.timeline.foreign_session(call)
            if owner is None:
                yield PASS
            elif _has_its_own_recall(recording, call):
                yield undecided(
                    call, message=f"this recall may be one of {owner} that arrived after the turn of {owner} had ended"
                )
            else:
                yield breach_of("SIG-REC-004", "foreign", call, received=call.key, owner=owner)
        elif call.key is not None and _could_not_be_opened(recording, call):
            yield undecided(
                call, message="a fault disturbed the start of this session, so the connector may have no other key"
            )
        elif _began_before(recording, call):
            yield undecided(
                call, message="its session continues later without a start, so it began before the recording"
            )
        else:
            yield breach_of("SIG-REC-004", "no key" if call.key is None else "no open session", call, received=call.key)


def _its_session_may_be_open(recording: Recording, call: Call) -> bool:
    """Whether the session of a recall's step is open on the wire, under its own key or a key of unknown owner.

    A connector may start its session at the first prompt: a recall before that has no key to send. A recall under the
    key of a session in which this one works as a sub-agent has its session too.
    """
    timeline, session = recording.timeline, recording.timeline.session_at(call.seq)
    if session is None:
        return True
    owners = {key: timeline.session_of(key) for key in recording.hooks_of if recording.is_open(key, call.seq)}
    if call.key in owners and timeline.are_related(owners[call.key], session):
        return True
    return any(owner in (None, session) for owner in owners.values())


def _has_its_own_recall(recording: Recording, call: Call) -> bool:
    """Whether another recall came in this one's step, for the session whose turn it was."""
    timeline, step = recording.timeline, recording.timeline.step_at(call.seq)
    recalls = () if step is None or step.session is None else timeline.calls_in(step)
    return any(
        timeline.session_of(other.key) == timeline.session_at(call.seq)
        for other in recalls
        if other.operation in (facts.RECALL, facts.HOOK_RECALL)
    )


def _began_before(recording: Recording, call: Call) -> bool:
    """Whether the first recorded hook of the call's key comes later and is not a start."""
    hooks = recording.hooks_of.get(call.key or "", ())
    return bool(hooks) and hooks[0].seq > call.seq and hooks[0].operation != facts.START


def _could_not_be_opened(recording: Recording, call: Call) -> bool:
    """Whether something disturbed the opening of the step's session, and the call's key is not another session's."""
    timeline, step = recording.timeline, recording.timeline.step_at(call.seq)
    was_disturbed = step is not None and timeline.start_was_disturbed(step)
    return was_disturbed and timeline.session_of(call.key) in (None, timeline.session_at(call.seq))


def save_has_content(recording: Recording) -> Iterator[Outcome]:
    """A save has content that is not blank, and a hook names its harness."""
    for call in subjects_of(recording, "SIG-REM-001", cut=True):
        if call.cut:
            # Before 0.109, the hook also accepts blank content.
            tells = call.accepted and (call.operation == facts.REMEMBER or recording.at_least("0.109"))
            yield PASS if tells else undecided(call, message="only a part of the body was recorded")
        else:
            yield _has_text(call, "content", call.body)


def idempotency_key(call: Call) -> str | None:
    """The idempotency key of a save, in whichever place."""
    for place in (call.body, object_in(call.body.get("metadata"))):
        for name in ("idempotencyKey", "idempotency_key"):
            if (value := text_or_none(place.get(name))) is not None:
                return value
    return None


def repeated_save_keeps_its_key(recording: Recording) -> Iterator[Outcome]:
    """A repeated save has the idempotency key of the first, and one key never stands for two contents."""
    first_of: dict[str, Call] = {}
    failed: dict[tuple[str, str], Call] = {}
    for call in subjects_of(recording, "SIG-REM-002"):
        key = idempotency_key(call)
        first = first_of.get(key) if key is not None else None
        # Members that a large recording keeps only in its file are read when they matter.
        content = call.body.get("content") if first is not None or failed or not call.accepted else None
        agent_and_content = (call.agent, str(content)) if text_or_none(content) is not None else None
        failed_before = failed.get(agent_and_content) if agent_and_content is not None else None
        if first is not None and first.body.get("content") != content:
            yield breach_of("SIG-REM-002", "reused", call, first, received=key)
        elif failed_before is not None and (key is None or idempotency_key(failed_before) != key):
            how = "without an" if key is None else "under another"
            wanted = idempotency_key(failed_before) or "the same idempotency key on both"
            yield breach_of("SIG-REM-002", "missing", call, failed_before, received=key, how=how, wanted=wanted)
        elif key is not None:
            yield PASS
        if key is not None:
            first_of.setdefault(key, call)
        if agent_and_content is not None:
            if call.accepted:
                failed.pop(agent_and_content, None)
            else:
                failed.setdefault(agent_and_content, call)


def memory_id_is_a_segment(recording: Recording) -> Iterator[Outcome]:
    """The id of a memory is one encoded segment of the path, and not a reserved word."""
    for call in recording.requests:
        if call.method not in ("GET", "PATCH", "DELETE") or not call.path.startswith("/api/memory/"):
            continue
        if call.served and call.operation not in (facts.GET, facts.PATCH, facts.DELETE):
            continue
        segments = call.path.removeprefix("/api/memory/").split("/")
        if len(segments) == 2 and (segments[0] == "jobs" or segments[1] in ("history", "recover")):
            continue
        identifier = call.memory_id.strip()
        name = "reserved" if identifier.lower() in NO_IDS else "not encoded"
        if len(segments) > 1:
            name = "several segments"
        is_one_id = name == "not encoded" and not re.search(r"[\s?#]", identifier)
        yield pass_if(is_one_id) or breach_of("SIG-MEM-001", name, call, identifier=identifier[:60])


def mutation_has_a_reason(recording: Recording) -> Iterator[Outcome]:
    """A change of a memory gives a reason that is not blank."""
    for call in subjects_of(recording, "SIG-MEM-003"):
        if call.operation == facts.FORGET and call.body.get("mode") != "execute":
            continue
        reason = call.body_text("reason")
        if reason is None and call.operation == facts.DELETE:
            reason = text_or_none(call.query.get("reason"))
        yield pass_if(reason is not None) or breach_of("SIG-MEM-003", "no reason", call)


def version_is_a_positive_integer(recording: Recording) -> Iterator[Outcome]:
    """if_version is a positive integer, and a forget has none."""
    for call in subjects_of(recording, "SIG-MEM-004"):
        if call.operation == facts.FORGET:
            yield pass_if("if_version" not in call.body) or breach_of("SIG-MEM-004", "batch", call)
            continue
        sent = [(in_body("if_version"), call.body["if_version"])] if "if_version" in call.body else []
        if "if_version" in call.query:
            sent.append(("/request/query", call.query["if_version"]))
        for index, patch in enumerate(list_in(call.body.get("patches")) if call.operation == facts.MODIFY else ()):
            if "if_version" in object_in(patch):
                sent.append((in_body("patches", index, "if_version"), patch["if_version"]))
        wrong = [(pointer, value) for pointer, value in sent if not _is_version(value)]
        if sent:
            yield pass_if(not wrong) or breach_of(
                "SIG-MEM-004", "not a number", call, received=wrong[0][1], place=wrong[0][0]
            )


def _is_version(value: object) -> bool:
    if isinstance(value, str):
        return re.fullmatch(r"\s*0*[1-9]\d*\s*", value) is not None
    if isinstance(value, float):
        return value.is_integer() and value > 0
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def large_forget_is_confirmed(recording: Recording) -> Iterator[Outcome]:
    """A forget of more than 25 memories repeats the token in the answer to its preview."""
    tokens: set[str] = set()
    for call in recording.of(facts.FORGET, cut=True):
        if not call.cut and call.body.get("mode") == "execute":
            ids = call.body.get("ids")
            many = isinstance(ids, list) and len(ids) > MAX_UNCONFIRMED
            asked = call.answer_value("requiresConfirm") is True
            # The preview may have been asked for in another session.
            if many or asked:
                recording = recording.whole
                yield pass_if(call.body_text("confirm_token") in tokens) or breach_of(
                    "SIG-MEM-005", "unconfirmed", call, most=MAX_UNCONFIRMED
                )
        if (token := text_or_none(call.answer_value("confirmToken"))) is not None:
            tokens.add(token)


def secret_job_is_polled_to_its_end(recording: Recording) -> Iterator[Outcome]:
    """The job of a secret command is polled until it has ended, and not after that."""
    if not recording.of(facts.EXEC, cut=True):
        return
    recording = recording.whole
    polls_of: dict[str, list[Call]] = {}
    for poll in recording.of(facts.EXEC_JOB, cut=True):
        polls_of.setdefault(unquote(poll.path.rsplit("/", 1)[-1]), []).append(poll)
    for job in recording.of(facts.EXEC, cut=True):
        identifier = text_or_none(job.answer.get("id")) if job.answer is not None else None
        if not job.accepted or job.status != 202 or identifier is None:
            continue
        polls = [p for p in polls_of.get(identifier, ()) if p.seq > job.seq]
        ended = job if _is_terminal(job) else next(filter(_is_terminal, polls), None)
        # A poll that was under way when the end was reported is not after it.
        further = [p for p in polls if ended is not None and p.seq > ended.seq and p.t0 >= ended.t1]
        if further:
            yield breach_of("SIG-SEC-002", "after the end", further[0], job, count=len(further))
        elif ended is not None:
            yield PASS
        elif len(polls) > MAX_POLLS and all(later.t0 - earlier.t0 < TIGHT_POLL_S for earlier, later in pairwise(polls)):
            yield breach_of("SIG-SEC-002", "tight loop", polls[-1], job, least_s=TIGHT_POLL_S, count=len(polls))
        else:
            yield undecided(job, message="no poll saw the job's end: its id may have been passed to the caller")


def _is_terminal(call: Call) -> bool:
    return call.delivered and (call.status == 404 or call.answer_value("status") in TERMINAL)
