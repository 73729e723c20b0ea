"""The judge of tools that forget: these memories, in this mode, and no other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import Any

from signet_conformance.facts import DELETE, FORGET, Call
from signet_conformance.finding import Finding
from signet_conformance.rules.outcome import PASS, Outcome, fail, in_body, undecided
from signet_conformance.rules.tool_requests import (
    CHANGES,
    AskedStep,
    SaidBefore,
    asked_ids,
    identifier_in,
    ids_forgotten,
    is_executed,
    is_value,
    list_some,
    missing_ids,
    not_asked,
)

_FILTERS = ("query", "type", "tags", "who", "since", "until")
"""Members by which a forget chooses memories where it names none."""
_DEFAULT_LIMIT = 20
"""How many memories the daemon forgets by filters when it is told no number."""


def judge_forget(step: AskedStep, said: SaidBefore) -> Iterator[Outcome]:
    """Judge the step of a tool that forgets; `said` is what earlier steps spoke of."""
    asked = asked_ids(step.given)
    mode = step.given.get("mode")
    executed = [call for call in step.calls if call.accepted and (ids_forgotten(call) or is_executed(call))]
    changing = next((call for call in step.calls if call.operation in CHANGES and said.unasked_ids(call)), None)
    if changing is not None:
        yield not_asked(changing, step, "a memory is changed by a tool that was to forget one")
    elif mode == "preview":
        late = all(ids_forgotten(call) and ids_forgotten(call) <= said.forgets for call in executed)
        yield PASS if late else _other_mode(executed[0], step, "a preview was asked for, and memories are forgotten")
    elif not executed:
        yield from _judge_previews(step, asked)
    elif asked:
        yield _judge_forgotten_ids(step, asked, executed, said)
    else:
        yield _judge_forgotten_by_filter(step, executed, said)


def _judge_previews(step: AskedStep, asked: set[str]) -> Iterator[Outcome]:
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


def _judge_forgotten_ids(step: AskedStep, asked: set[str], executed: Sequence[Call], said: SaidBefore) -> Outcome:
    for call in executed:
        ids = ids_forgotten(call)
        if not ids:
            named = ", ".join(name for name in _FILTERS if call.body.get(name))
            return fail(
                call,
                message=f"step {step.mark.index}: memories are forgotten by {named or 'no choice at all'},"
                " where the tool was given ids",
                pointer=in_body("ids"),
                expected=list_some(asked),
                received={name: call.body[name] for name in _FILTERS if call.body.get(name)},
                fold="by filter",
            )
        if others := ids - asked - said.forgets:
            return fail(
                call,
                message=f"step {step.mark.index}: a memory is forgotten that the tool was not asked to forget",
                pointer="/request/path" if call.operation == DELETE else in_body("ids"),
                expected=list_some(asked),
                received=list_some(others),
                fold="other id",
            )
    attempted = {identifier for call in step.calls for identifier in ids_forgotten(call)}
    missing = asked - attempted
    return missing_ids(step, sorted(missing)) if missing else PASS


def _judge_forgotten_by_filter(step: AskedStep, executed: Sequence[Call], said: SaidBefore) -> Outcome:
    asked = {name: step.given[name] for name in _FILTERS if step.given.get(name)}
    if not asked:
        return undecided(executed[0], message=f"step {step.mark.index}: the tool was given neither ids nor a choice")
    for call in executed:
        ids = ids_forgotten(call)
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
        elif ids - said.forgets - _previewed(step, asked):
            return fail(
                call,
                message=f"step {step.mark.index}: the tool was given {', '.join(asked)}, and what a search found for it"
                " is forgotten",
                pointer="/request/path" if call.operation == DELETE else in_body("ids"),
                expected=", ".join(f"{name} {value!r}" for name, value in asked.items()),
                received=list_some(ids),
                fold="found",
            )
    return PASS


def _limit_of(forget: Call) -> float:
    limit = forget.body.get("limit")
    return _DEFAULT_LIMIT if limit is None else _number(limit)


def _number(value: object) -> float:
    try:
        return float(str(value))
    except ValueError:
        return inf


def _previewed(step: AskedStep, asked: Mapping[str, Any]) -> set[str]:
    """The ids that a preview of the same choice was answered with."""
    same = (call for call in step.calls if all(is_value(call.body.get(name), asked[name]) for name in asked))
    return {identifier for call in same for identifier in _found_by(call)}


def _found_by(preview: Call) -> set[str]:
    """The ids of the memories that a preview was answered with."""
    listed = (preview.answer or {}).get("candidates")
    rows = listed if isinstance(listed, list) else []
    return {identifier_in(row.get("id")) for row in rows if isinstance(row, dict)}


def _other_mode(call: Call, step: AskedStep, message: str) -> Finding:
    return fail(
        call,
        message=f"step {step.mark.index}: {message}",
        pointer=in_body("mode"),
        expected=str(step.given.get("mode", "preview")),
        received=call.body.get("mode", f"{call.method} {call.path}"),
        fold="mode",
    )
