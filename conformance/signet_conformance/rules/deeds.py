"""The requirement on tools that store, change and forget: they do what was asked of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf
from typing import Any

from msgspec import Struct

from signet_conformance.facts import DELETE, FORGET, MODIFY, PATCH, REDACTION, SAVES, Call, Recording, plain
from signet_conformance.finding import Finding
from signet_conformance.rules.outcome import PASS, Outcome, fail, in_body, undecided
from signet_conformance.rules.searches import NO_ARGUMENTS, identifier_in, is_value, members_of, requests_of, text_in
from signet_conformance.rules.transcripts import SHORTEST_TEXT
from signet_conformance.trace.marks import StepMark, StepName

_COMMAND_SYNTAX = re.compile(r"\A(?:critical:\s*)?(?:\[[^\]\n]*\]:\s*)?", re.IGNORECASE)
"""Marks of the host's own command for a memory, which it takes off the text."""
_FILTERS = ("query", "type", "tags", "who", "since", "until")
"""Members by which a forget chooses memories where it names none."""
_DEFAULT_LIMIT = 20
"""How many memories the daemon forgets by filters when it is told no number."""
_NOT_WHOLE = "it was disturbed or stopped, or not every request was accepted"
_FORGETS = frozenset({DELETE, FORGET})
_CHANGES = frozenset({PATCH, MODIFY})
_VALUES = ("importance", "pinned", "type", "tags")
"""Members of a memory beside its text that a tool may be told."""


class _Step(Struct, frozen=True):
    """A tool's step, what it was given, and the requests that it can have caused, in order."""

    mark: StepMark
    given: Mapping[str, Any]
    calls: Sequence[Call]
    is_whole: bool
    """Whether nothing that the kit or the host did kept a request from being made, or from being recorded."""

    @property
    def undisturbed(self) -> bool:
        """Return True if every request was accepted: then the connector did not give up."""
        return self.is_whole and all(call.accepted for call in self.calls)


def deed_is_what_was_asked(recording: Recording) -> Iterator[Outcome]:
    """A memory is stored, changed or forgotten as the tool was asked: this text, these ids, this mode, and no other.

    A harness's own tool is not the connector's, and is judged where the connector mirrors its writes.
    """
    said = _Said()
    for mark in recording.timeline.steps:
        judge = _JUDGES.get(str(mark.tool)) if mark.step == StepName.TOOL else None
        deeds = [] if judge is None else [call for call in requests_of(recording, mark) if _is_deed(call)]
        if judge is not None and not recording.timeline.was_skipped(mark) and any(call.accepted for call in deeds):
            if mark.arguments is None:
                yield undecided(*deeds[:1], message=f"step {mark.index}: {NO_ARGUMENTS}")
            else:
                yield from judge(_Step(mark, mark.arguments, deeds, _is_whole(recording, mark)), said)
        said.note(mark, deeds)


def _is_whole(recording: Recording, mark: StepMark) -> bool:
    timeline = recording.timeline
    until = timeline.next_step(mark)
    if timeline.switches.any_between(mark.seq, until) or timeline.was_stopped_in(mark):
        return False
    # Of the last step more may have come.
    return until < inf or not (recording.trace.growing or timeline.is_broken_off)


class _Said:
    """The texts and ids that earlier steps spoke of: a request that comes late may still carry them."""

    def __init__(self) -> None:
        self.texts: set[str] = set()
        self.ids: set[str] = set()
        self.rows: dict[str, str] = {}
        """The texts of memories that were stored, by their ids."""
        self._stored: set[str] = set()

    def is_late(self, text: str) -> bool:
        """Whether a text that is stored may be one that was said before and not stored yet."""
        return text not in self._stored and any(
            text == said or (len(said) >= SHORTEST_TEXT and said in text) for said in self.texts
        )

    def note(self, mark: StepMark, deeds: Sequence[Call]) -> None:
        """Take in a step, and what came of it."""
        given = mark.arguments or {}
        for call in deeds:
            if call.accepted:
                text = plain(text_in(call.body.get("content")))
                self._stored.add(text)
                if call.operation in SAVES and (identifier := identifier_in((call.answer or {}).get("id"))):
                    self.rows[identifier] = text
        self.texts |= {plain(text) for text in (mark.text, mark.reply, given.get("content")) if isinstance(text, str)}
        self.ids |= {identifier for identifier, _ in _asked_changes(given)} | _asked_ids(given)


def _is_deed(call: Call) -> bool:
    return not call.cut and (call.operation in SAVES or call.operation in _FORGETS | _CHANGES)


def _judge_store(step: _Step, said: _Said) -> Iterator[Outcome]:
    wanted = plain(text_in(step.given.get("content")))
    strange = next((call for call in step.calls if _harms(call) - said.ids), None)
    if strange is not None:
        yield _not_asked(strange, step, "a memory is changed or forgotten by a tool that was to store one")
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
        yield (_other_members(step, holding, values) if holding else None) or PASS
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
        is_cut = bool(text) and wanted.startswith(text)
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


def _judge_own_memory(step: _Step, said: _Said) -> Iterator[Outcome]:
    """What a connector mirrors of the harness's own memory: the write that was made there, and no other.

    What it does not mirror, nothing is said of.
    """
    if step.given.get("action") == "add":
        yield from _judge_store(step, said)
        return
    wanted, old = (plain(text_in(step.given.get(name))) for name in ("content", "old_text"))
    removed = step.given.get("action") == "remove"
    for call in step.calls:
        strange = sorted(each for each in _harms(call) if each in said.rows and old not in said.rows[each])
        if strange:
            yield fail(
                call,
                message=f"step {step.mark.index}: another memory is {'forgotten' if _forgotten(call) else 'changed'}"
                f" than the one that the harness {'removed' if removed else 'replaced'}",
                expected=f"the memory that holds {old!r}",
                received=said.rows[strange[0]],
                fold="other id",
            )
            return
    told = {call: plain(text_in(call.body.get("content"))) for call in step.calls if call.operation in {*SAVES, PATCH}}
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


def _judge_change(step: _Step, said: _Said) -> Iterator[Outcome]:
    asked = dict(_asked_changes(step.given))
    if not asked:
        return
    forgetting = next((call for call in step.calls if _forgotten(call) - said.ids), None)
    if forgetting is not None:
        yield _not_asked(forgetting, step, "a memory is forgotten that was to be changed")
        return
    sent = [(call, *each) for call in step.calls for each in _sent_changes(call)]
    done = {identifier for _, identifier, _, _ in sent}
    for call, identifier, _, pointer in sent:
        if identifier not in asked and identifier not in said.ids and call.accepted:
            yield fail(
                call,
                message=f"step {step.mark.index}: a memory is changed that the tool was not asked to change",
                pointer=pointer,
                expected=_list_some(asked),
                received=identifier,
                fold="other id",
            )
            return
    if missing := [identifier for identifier in asked if identifier not in done]:
        yield _missing(step, missing)
        return
    for identifier, wanted in asked.items():
        own = [(call, members, pointer) for call, other, members, pointer in sent if other == identifier]
        wrong = _other_value(step, own, wanted)
        if wrong is not None:
            yield wrong
            return
    yield PASS


def _other_value(
    step: _Step, sent: Sequence[tuple[Call, Mapping[str, Any], str]], wanted: Mapping[str, Any]
) -> Finding | None:
    text = plain(text_in(wanted.get("content")))
    told = [plain(text_in(members.get("content"))) for _, members, _ in sent]
    call, members, _ = sent[0]
    if text and not any(_holds(each, text) for each in told):
        if any(REDACTION in each for each in (text, *told)):
            return undecided(call, message=f"step {step.mark.index}: the text was redacted")
        if members.get("content") is None and not step.undisturbed:
            return undecided(call, message=f"step {step.mark.index}: {_NOT_WHOLE}")
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
    step: _Step, sent: Sequence[tuple[Call, Mapping[str, Any]]], wanted: Mapping[str, Any]
) -> Finding | None:
    """What to say of a memory that is given another value than the tool was told, or none."""
    call, _ = sent[0]
    for name in _VALUES:
        values = [members[name] for _, members in sent if members.get(name) is not None]
        if wanted.get(name) in (None, "", []) or any(_is_held(name, value, wanted[name]) for value in values):
            continue
        if not values and not step.undisturbed:
            return undecided(call, message=f"step {step.mark.index}: {_NOT_WHOLE}")
        return fail(
            call,
            message=f"step {step.mark.index}: the memory gets another {name} than the tool was given"
            if values
            else f"step {step.mark.index}: no request holds the {name} that the tool was given",
            pointer=in_body(name),
            expected=f"{wanted[name]!r}",
            received=values[0] if values else None,
            fold=f"other {name}" if values else f"lost {name}",
        )
    return None


def _is_held(name: str, sent: object, wanted: object) -> bool:
    """Whether a value is what the tool was told; tags may have more beside them."""
    return members_of(wanted) <= members_of(sent) if name == "tags" else is_value(sent, wanted)


def _judge_forget(step: _Step, said: _Said) -> Iterator[Outcome]:
    asked = _asked_ids(step.given)
    mode = step.given.get("mode")
    executed = [call for call in step.calls if call.accepted and (_forgotten(call) or _is_executed(call))]
    changing = next((call for call in step.calls if call.accepted and call.operation in _CHANGES), None)
    if changing is not None and not {each for each, _, _ in _sent_changes(changing)} <= said.ids:
        yield _not_asked(changing, step, "a memory is changed by a tool that was to forget one")
    elif mode == "preview":
        late = all(_forgotten(call) and _forgotten(call) <= said.ids for call in executed)
        yield PASS if late else _other_mode(executed[0], step, "a preview was asked for, and memories are forgotten")
    elif not executed:
        yield from _judge_previews(step, asked)
    elif asked:
        yield _judge_forgotten_ids(step, asked, executed, said)
    else:
        yield _judge_forgotten_by_filter(step, executed, said)


def _judge_previews(step: _Step, asked: set[str]) -> Iterator[Outcome]:
    """What to say of a forget that forgets nothing: only a preview took place."""
    previews = [call for call in step.calls if call.operation == FORGET and call.accepted]
    if not previews:
        return
    if any((call.answer or {}).get("requiresConfirm") is True for call in previews):
        yield undecided(previews[0], message=f"step {step.mark.index}: the daemon asks that as many be confirmed first")
    elif step.given.get("mode") is None and asked:
        yield undecided(previews[0], message=f"step {step.mark.index}: a preview, and no mode was asked for")
    elif step.given.get("mode") is None or not any(map(_found_by, previews)):
        yield PASS
    elif step.undisturbed:
        yield _other_mode(previews[0], step, "a preview takes place where memories were to be forgotten")


def _judge_forgotten_ids(step: _Step, asked: set[str], executed: Sequence[Call], said: _Said) -> Outcome:
    for call in executed:
        ids = _forgotten(call)
        if not ids:
            named = ", ".join(name for name in _FILTERS if call.body.get(name))
            return fail(
                call,
                message=f"step {step.mark.index}: memories are forgotten by {named or 'no choice at all'},"
                " where the tool was given ids",
                pointer=in_body("ids"),
                expected=_list_some(asked),
                received={name: call.body[name] for name in _FILTERS if call.body.get(name)},
                fold="by filter",
            )
        if others := ids - asked - said.ids:
            return fail(
                call,
                message=f"step {step.mark.index}: a memory is forgotten that the tool was not asked to forget",
                pointer="/request/path" if call.operation == DELETE else in_body("ids"),
                expected=_list_some(asked),
                received=_list_some(others),
                fold="other id",
            )
    attempted = {identifier for call in step.calls for identifier in _forgotten(call)}
    missing = asked - attempted
    return _missing(step, sorted(missing)) if missing else PASS


def _judge_forgotten_by_filter(step: _Step, executed: Sequence[Call], said: _Said) -> Outcome:
    asked = {name: step.given[name] for name in _FILTERS if step.given.get(name)}
    if not asked:
        return undecided(executed[0], message=f"step {step.mark.index}: the tool was given neither ids nor a choice")
    for call in executed:
        ids = _forgotten(call)
        if not ids:
            other = next((name for name in asked if not is_value(call.body.get(name), asked[name])), None)
            if other is not None:
                return fail(
                    call,
                    message=f"step {step.mark.index}: memories are forgotten by another {other} than was asked for",
                    pointer=in_body(other),
                    expected=f"{asked[other]!r}",
                    received=call.body.get(other),
                    fold=f"other {other}",
                )
            if (most := step.given.get("limit")) and _limit_of(call) > _number(most):
                return fail(
                    call,
                    message=f"step {step.mark.index}: more memories may be forgotten than were asked for",
                    pointer=in_body("limit"),
                    expected=f"at most {most!r}",
                    received=call.body.get("limit"),
                    fold="limit",
                )
        elif ids - said.ids - _previewed(step, asked):
            return fail(
                call,
                message=f"step {step.mark.index}: the tool was given {', '.join(asked)}, and what a search found for it"
                " is forgotten",
                pointer="/request/path" if call.operation == DELETE else in_body("ids"),
                expected=", ".join(f"{name} {value!r}" for name, value in asked.items()),
                received=_list_some(ids),
                fold="found",
            )
    return PASS


def _limit_of(forget: Call) -> float:
    limit = forget.body.get("limit")
    return _DEFAULT_LIMIT if limit is None else _number(limit)


def _number(value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return inf


def _previewed(step: _Step, asked: Mapping[str, Any]) -> set[str]:
    """The ids that a preview of the same choice was answered with."""
    found: set[str] = set()
    for call in step.calls:
        same = call.operation == FORGET and all(is_value(call.body.get(name), asked[name]) for name in asked)
        found |= _found_by(call) if same and not _is_executed(call) else set()
    return found


def _found_by(preview: Call) -> set[str]:
    """The ids of the memories that a preview was answered with."""
    listed = (preview.answer or {}).get("candidates")
    rows = listed if isinstance(listed, list) else []
    return {identifier_in(row.get("id")) for row in rows if isinstance(row, dict)}


# What was asked, and what was sent


def _asked_ids(given: Mapping[str, Any]) -> set[str]:
    ids = given.get("ids")
    return {
        identifier_in(each)
        for each in (*(ids if isinstance(ids, list) else ()), given.get("id"))
        if identifier_in(each)
    }


def _asked_changes(given: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    patches = given.get("patches")
    for patch in patches if isinstance(patches, list) else [given]:
        if isinstance(patch, dict) and identifier_in(patch.get("id")):
            yield identifier_in(patch.get("id")), patch


def _sent_changes(call: Call) -> Iterator[tuple[str, Mapping[str, Any], str]]:
    """Each memory that a request changes: its id, the members that are given, and where the id stands."""
    if call.operation == PATCH:
        yield identifier_in(call.memory_id), call.body, "/request/path"
    patches = call.body.get("patches") if call.operation == MODIFY else None
    for place, patch in enumerate(patches if isinstance(patches, list) else ()):
        if isinstance(patch, dict):
            yield identifier_in(patch.get("id")), patch, in_body("patches", place, "id")


def _is_executed(call: Call) -> bool:
    return call.operation == FORGET and call.body.get("mode") == "execute"


def _forgotten(call: Call) -> set[str]:
    """The ids that a request forgets."""
    if call.operation == DELETE:
        return {identifier_in(call.memory_id)}
    return _asked_ids(call.body) if _is_executed(call) else set()


def _harms(call: Call) -> set[str]:
    """The ids that an accepted request changes or forgets."""
    if not call.accepted:
        return set()
    by_filter = {"*"} if _is_executed(call) and not _forgotten(call) else set()
    return _forgotten(call) | {identifier for identifier, _, _ in _sent_changes(call)} | by_filter


def _holds(text: str, wanted: str) -> bool:
    """Whether a text holds another one whole, but for what the host's command syntax takes off its beginning."""
    bare = plain(_COMMAND_SYNTAX.sub("", wanted, count=1))
    return wanted in text or (bool(bare) and bare in text)


def _list_some(ids: Any) -> str:
    named = sorted(ids)
    return ", ".join(named[:3]) + (f" and {len(named) - 3} more" if len(named) > 3 else "")


# Breaches


def _not_asked(call: Call, step: _Step, message: str) -> Finding:
    return fail(
        call,
        message=f"step {step.mark.index}: {message}",
        expected=str(step.mark.tool),
        received=f"{call.method} {call.path}",
        fold="not asked",
    )


def _other_mode(call: Call, step: _Step, message: str) -> Finding:
    return fail(
        call,
        message=f"step {step.mark.index}: {message}",
        pointer=in_body("mode"),
        expected=str(step.given.get("mode", "preview")),
        received=call.body.get("mode", f"{call.method} {call.path}"),
        fold="mode",
    )


def _missing(step: _Step, missing: Sequence[str]) -> Finding:
    if not step.undisturbed:
        return undecided(step.calls[0], message=f"step {step.mark.index}: {_NOT_WHOLE}")
    done = "changed" if step.mark.tool == "memory_modify" else "forgotten"
    return fail(
        step.calls[0],
        message=f"step {step.mark.index}: {len(missing)} of the memories that the tool was given are not {done}",
        expected=_list_some(missing),
        received=None,
        fold="missing id",
    )


_JUDGES: Mapping[str, Callable[[_Step, _Said], Iterator[Outcome]]] = {
    "memory": _judge_own_memory,
    "memory_store": _judge_store,
    "memory_modify": _judge_change,
    "memory_forget": _judge_forget,
}
