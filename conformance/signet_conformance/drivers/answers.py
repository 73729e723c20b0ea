"""Marks from the answers of a driver: the loaded connector, failing handlers, sent requests, printed output.

An answer may come from a driver program of another author, so nothing about its shape is taken for granted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, TypeGuard

from signet_conformance.errors import printable
from signet_conformance.files.json_values import list_in, object_in, objects_in, text_in
from signet_conformance.scenarios.features import misspelt_steps
from signet_conformance.trace import marks

MAX_MARKS = 20
"""Marks for one step: a handler in a loop must not fill the recording."""
MAX_TEXT = 400
GRACE_S = 1.0
"""Time beyond the bound for a handler: a program has to start first."""
_READ = 2000
_MOST_TOOLS = 200
_LARGEST = 1e9
_ABSENT = (404, 405, 501)
_ERROR = re.compile(r"(?:Uncaught )?[\w.$]*(?:Error|Exception)\b")


_LATER = frozenset({"installed", "reinstalled", "registered", "observed", "unloaded"})
"""Members about a connector that may be reported after it was loaded."""


def loaded_marks(about: Mapping[str, Any], played: Mapping[str, Any]) -> Iterator[marks.KitMark]:
    """The marks of an answer to `hello`: the connector as the `played` host loaded it, and its installation."""
    if about.keys() - _LATER:
        awaits = {"awaits_compaction": True} if about.get("awaits_compaction") is True else {}
        yield marks.LoadedMark(ok=True, **{**played, **awaits})
    if (words := about.get("unloaded")) is not None:
        yield marks.LoadedMark(ok=False, words=str(words)[:600], **played)
    host = {name: played[name] for name in ("host", "release") if name in played}
    installed = (row for row in objects_in(about.get("installed")) if isinstance(row.get("accepted"), bool))
    yield from (_installed(row, host) for row in installed)
    yield from (_registered(row, host) for row in objects_in(about.get("registered")))
    yield from (_reinstalled(row, host) for row in objects_in(about.get("reinstalled")))
    yield from (_observed(row) for row in objects_in(about.get("observed")))
    yield from (marks.RemarkMark(text=str(text), unheard=True) for text in list_in(about.get("unheard")))
    remarks = (*misspelt_steps(about), *list_in(about.get("remarks")))
    yield from (marks.RemarkMark(text=str(text)) for text in remarks)
    if (printed := printed_mark(None, about)) is not None:
        yield printed


def _reinstalled(row: Mapping[str, Any], host: Mapping[str, Any]) -> marks.ReinstalledMark:
    lists = {name: tuple(str(text)[:600] for text in list_in(row.get(name))) for name in ("twice", "old", "changed")}
    texts = {name: str(row[name])[:600] for name in ("how", "older", "words") if name in row}
    return marks.ReinstalledMark(**{"how": None, **texts, **lists, **host})


def _installed(row: Mapping[str, Any], host: Mapping[str, Any]) -> marks.InstalledMark:
    names = ("file", "words", "event", "elsewhere")
    texts: dict[str, Any] = {name: str(row[name])[:600] for name in names if row.get(name) is not None}
    operations = tuple(str(name) for name in list_in(row.get("operations"))[:5])
    flags: dict[str, Any] = {name: row.get(name) is True for name in ("accepted", "minor", "formerly")}
    return marks.InstalledMark(operations=operations, **flags, **texts, **host)


def _registered(row: Mapping[str, Any], host: Mapping[str, Any]) -> marks.RegisteredMark:
    counts = {name: row[name] for name in ("handlers", "tools", "others", "refused") if type(row.get(name)) is int}
    mode = row.get("mode")
    return marks.RegisteredMark(mode=None if mode is None else str(mode)[:60], **counts, **host)


def _observed(row: Mapping[str, Any]) -> marks.ObservedMark:
    args, members, env = (tuple(list_in(row.get(name))) for name in ("args", "members", "env"))
    return marks.ObservedMark(
        event=row.get("event"), occasion=row.get("occasion"), args=args, members=members, env=env,
        cwd=row.get("cwd"), ms=row.get("ms"), status=row.get("status"),
    )  # fmt: skip


def handler_marks(index: int, result: Mapping[str, Any], bound_s: float | None = None) -> Iterator[marks.HandlerMark]:
    """A mark for each handler that blocked the turn, timed out, threw, failed or was slow, at most MAX_MARKS.

    `index` is the number of the step that `result` answers. `bound_s` is the declared bound of such a step;
    None if none is declared.
    """
    return islice(_read_handlers(index, result, bound_s), MAX_MARKS)


def offered_mark(result: Mapping[str, Any]) -> marks.OfferedMark | None:
    """The mark of the tools that the connector offers; None if the step's answer does not list them."""
    offered = result.get("offered")
    if not isinstance(offered, dict):
        return None
    rows = islice(((name, members) for name, members in offered.items() if isinstance(members, list)), _MOST_TOOLS)
    return marks.OfferedMark(
        tools={
            printable(name, 80): tuple(printable(str(each), 80) for each in members[:_MOST_TOOLS])
            for name, members in rows
        }
    )


_CHANGING_TOOLS = ("memory_store", "memory_modify", "memory_forget")
_FLAGS = ("done", "success", "ok", "stored", "saved", "remembered", "updated", "modified", "deleted", "forgotten")
"""Members of a tool's answer that are true if it did what the model asked for."""


def tool_answer_mark(index: int, tool: str, result: Mapping[str, Any]) -> marks.ToolAnswerMark | None:
    """The mark of a tool whose answer explicitly reports success to the model; None for any other answer.

    Only tools that change memories get one.
    """
    if tool not in _CHANGING_TOOLS:
        return None
    content = object_in(result.get("content"))
    flags = [value for value in (result.get("done"), *map(content.get, _FLAGS)) if isinstance(value, bool)]
    failed = result.get("is_error") is True or bool(result.get("error") or content.get("error")) or False in flags
    stored = tool == "memory_store" and result.get("is_error") is False and isinstance(content.get("id"), str)
    return marks.ToolAnswerMark(index=index, done=True) if not failed and (True in flags or stored) else None


def _read_handlers(index: int, result: Mapping[str, Any], bound_s: float | None) -> Iterator[marks.HandlerMark]:
    for member in ("hooks", "calls"):
        for call in objects_in(result.get(member)):
            event = call.get("event")
            # An entry without an event is about something else, such as a request of the connector.
            if isinstance(event, str) and event and (outcome := _outcome(member, call, bound_s)) is not None:
                lost = call.get("lost") if isinstance(call.get("lost"), bool) else None
                measured = _measured(call, outcome)
                late_ms = call.get("late_ms") if _number(call.get("late_ms")) else None
                yield marks.HandlerMark(
                    index=index, event=printable(event, 80), outcome=outcome, lost=lost, late_ms=late_ms, **measured
                )


def _outcome(member: str, call: Mapping[str, Any], bound_s: float | None) -> str | None:
    status, ms = call.get("status"), call.get("ms")
    if call.get("blocked") is True:
        return marks.BLOCKED
    if call.get("timed_out") is True:
        return marks.TIMED_OUT
    if call.get("thrown"):
        # An entry with a status is an HTTP call: its error means that there was no answer, so nothing was thrown.
        return marks.THROWN if "status" not in call else marks.FAILED
    if _number(status) and (status != 0 if member == "hooks" else status >= 300 and status not in _ABSENT):
        return marks.FAILED
    return marks.SLOW if bound_s is not None and _number(ms) and ms > (bound_s + GRACE_S) * 1000 else None


def _measured(call: Mapping[str, Any], outcome: str) -> Mapping[str, Any]:
    """Status, milliseconds and the line about the error, as far as they are known.

    The standard output of a handler that was only slow is its answer, so no line is taken from it.
    """
    status, ms = call.get("status"), call.get("ms")
    outputs = (call.get(name) for name in ("thrown", "stderr", *(() if outcome == marks.SLOW else ("stdout",))))
    text = next((line for text in outputs if isinstance(text, str) and (line := _line(text))), None)
    return {"status": status if _number(status) else None, "ms": ms if _number(ms) else None, "text": text}


def _number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _LARGEST


def _line(text: str) -> str:
    """The line of the error, with the place in the code from the next line; without an error, the first line."""
    lines = [line.strip() for line in _whole_words(text, _READ).splitlines()]
    first = next((n for n, line in enumerate(lines) if _ERROR.match(line)), None)
    if first is None:
        return printable(_whole_words(next(filter(None, lines), ""), MAX_TEXT), MAX_TEXT)
    place = next((line for line in lines[first + 1 : first + 2] if line.startswith("at ")), "")
    return printable(_whole_words(f"{lines[first]} {place}".strip(), MAX_TEXT), MAX_TEXT)


def _whole_words(text: str, limit: int) -> str:
    """The text up to a limit, without a word that the limit cuts: half a secret would not be recognised."""
    return text if len(text) < limit else text[:limit].rpartition(" ")[0]


MAX_REQUESTS = 100
MAX_PLACES = 3
_MAX_TEXT = 500


def sent_mark(index: int, result: Mapping[str, Any]) -> marks.SentMark | None:
    """The mark of the requests that a step's code sent, with their places; None if its answer names none."""
    requests = tuple(islice(_requests(result.get("sent")), MAX_REQUESTS))
    return marks.SentMark(index=index, requests=requests) if requests else None


def _requests(sent: object) -> Iterator[tuple[str, ...]]:
    for request in objects_in(sent):
        method, path = request.get("method"), request.get("path")
        at = [place for place in list_in(request.get("at")) if isinstance(place, str) and place]
        if isinstance(method, str) and isinstance(path, str) and at:
            yield tuple(printable(text, _MAX_TEXT) for text in (method, path, *at[:MAX_PLACES]))


MAX_PRINTED = 8000
"""How many characters of the output in one step a recording keeps."""


def printed_mark(index: int | None, result: Mapping[str, Any]) -> marks.PrintedMark | None:
    """The mark of the connector's output in the step of that number; None if it printed nothing."""
    text = text_in(result.get("printed"))
    # Cut before a word: half a secret would not be recognised.
    return marks.PrintedMark(index=index, text=_whole_words(text, MAX_PRINTED)) if text.strip() else None
