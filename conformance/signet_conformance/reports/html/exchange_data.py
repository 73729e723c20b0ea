"""The exchanges of a trace as an HTML report carries them: a short row for each, and the bodies that fit.

Strings that repeat are stored once. What exceeds a budget is left out and counted; breaching exchanges come first. The
lines of the connector's code that sent a request are links into the reader's editor.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from msgspec import Struct, field

from signet_conformance.engine import JudgedTrace
from signet_conformance.errors import printable
from signet_conformance.facts import Call, Recording
from signet_conformance.files import shown_path
from signet_conformance.reports.command_lines import bytes_of, shell_command
from signet_conformance.reports.evidence import Source, names_agent, source_of
from signet_conformance.reports.html.page import Markup, asset, element, embedded, joined
from signet_conformance.reports.remarks import played
from signet_conformance.reports.timeline import findings_of
from signet_conformance.reports.values import finite, mark_words, shorten
from signet_conformance.trace import Body, Mark, Message
from signet_conformance.trace.marks import ScenarioMark, StepMark, marks_of, read_mark
from signet_conformance.trace.model import NOT_CAPTURED, NOT_WRITTEN

MAX_BODY = 16_000
"""Characters of one body."""
MAX_HEADERS = 60
MAX_MARKS = 20_000
MAX_MARK = 4_000
"""Characters of a mark's full text; a longer mark has only its line."""
AROUND = 2
"""How many exchanges on each side of a breaching one get their bodies before the others do."""


class Budget(Struct):
    """Characters left for a page: rows, bodies about breaches, other bodies."""

    rows: int = 4_000_000
    breaching: int = 2_000_000
    bodies: int = 2_000_000


class Strings:
    """Strings by number, each stored once. None is -1."""

    def __init__(self) -> None:
        self.kept: dict[str, int] = {}

    def number(self, text: str | None, limit: int = 200) -> int:
        """The number of a string, cut and made harmless for a reader."""
        return -1 if text is None else self.kept.setdefault(printable(text, limit), len(self.kept))


class _Kept(Struct):
    rows: list[list[int | float]] = field(default_factory=list)
    bodies: dict[int, Any] = field(default_factory=dict)


def exchange_data(judged: JudgedTrace, budget: Budget) -> str:
    """The data of a trace for the page's script, for one of the page's blocks. Uses up `budget`."""
    recording = judged.recording
    strings = Strings()
    beside = findings_of(judged)
    breaching = {seq for findings in beside.values() for _, finding in findings for seq in finding.exchanges}
    kept = _Kept()
    for call in _in_order(recording, breaching):
        row = _row(call, strings)
        budget.rows -= len(str(row))
        if budget.rows > 0 or call.seq in breaching:
            kept.rows.append(row)
    kept.rows.sort()
    rows = {int(row[0]) for row in kept.rows}
    near = _near(recording, breaching)
    for call in recording.calls:
        if call.seq in near:
            budget.breaching = _add_body(kept, call, budget.breaching)
    for call in recording.calls:
        if call.seq not in near and call.seq in rows:
            budget.bodies = _add_body(kept, call, budget.bodies)
            if budget.bodies <= 0:
                break
    marks = [_mark(mark) for mark in judged.trace.marks[: MAX_MARKS if budget.rows > 0 else 0]]
    budget.rows -= sum(map(len, map(str, marks)))
    return embedded(
        {
            **_about(judged),
            "show": shell_command(["signet-conformance", "show", judged.trace.path or "TRACE"]),
            "strings": list(strings.kept),
            "rows": kept.rows,
            "marks": marks,
            "found": {str(seq): list(_findings(findings)) for seq, findings in beside.items()},
            "sent": {str(seq): places for seq in sorted(breaching) if (places := _places(recording, seq))},
            "bodies": kept.bodies,
            "left_out": {"rows": len(recording.calls) - len(kept.rows), "bodies": len(kept.rows) - len(kept.bodies)},
        }
    )


def _about(judged: JudgedTrace) -> dict[str, Any]:
    trace = judged.trace
    scenario = next(marks_of(trace, ScenarioMark), None)
    hosts = {release.words: None for release in played([trace])}
    return {
        "file": printable(shown_path(trace.path or "trace"), 400),
        "target": printable(trace.header.target or "", 200),
        "created": printable(trace.header.created or "", 60),
        "daemon": printable(judged.daemon_version, 60),
        "host": "; ".join(hosts),
        "title": "" if scenario is None else printable(scenario.title or scenario.name or "", 300),
        "agents": [printable(agent, 200) for agent in trace.header.declared.agents],
        "bounds": dict(trace.header.declared.bounds_s),
    }


def _in_order(recording: Recording, breaching: set[int]) -> Iterator[Call]:
    """The breaching calls first, so that any budget includes them; then the others."""
    yield from (call for call in recording.calls if call.seq in breaching)
    yield from (call for call in recording.calls if call.seq not in breaching)


def _near(recording: Recording, breaching: set[int]) -> set[int]:
    numbers = [call.seq for call in recording.calls]
    near: set[int] = set()
    for place, seq in enumerate(numbers):
        if seq in breaching:
            near.update(numbers[max(0, place - AROUND) : place + AROUND + 1])
    return near


def _row(call: Call, strings: Strings) -> list[int | float]:
    """Number, second, milliseconds; numbers of method, path, operation, session, agent; status; error, fault."""
    return [
        call.seq,
        round(call.t0, 3),
        round((call.t1 - call.t0) * 1000),
        strings.number(call.method, 16),
        strings.number(call.path),
        strings.number(call.operation),
        strings.number(call.key),
        strings.number(call.agent if names_agent(call) else None),
        call.status or 0,
        strings.number(call.exchange.error, 40),
        strings.number(call.fault, 40),
    ]


def _findings(beside: Any) -> Iterator[list[str]]:
    for name, finding in beside:
        yield [finding.verdict.value, name, printable(finding.message, 300), printable(finding.pointer, 200)]


def _places(recording: Recording, seq: int) -> list[list[str | None]]:
    """The places in the connector's code that sent an exchange, each with the address that opens it in an editor."""
    return [[source.words, editor_address(source)] for source in source_of(recording, seq)]


def _mark(mark: Mark) -> list[Any]:
    """Number, second, name, one line of text, and the full text if the mark is the kit's and not too long.

    The line says what the user did in a step, and describes any other mark in words.
    """
    typed = read_mark(mark)
    whole = None if typed is None or len(str(typed.data)) > MAX_MARK else finite(typed.data)
    if isinstance(typed, StepMark) and typed.step is not None:
        line = printable(" ".join(filter(None, (typed.step, typed.session, typed.text))), 200)
    else:
        line = mark_words(mark, 200)
    return [mark.seq, round(mark.t, 3), printable(mark.name, 40), line, whole]


def _add_body(kept: _Kept, call: Call, room: int) -> int:
    """Add the body of a call if there is room; return the room that is left."""
    if room <= 0:
        return room
    request, response = call.exchange.request, call.exchange.response
    carried = [_message(request, request.query), None if response is None else _message(response)]
    room -= len(embedded(carried))
    if room > 0:
        kept.bodies[call.seq] = carried
    return room


def _message(message: Message, query: Any = ()) -> Mapping[str, Any]:
    pairs = [[printable(name, 100), printable(value, 1000)] for name, value in message.headers[:MAX_HEADERS]]
    data: dict[str, Any] = {"headers": pairs}
    if query:
        data["query"] = [[printable(name, 100), printable(value, 1000)] for name, value in query[:MAX_HEADERS]]
    if message.body is not None:
        data.update(body_data(message.body))
    return data


def body_data(body: Body) -> Mapping[str, Any]:
    """The kind and the text of a body, with JSON indented; of a long one the beginning, and its whole length."""
    if body.kind == "json":
        text = json.dumps(body.value, indent=1, ensure_ascii=False)
        if len(text) > MAX_BODY:
            # Each member is cut, because the beginning alone may be one long text.
            text = json.dumps(shorten(body.value), indent=1, ensure_ascii=False)
            return {"kind": "json", "body": text[:MAX_BODY], "note": "long values are cut"}
        return {"kind": "json", "body": text}
    text = str(body.value)
    data: dict[str, Any] = {"kind": body.kind, "body": text[:MAX_BODY]}
    if body.kind == "cut":
        lacks = body.undecoded in (NOT_CAPTURED, NOT_WRITTEN)
        data["note"] = body.undecoded if lacks else f"recorded in part only: {body.size} bytes"
    elif len(text) > MAX_BODY:
        data["note"] = f"{len(text)} characters, the first {MAX_BODY} of them shown"
    return data


EDITOR = "SIGNET_CONFORMANCE_EDITOR"
"""The environment variable that holds an editor of editors.json, an address of the user's own, or `none`."""
_ADDRESS = re.compile(r"(?!javascript:|data:|vbscript:)[a-z][a-z0-9+.-]*:\S+", re.IGNORECASE)


def editor_address(source: Source) -> str | None:
    """The address that opens an editor at a line, or None if no editor has one, as with `none`."""
    named = os.environ.get(EDITOR, "") or "vscode"
    editors: Mapping[str, str] = json.loads(asset("editors.json"))
    address = editors.get(named, named)
    if _ADDRESS.fullmatch(address) is None:
        return None
    file = quote(bytes_of((Path.cwd() / source.file).as_posix().lstrip("/")), safe="/")
    return address.replace("{file}", file).replace("{line}", str(source.line))


def linked_sources(sources: tuple[Source, ...]) -> Markup:
    """The places that led to a request, the innermost first, each as a link if an editor can open it."""
    parts: list[str | Markup] = []
    for source in sources:
        address = editor_address(source)
        parts += [", called at "] if parts else []
        parts.append(source.words if address is None else element("a", source.words, href=address))
    return joined(parts)
