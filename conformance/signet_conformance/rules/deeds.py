"""The requirement on tools that store, change and forget: they do what was asked of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf
from typing import Any

from signet_conformance.facts import REDACTION, SAVES, Call, Recording, plain
from signet_conformance.finding import Finding
from signet_conformance.rules.forgetting import judge_forget
from signet_conformance.rules.outcome import PASS, Outcome, fail, in_body, undecided
from signet_conformance.rules.tool_requests import (
    CHANGES,
    FORGETS,
    NO_ARGUMENTS,
    NOT_WHOLE,
    AskedStep,
    SaidBefore,
    asked_changes,
    ids_forgotten,
    ids_harmed,
    ids_superseded,
    is_value,
    list_some,
    members_of,
    missing_ids,
    not_asked,
    requests_of,
    sent_changes,
    text_in,
)
from signet_conformance.trace.marks import StepMark

_COMMAND_SYNTAX = re.compile(r"\A(?P<pinned>critical:\s*)?(?:\[(?P<tags>[^\]\n]*)\]:\s*)?", re.IGNORECASE)
"""Marks of the host's own command for a memory, which it takes off the text."""
_VALUES = ("importance", "pinned", "type", "tags")
"""Members of a memory beside its text that a tool may be told."""


def deed_is_what_was_asked(recording: Recording) -> Iterator[Outcome]:
    """A memory is stored, changed or forgotten as the tool was asked: this text, these ids, this mode, and no other.

    A harness's own tool is not the connector's, and is judged where the connector mirrors its writes.
    """
    said = SaidBefore()
    for mark in recording.timeline.steps:
        judge = _JUDGES.get(str(mark.tool))
        calls = [] if judge is None else list(requests_of(recording, mark))
        deeds = [call for call in calls if _is_deed(call)]
        if judge is not None and not recording.timeline.was_skipped(mark) and any(call.accepted for call in deeds):
            if mark.arguments is None:
                yield undecided(*deeds[:1], message=f"step {mark.index}: {NO_ARGUMENTS}")
            else:
                superseded = frozenset(identifier for call in calls for identifier in ids_superseded(call))
                asked = AskedStep(mark, mark.arguments, deeds, _is_whole(recording, mark), superseded)
                yield from judge(asked, said)
        said.note(mark, deeds)


def _is_whole(recording: Recording, mark: StepMark) -> bool:
    timeline = recording.timeline
    until = timeline.next_step(mark)
    if timeline.switches.any_between(mark.seq, until) or timeline.was_stopped_in(mark):
        return False
    # Of the last step more may have come.
    return until < inf or not (recording.trace.growing or timeline.is_broken_off)


def _is_deed(call: Call) -> bool:
    return not call.cut and (call.operation in SAVES or call.operation in FORGETS | CHANGES)


def _judge_store(step: AskedStep, said: SaidBefore) -> Iterator[Outcome]:
    wanted = plain(text_in(step.given.get("content")))
    strange = next((call for call in step.calls if said.unasked_ids(call)), None)
    if strange is not None:
        yield not_asked(strange, step, "a memory is changed or forgotten by a tool that was to store one")
        return
    # What is held whole by a text that was said before may be late, or stored by the connector of itself.
    told = {call.seq: plain(text_in(call.body.get("content"))) for call in step.calls if call.operation in SAVES}
    saves = [call for call in step.calls if call.accepted and call.seq in told]
    if not wanted or not saves:
        return
    if any(_holds(text, wanted) for text in told.values()):
        holding = [(call, call.body) for call in saves if _holds(told[call.seq], wanted)]
        # A memory is not pinned unless somebody says so.
        values = {name: value for name, value in step.given.items() if value is not False}
        other = next(_other_values(holding, values), None)
        # The law asks for the text of a memory; its type the daemon finds for itself.
        yield (
            PASS
            if other is None
            else undecided(
                holding[0][0], message=f"step {step.mark.index}: {_describe_value(*other)}; its text is kept"
            )
        )
        return
    others = [call for call in saves if not said.is_late(told[call.seq])]
    if not others:
        return
    first, text = others[0], told[others[0].seq]
    if any(REDACTION in each for each in (wanted, *told.values())):
        yield undecided(first, message=f"step {step.mark.index}: the text was redacted")
    elif len(others) > 1 and all(told[call.seq] in wanted for call in others):
        yield undecided(first, message=f"step {step.mark.index}: the text is stored in parts")
    else:
        is_cut = wanted.startswith(text)
        yield fail(
            first,
            message=f"step {step.mark.index}: only the first {len(text)} of {len(wanted)} characters are stored"
            if is_cut
            else f"step {step.mark.index}: another text is stored than the tool was given",
            pointer=in_body("content"),
            expected=text_in(step.given.get("content")),
            received=first.body.get("content"),
            fold="cut" if is_cut else "other text",
        )


def _judge_own_memory(step: AskedStep, said: SaidBefore) -> Iterator[Outcome]:
    """What a connector mirrors of the harness's own memory: the write that was made there, and no other.

    What it does not mirror, nothing is said of.
    """
    if step.given.get("action") == "add":
        yield from _judge_store(step, said)
        return
    wanted, old = (plain(text_in(step.given.get(name))) for name in ("content", "old_text"))
    removed = step.given.get("action") == "remove"
    for call in step.calls:
        strange = sorted(each for each in ids_harmed(call) if each in said.rows and old not in said.rows[each])
        if strange:
            yield fail(
                call,
                message=f"step {step.mark.index}: another memory is {'forgotten' if ids_forgotten(call) else 'changed'}"
                f" than the one that the harness {'removed' if removed else 'replaced'}",
                expected=f"the memory that holds {old!r}",
                received=said.rows[strange[0]],
                fold="other id",
            )
            return
    told = {call: plain(text_in(call.body.get("content"))) for call in step.calls}
    texts = {call: text for call, text in told.items() if call.accepted and text and not said.is_late(text)}
    if not texts or any(wanted and _holds(text, wanted) for text in texts.values()):
        yield PASS
        return
    call, text = next(iter(texts.items()))
    if REDACTION in text or REDACTION in wanted:
        yield undecided(call, message=f"step {step.mark.index}: the text was redacted")
        return
    yield fail(
        call,
        message=f"step {step.mark.index}: "
        + (
            "a memory is stored where the harness removed one" if removed else "another text is stored than replaced it"
        ),
        pointer=in_body("content"),
        expected="nothing stored" if removed else text_in(step.given.get("content")),
        received=call.body.get("content"),
        fold="other text",
    )


def _judge_change(step: AskedStep, said: SaidBefore) -> Iterator[Outcome]:
    asked = dict(asked_changes(step.given))
    if not asked:
        return
    forgetting = next((call for call in step.calls if call.operation in FORGETS and said.unasked_ids(call)), None)
    if forgetting is not None:
        yield not_asked(forgetting, step, "a memory is forgotten that was to be changed")
        return
    sent = [(call, *each) for call in step.calls for each in sent_changes(call)]
    done = {identifier for _, identifier, _, _ in sent}
    for call, identifier, _, pointer in sent:
        if identifier not in asked and identifier not in said.changes and call.accepted:
            yield fail(
                call,
                message=f"step {step.mark.index}: a memory is changed that the tool was not asked to change",
                pointer=pointer,
                expected=list_some(asked),
                received=identifier,
                fold="other id",
            )
            return
    if missing := [identifier for identifier in asked if identifier not in done]:
        # Newer releases offer to supersede a memory; nothing says whether a tool may do so in place of a change.
        lost = [identifier for identifier in missing if identifier not in step.superseded]
        message = f"step {step.mark.index}: the memory is superseded by another one, and not changed"
        yield missing_ids(step, lost) if lost else undecided(step.calls[0], message=message)
        return
    for identifier, wanted in asked.items():
        own = [(call, members, pointer) for call, other, members, pointer in sent if other == identifier]
        wrong = _other_value(step, own, wanted)
        if wrong is not None:
            yield wrong
            return
    yield PASS


def _other_value(
    step: AskedStep, sent: Sequence[tuple[Call, Mapping[str, Any], str]], wanted: Mapping[str, Any]
) -> Finding | None:
    text = plain(text_in(wanted.get("content")))
    told = [plain(text_in(members.get("content"))) for _, members, _ in sent]
    call, members, _ = sent[0]
    if not any(_holds(each, text) for each in told):
        if any(REDACTION in each for each in (text, *told)):
            return undecided(call, message=f"step {step.mark.index}: the text was redacted")
        if members.get("content") is None and not step.undisturbed:
            return undecided(call, message=f"step {step.mark.index}: {NOT_WHOLE}")
        return fail(
            call,
            message=f"step {step.mark.index}: the memory gets another text than the tool was given",
            pointer=in_body("content"),
            expected=text_in(wanted.get("content")),
            received=members.get("content"),
            fold="other text",
        )
    return _other_members(step, [(call, members) for call, members, _ in sent], wanted)


def _other_members(
    step: AskedStep, sent: Sequence[tuple[Call, Mapping[str, Any]]], wanted: Mapping[str, Any]
) -> Finding | None:
    """What to say of a memory that is given another value than the tool was told, or none."""
    call, _ = sent[0]
    for name, values in _other_values(sent, wanted):
        if not values and not step.undisturbed:
            return undecided(call, message=f"step {step.mark.index}: {NOT_WHOLE}")
        return fail(
            call,
            message=f"step {step.mark.index}: {_describe_value(name, values)}",
            pointer=in_body(name),
            expected=f"{wanted[name]!r}",
            received=values[0] if values else None,
            fold=f"other {name}" if values else f"lost {name}",
        )
    return None


def _other_values(
    sent: Sequence[tuple[Call, Mapping[str, Any]]], wanted: Mapping[str, Any]
) -> Iterator[tuple[str, Sequence[object]]]:
    """The members of a memory that no request holds as the tool was told, each with the values that are sent."""
    for name in _VALUES:
        values = [value for _, members in sent for value in _values_of(name, members)]
        if wanted.get(name) not in (None, "", []) and not any(_is_held(name, value, wanted[name]) for value in values):
            yield name, values


def _describe_value(name: str, values: Sequence[object]) -> str:
    if values:
        return f"the memory gets another {name} than the tool was given"
    return f"no request holds the {name} that the tool was given"


def _values_of(name: str, members: Mapping[str, Any]) -> Iterator[object]:
    """The value of a memory's member, and what the marks at the beginning of its text say of it."""
    if members.get(name) is not None:
        yield members[name]
    marks = _COMMAND_SYNTAX.match(text_in(members.get("content")))
    if marks is not None and name in ("pinned", "tags") and marks[name]:
        yield True if name == "pinned" else marks[name]


def _is_held(name: str, sent: object, wanted: object) -> bool:
    """Whether a value is what the tool was told; tags may have more beside them."""
    return members_of(wanted) <= members_of(sent) if name == "tags" else is_value(sent, wanted)


def _holds(text: str, wanted: str) -> bool:
    """Whether a text holds another one whole, but for what the host's command syntax takes off its beginning."""
    return (_COMMAND_SYNTAX.sub("", wanted) or wanted) in text


_JUDGES: Mapping[str, Callable[[AskedStep, SaidBefore], Iterator[Outcome]]] = {
    "memory": _judge_own_memory,
    "memory_store": _judge_store,
    "memory_modify": _judge_change,
    "memory_forget": judge_forget,
}
