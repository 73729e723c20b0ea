"""Prepare values and marks of a trace for reports: bounded, and harmless for a terminal and a JSON reader."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

from msgspec import UNSET, Struct

from signet_conformance.errors import counted, printable
from signet_conformance.files.json_values import ABSENT, map_leaves, names_in
from signet_conformance.finding import Finding
from signet_conformance.trace import Body, Exchange, Mark, marks

MAX_TEXT = 400
MAX_ITEMS = 20
MAX_DEPTH = 6
_LARGEST_INTEGER = 10**300


def shorten(value: Any, depth: int = MAX_DEPTH) -> Any:
    """`value` as a JSON value of bounded size; a note replaces what was left out.

    Numbers that JSON does not have (not a number, infinite) become text.
    """
    match value:
        case None | bool():
            return value
        case str():
            return value if len(value) <= MAX_TEXT else f"{value[:MAX_TEXT]}… ({len(value)} characters)"
        case int():
            return value if abs(value) < _LARGEST_INTEGER else f"an integer of {value.bit_length()} bits"
        case float():
            return value if isfinite(value) else str(value)
        case dict():
            return _shortened_object(value, depth)
        case list() | tuple():
            if depth == 0:
                return f"a list of {counted(len(value), 'item')}"
            items = [shorten(item, depth - 1) for item in value[:MAX_ITEMS]]
            return [*items, f"… {len(value) - MAX_ITEMS} more"] if len(value) > MAX_ITEMS else items
        case _:
            return shorten(str(value), depth)


def finite(value: Any) -> Any:
    """`value` at its full length; numbers that JSON does not have become text."""
    return map_leaves(value, lambda leaf: str(leaf) if isinstance(leaf, float) and not isfinite(leaf) else leaf)


def _shortened_object(value: dict[Any, Any], depth: int) -> Any:
    if depth == 0:
        return f"an object of {counted(len(value), 'member')}"
    members = list(value.items())
    result = {shorten(str(name)): shorten(item, depth - 1) for name, item in members[:MAX_ITEMS]}
    if len(members) > MAX_ITEMS:
        result["…"] = f"{len(members) - MAX_ITEMS} more"
    return result


def as_text(value: Any, limit: int) -> str:
    """`value` as one printable line of JSON of at most about `limit` characters."""
    return printable(json.dumps(shorten(value), ensure_ascii=False), limit)


def cell(value: object, limit: int = 120) -> str:
    """A name for a table cell: printable, and not a formula if it is pasted into a spreadsheet."""
    shown = printable(value, limit)
    return f"'{shown}" if shown.startswith(("=", "+", "-", "@")) else shown


def received_text(finding: Finding, exchange: Exchange | None) -> str:
    """The received value of a finding as one printable line: JSON, `nothing: the member is absent`, or empty.

    A finding holds None both for null and for an absent member; the exchange's line tells them apart.
    """
    received = finding.received
    if received is None:
        if exchange is None or not finding.pointer:
            return ""
        received = _at(exchange, finding.pointer)
    return "nothing: the member is absent" if received is ABSENT else as_text(received, 300)


def is_absent(pointer: str, exchange: Exchange) -> bool:
    """Whether the line of an exchange has no member at a pointer; null is a member."""
    return _at(exchange, pointer) is ABSENT


def _at(exchange: Exchange, pointer: str) -> Any:
    value: Any = exchange
    for name in names_in(pointer):
        if isinstance(value, Struct) and name in value.__struct_fields__:
            value = getattr(value, name)
        elif isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list | tuple) and name.isdecimal() and name.isascii() and int(name[:9]) < len(value):
            value = value[int(name[:9])]
        else:
            return ABSENT
    if isinstance(value, Body):
        shown = {str(value.kind): value.value, "media_type": value.media_type, "size": value.size}
        return {name: part for name, part in shown.items() if part is not None}
    return ABSENT if value is UNSET else value


_LEAST_OF_HANDLER = 300
"""Characters. The text of an exception ends with its place in the code, which a smaller limit would cut off."""
_OUTCOMES = {marks.THROWN: "threw", marks.TIMED_OUT: "gave no answer", marks.SLOW: "was slow"}


def mark_words(mark: Mark, limit: int = 120) -> str:
    """Describe a mark in about `limit` characters; an unknown mark by its name and data."""
    typed = marks.read_mark(mark)
    describe = None if typed is None else _WORDS.get(type(typed))
    words = None if describe is None else describe(typed)
    if not words:
        data = f" {as_text(dict(mark.data), limit)}" if mark.data else ""
        return f"mark {printable(mark.name, 40)}{data}"
    return printable(words, max(limit, _LEAST_OF_HANDLER) if isinstance(typed, marks.HandlerMark) else limit)


def _reinstalled(mark: marks.ReinstalledMark) -> str:
    counts = [f"{len(mark.twice)} entries twice"] if mark.twice else []
    counts += [f"{len(mark.old)} old"] if mark.old else []
    counts += [f"{len(mark.changed)} of others changed"] if mark.changed else []
    counts += [mark.words] if mark.words else []
    over = f" {mark.older}" if mark.older else ""
    return f"installed {mark.how or ''}{over}" + (f": {', '.join(counts)}" if counts else "")


def _scenario(mark: marks.ScenarioMark) -> str | None:
    return mark.name and f"scenario {mark.name}{f': {mark.title}' if mark.title else ''}"


def _scenario_end(mark: marks.ScenarioEndMark) -> str:
    return f"scenario {mark.name} ends" if mark.error is None else f"scenario {mark.name} broke off: {mark.error}"


def _step(mark: marks.StepMark) -> str | None:
    if mark.step is None:
        return None
    number = "" if mark.index is None else f" {mark.index}"
    what = " ".join(filter(None, (mark.step, mark.tool)))
    who = "".join(f" {word} {name}" for word, name in (("in", mark.session), ("as", mark.agent)) if name)
    quoted = f', "{mark.text}"' if mark.text else ""
    return f"step{number}: {what}{who}{quoted}"


def _skipped(mark: marks.SkippedMark) -> str:
    number = "" if mark.index is None else f" {mark.index}"
    return f"step{number} is skipped: {mark.reason}"


def _handler(mark: marks.HandlerMark) -> str | None:
    if mark.event is None or mark.outcome is None:
        return None
    # A handler that was only slow has ended well.
    status = "" if mark.status is None or mark.outcome == "slow" else f" with status {mark.status:g}"
    took = "" if mark.ms is None else f" after {mark.ms:.0f} ms"
    became = _OUTCOMES.get(mark.outcome, mark.outcome)
    return f"handler of {mark.event} {became}{status}{took}{f': {mark.text}' if mark.text else ''}"


def _senders(mark: marks.SentMark) -> str | None:
    places = ", ".join(f"{request[1]} by {request[2]}" for request in mark.requests if len(request) > 2)
    return f"sent {places}" if places else None


def _loaded(mark: marks.LoadedMark) -> str | None:
    host = marks.name_host(mark, "")
    if mark.ok is True:
        return f"the connector is loaded{f' by {host}' if host else ''}"
    return f"the connector cannot be loaded: {mark.words}" if mark.ok is False and mark.words else None


def _registered(mark: marks.RegisteredMark) -> str:
    numbers = {"handlers": mark.handlers, "tools": mark.tools, "others": mark.others, "refused": mark.refused}
    taken = ", ".join(f"{number} {name}" for name, number in numbers.items() if number is not None)
    return f"the host took {taken or 'something'}{'' if mark.mode is None else f' in the mode {mark.mode}'}"


def _left_words(mark: marks.LeftMark) -> str:
    if mark.command is None:
        return "no process of the connector keeps running after its harness"
    after = "" if mark.after_s is None else f" {mark.after_s:g} s after its harness"
    return f"a process of the connector keeps running{after}: {mark.command}"


def _stray(mark: marks.StrayMark) -> str:
    where = mark.address or "the default port"
    return f"{mark.method} {mark.path} went to {where}, not to the address that the connector was given"


def _fault(mark: marks.FaultMark) -> str | None:
    if mark.is_restart:
        return "the daemon is restarted"
    if mark.kind is None:
        return None
    more = ", ".join(f"{name} {as_text(value, 60)}" for name, value in mark.other.items())
    where = " ".join(str(value) for value in (mark.match or {}).values()) or "every request"
    return f"fault {'on' if mark.is_on else 'off'}: {mark.kind}{f' ({more})' if more else ''} at {where}"


_WORDS: Mapping[type[marks.KitMark], Callable[..., str | None]] = {
    marks.ScenarioMark: _scenario,
    marks.ScenarioEndMark: _scenario_end,
    marks.StepMark: _step,
    marks.SkippedMark: _skipped,
    marks.SessionKeyMark: lambda mark: None if mark.key is None else f"the harness knows {mark.session} as {mark.key}",
    marks.ModelMark: lambda mark: f"the model is asked{f' in {mark.session}' if mark.session else ''}",
    marks.HandlerMark: _handler,
    marks.SentMark: _senders,
    marks.PrintedMark: lambda mark: mark.text and f"printed: {mark.text}",
    marks.LoadedMark: _loaded,
    marks.RegisteredMark: _registered,
    marks.ReinstalledMark: _reinstalled,
    marks.ToolAnswerMark: lambda mark: "the tool tells the model that it is done" if mark.done else None,
    marks.OfferedMark: lambda mark: f"offers the tools {', '.join(mark.tools)}",
    marks.LeftMark: _left_words,
    marks.StrayMark: _stray,
    marks.UnheardPortMark: lambda mark: f"the default port is not observed{f': {mark.words}' if mark.words else ''}",
    marks.RefusedMark: lambda mark: f"{mark.method} {mark.path} was refused as a web page's (Origin: {mark.by})",
    marks.NoRequestMark: lambda mark: mark.words and f"no request: {mark.words}",
    marks.RemarkMark: lambda mark: mark.text,
    marks.BypassMark: lambda mark: f"the user switches Signet {'off' if mark.is_on else 'on again'}",
    marks.OutageMark: lambda mark: "the daemon is away" if mark.is_on else "the daemon is back",
    marks.FaultMark: _fault,
}
"""Kind of mark to the function that describes it; it returns None for a mark without content."""
