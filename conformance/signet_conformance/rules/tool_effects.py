"""The requirement on tools that store, change and forget: they do what the model asked for, and no more."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from signet_conformance.facts import SAVES, Call, Recording, plain
from signet_conformance.files.json_values import objects_in, text_in
from signet_conformance.finding import Finding
from signet_conformance.rules.forgetting import judge_forget
from signet_conformance.rules.outcome import PASS, Outcome, breach_of, in_body, undecided
from signet_conformance.rules.tool_requests import (
    CHANGES,
    FORGETS,
    NO_ARGUMENTS,
    NOT_WHOLE,
    AskedStep,
    EarlierSteps,
    asked_changes,
    asked_ids,
    content_of,
    identifier_in,
    ids_affected,
    ids_forgotten,
    ids_superseded,
    is_value,
    list_some,
    members_of,
    requests_of,
    sent_changes,
)
from signet_conformance.trace.marks import StepMark, ToolAnswerMark

_COMMAND_SYNTAX = re.compile(r"\A(?P<pinned>critical:\s*)?(?:\[(?P<tags>[^\]\n]*)\]:\s*)?", re.IGNORECASE)
"""Marks of the host's own command for a memory, which the host removes from the text."""
_VALUES = ("importance", "pinned", "type", "tags")
"""Members of a memory, beside its text, that a tool may be given."""
_MUST_KEEP = ("importance", "pinned", "type")
"""The members that a change must keep unless the tool asks for another value. Connectors may add tags."""


def deed_is_what_was_asked(recording: Recording) -> Iterator[Outcome]:
    """A memory is stored, changed or forgotten as the tool was asked: this text, these ids, this mode, and no other.

    A harness's own tool is not the connector's; it is judged if the connector mirrors its writes.
    """
    past = EarlierSteps()
    for mark in recording.timeline.steps:
        judge = _JUDGES.get(str(mark.tool))
        calls = [] if judge is None else list(requests_of(recording, mark))
        writes = [call for call in calls if _is_write(call) and not call.cut]
        if mark.tool in _CLAIMS and mark.arguments and _is_claimed(recording, mark):
            yield from _judge_silence(recording, mark, mark.arguments)
        if judge is not None and not recording.timeline.was_skipped(mark) and any(call.accepted for call in writes):
            if mark.arguments is None:
                yield undecided(*writes[:1], message=f"step {mark.index}: {NO_ARGUMENTS}")
            else:
                superseded = frozenset(identifier for call in calls for identifier in ids_superseded(call))
                asked = AskedStep(mark, mark.arguments, writes, _is_whole(recording, mark), superseded)
                outcome = judge(asked, past)
                if outcome is PASS:
                    outcome = _unasked_value(recording, asked) or PASS
                if outcome is not None:
                    yield outcome
        past.record(mark, writes)


def _is_claimed(recording: Recording, mark: StepMark) -> bool:
    """Whether a tool told the model that it is done, although its step sent no request and none was prevented."""
    timeline = recording.timeline
    if timeline.was_skipped(mark) or not _is_whole(recording, mark) or timeline.start_was_disturbed(mark):
        return False
    answered = any(answer.done and answer.index == mark.index for answer in recording.marks(ToolAnswerMark))
    return answered and not any(timeline.calls_in(mark))


def _judge_silence(recording: Recording, mark: StepMark, given: Mapping[str, Any]) -> Iterator[Outcome]:
    """The breach of a tool that claims a write that no request makes, before or after its step."""
    writes = [call for call in recording.calls if _is_write(call)]
    later = [call for call in writes if call.seq > mark.seq]
    ids, content = asked_ids(given), content_of(given)
    if mark.tool == "memory_store":
        # A connector may know that the daemon has a text already.
        was_sent = any(_contains(content_of(call.body), content) for call in writes)
    elif mark.tool == "memory_modify":
        sent = [(identifier, members) for call in later for identifier, members, _ in sent_changes(call)]
        was_sent = any(_is_sent(changed, sent) for changed in asked_changes(given))
    else:
        forgotten = [ids_forgotten(call) for call in (writes if ids else later) if call.operation in FORGETS]
        was_sent = any(not ids or ids & each for each in forgotten)
    # The request may still come, or its body may have been recorded only in part.
    is_open = recording.may_go_on or any(call.cut for call in writes)
    if was_sent or is_open or given.get("mode") == "preview":
        return
    yield breach_of("SIG-MEM-006", "nothing sent", mark=mark, claim=_CLAIMS[mark.tool])


_CLAIMS: Mapping[str | None, str] = {
    "memory_store": "a memory is stored",
    "memory_modify": "a memory is changed",
    "memory_forget": "memories are forgotten",
}
"""Each writing tool of a connector, to what it claims."""


def _is_sent(asked: tuple[str, Mapping[str, Any]], sent: Sequence[tuple[str, Mapping[str, Any]]]) -> bool:
    """Whether a change of a memory is among those that are sent."""
    identifier, wanted = asked
    names = [name for name in ("content", *_VALUES) if name in wanted]
    return any(
        other == identifier and all(is_value(members.get(name), wanted[name]) for name in names)
        for other, members in sent
    )


def _is_whole(recording: Recording, mark: StepMark) -> bool:
    timeline = recording.timeline
    disturbed = timeline.switches.any_between(mark.seq, timeline.next_step(mark)) or timeline.was_stopped_in(mark)
    return not disturbed and not recording.may_last(mark)


def _is_write(call: Call) -> bool:
    return call.operation in SAVES or call.operation in FORGETS | CHANGES


def _judge_store(step: AskedStep, past: EarlierSteps) -> Outcome | None:
    wanted = content_of(step.given)
    strange = next((call for call in step.calls if past.unasked_ids(call)), None)
    if strange is not None:
        return step.breach("changed instead of stored", strange, tool=step.mark.tool)
    # A text within one that was said before may be late, or stored by the connector on its own.
    texts = {call.seq: content_of(call.body) for call in step.calls if call.operation in SAVES}
    saves = [call for call in step.calls if call.accepted and call.seq in texts]
    if not wanted or not saves:
        return None
    if any(_contains(text, wanted) for text in texts.values()):
        holding = [(call, call.body) for call in saves if _contains(texts[call.seq], wanted)]
        # A memory is pinned only if somebody says so.
        values = {name: value for name, value in step.given.items() if value is not False}
        other = next(_other_values(holding, values), None)
        if other is None:
            return PASS
        # The law asks for the text of a memory; the daemon finds its type by itself.
        call = holding[0][0]
        return undecided(call, message=f"{_breach_of_value(step, call, values, *other).message}; its text is kept")
    others = [call for call in saves if not past.is_late(texts[call.seq])]
    if not others:
        return None
    first, text = others[0], texts[others[0].seq]
    if len(others) > 1 and all(texts[call.seq] in wanted for call in others):
        return step.undecided(first, "the text is stored in parts")
    name, given = "cut" if wanted.startswith(text) else "stored text", text_in(step.given.get("content"))
    return step.if_redacted(first, wanted, *texts.values()) or step.breach(
        name, first, wanted=given, sent=len(text), given=len(wanted)
    )


def _judge_own_memory(step: AskedStep, past: EarlierSteps) -> Outcome | None:
    """Judge how a connector mirrors the harness's own memory: the write that was made there, and no other.

    Nothing is judged if the connector does not mirror it.
    """
    if step.given.get("action") == "add":
        return _judge_store(step, past)
    wanted, old = content_of(step.given), plain(text_in(step.given.get("old_text")))
    removed = step.given.get("action") == "remove"
    for call in step.calls:
        strange = sorted(each for each in ids_affected(call) if each in past.rows and old not in past.rows[each])
        if strange:
            what, done = "forgotten" if ids_forgotten(call) else "changed", "removed" if removed else "replaced"
            return step.breach("mirrors another", call, received=past.rows[strange[0]], what=what, done=done, old=old)
    contents = {call: content_of(call.body) for call in step.calls}
    stored = {call: text for call, text in contents.items() if call.accepted and text and not past.is_late(text)}
    if not stored or any(wanted and _contains(text, wanted) for text in stored.values()):
        return PASS
    call, text = next(iter(stored.items()))
    name, given = "stored instead of removed" if removed else "replacement", text_in(step.given.get("content"))
    return step.if_redacted(call, text, wanted) or step.breach(name, call, wanted=given)


def _judge_change(step: AskedStep, past: EarlierSteps) -> Outcome | None:
    asked = dict(asked_changes(step.given))
    if not asked:
        return None
    forgetting = next((call for call in step.calls if call.operation in FORGETS and past.unasked_ids(call)), None)
    if forgetting is not None:
        return step.breach("forgotten instead of changed", forgetting, tool=step.mark.tool)
    sent = [(call, *each) for call in step.calls for each in sent_changes(call)]
    done = {identifier for _, identifier, _, _ in sent}
    for call, identifier, _, pointer in sent:
        if identifier not in asked and identifier not in past.changes and call.accepted:
            return step.breach("changes another", call, received=identifier, pointer=pointer, ids=list_some(asked))
    if missing := [identifier for identifier in asked if identifier not in done]:
        # Newer releases offer to supersede a memory; nothing says whether a tool may do so in place of a change.
        lost = [identifier for identifier in missing if identifier not in step.superseded]
        why = "the memory is replaced by a new one instead of changed"
        return step.missing(lost) if lost else step.undecided(step.calls[0], why)
    for identifier, wanted in asked.items():
        own = [(call, members) for call, other, members, _ in sent if other == identifier]
        if (wrong := _wrong_value(step, own, wanted) or _unasked_text(step, identifier, own, wanted, past)) is not None:
            return wrong
    return PASS


def _wrong_value(
    step: AskedStep, sent: Sequence[tuple[Call, Mapping[str, Any]]], wanted: Mapping[str, Any]
) -> Finding | None:
    text = content_of(wanted)
    texts = [content_of(members) for _, members in sent]
    call, members = sent[0]
    if not any(_contains(each, text) for each in texts):
        if members.get("content") is None and not step.undisturbed:
            return step.undecided(call, NOT_WHOLE)
        received, given = members.get("content"), text_in(wanted.get("content"))
        return step.if_redacted(call, text, *texts) or step.breach("given text", call, received=received, wanted=given)
    return _other_members(step, sent, wanted)


def _unasked_text(
    step: AskedStep,
    identifier: str,
    sent: Sequence[tuple[Call, Mapping[str, Any]]],
    wanted: Mapping[str, Any],
    past: EarlierSteps,
) -> Finding | None:
    """The finding on a memory that gets a new text although something else of it was to be changed.

    Its current text may be sent along.
    """
    known = past.rows.get(identifier)
    if known is None or wanted.get("content") is not None:
        return None
    for call, members in sent:
        text = content_of(members)
        if not text or not call.accepted or _contains(text, known) or past.is_late(text):
            continue
        received = members.get("content")
        return step.if_redacted(call, text, known) or step.breach("new text", call, received=received, wanted=known)
    return None


def _unasked_value(recording: Recording, step: AskedStep) -> Finding | None:
    """The breach of a change that gives a memory a value that the tool was not given."""
    asked = dict(asked_changes(step.given))
    for call in step.calls:
        for identifier, members, pointer in sent_changes(call) if call.accepted else ():
            for name in _MUST_KEEP:
                value = members.get(name)
                if identifier not in asked or value is None or asked[identifier].get(name) is not None:
                    continue
                known = list(_known_values(recording, identifier, name, call.seq))
                if not known or any(is_value(value, each) for each in known):
                    continue
                place = pointer.removesuffix("id") + name if pointer.endswith("/id") else in_body(name)
                return step.breach("new value", call, received=value, place=place, name=name, known=known[-1])
    return None


def _known_values(recording: Recording, identifier: str, name: str, before: int) -> Iterator[object]:
    """Yield the values of a memory's member before a request: what the daemon said, a tool asked or a request set."""
    for mark in recording.timeline.steps:
        asked = dict(asked_changes(mark.arguments or {})).get(identifier, {}) if mark.seq < before else {}
        yield from (value for value in (asked.get(name),) if value is not None)
    for call in recording.calls:
        if call.seq >= before or not call.accepted:
            continue
        answer = call.answer or {}
        rows = (answer, *objects_in(answer.get("results") or answer.get("memories")))
        answered = [row for row in rows if identifier_in(row.get("id")) == identifier]
        sent = [members for other, members, _ in sent_changes(call) if other == identifier]
        yield from (row[name] for row in (*answered, *sent) if row.get(name) is not None)


def _other_members(
    step: AskedStep, sent: Sequence[tuple[Call, Mapping[str, Any]]], wanted: Mapping[str, Any]
) -> Finding | None:
    """The finding on a memory that gets another value than the tool was given; None without one."""
    other = next(_other_values(sent, wanted), None)
    if other is None:
        return None
    (name, values), (call, _) = other, sent[0]
    if not values and not step.undisturbed:
        return step.undecided(call, NOT_WHOLE)
    return _breach_of_value(step, call, wanted, name, values)


def _other_values(
    sent: Sequence[tuple[Call, Mapping[str, Any]]], wanted: Mapping[str, Any]
) -> Iterator[tuple[str, Sequence[object]]]:
    """The members of a memory that no request has as the tool was given them, each with the values that are sent."""
    for name in _VALUES:
        values = [value for _, members in sent for value in _values_of(name, members)]
        if wanted.get(name) not in (None, "", []) and not any(_is_given(name, value, wanted[name]) for value in values):
            yield name, values


def _breach_of_value(
    step: AskedStep, call: Call, wanted: Mapping[str, Any], name: str, values: Sequence[object]
) -> Finding:
    kind = "other member" if values else "lost member"
    return step.breach(kind, call, received=values[0] if values else None, name=name, wanted=wanted[name])


def _values_of(name: str, members: Mapping[str, Any]) -> Iterator[object]:
    """The value of a memory's member, and the value in the marks at the beginning of its text."""
    if members.get(name) is not None:
        yield members[name]
    marks = _COMMAND_SYNTAX.match(text_in(members.get("content")))
    if marks is not None and name in ("pinned", "tags") and marks[name]:
        yield True if name == "pinned" else marks[name]


def _is_given(name: str, sent: object, wanted: object) -> bool:
    """Whether a value is the one that the tool was given; tags may have others beside them."""
    return members_of(wanted) <= members_of(sent) if name == "tags" else is_value(sent, wanted)


def _contains(text: str, wanted: str) -> bool:
    """Whether a text contains another one whole, except for the host's command syntax at its beginning."""
    return (_COMMAND_SYNTAX.sub("", wanted) or wanted) in text


_JUDGES: Mapping[str, Callable[[AskedStep, EarlierSteps], Outcome | None]] = {
    "memory": _judge_own_memory,
    "memory_store": _judge_store,
    "memory_modify": _judge_change,
    "memory_forget": judge_forget,
}
