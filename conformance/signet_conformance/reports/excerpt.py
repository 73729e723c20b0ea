"""The exchanges around a breach, one line each: number, method, path, key, agent, answer."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from http import HTTPStatus

from signet_conformance.errors import printable
from signet_conformance.facts import AGENT_CALLS, GET, MEMORY_SEARCH, NOTIFY, Call, Recording
from signet_conformance.reports.mark_words import mark_words
from signet_conformance.trace import Exchange, Mark
from signet_conformance.trace.marks import SentMark, SkippedMark, StepMark, read_mark
from signet_conformance.trace.model import NOT_CARRIED

_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
MAX_MARKS = 4
"""Marks beside a breach; of more, those nearest to it."""
_WITH_AGENT = AGENT_CALLS | {GET, MEMORY_SEARCH, NOTIFY}


def call_line(call: Call) -> str:
    """One call as one printable line: `#12 POST /api/hooks/session-end key=… agent=… -> 200`.

    Behind the status of a refusal stands the reason that the daemon gives.
    """
    parts = [f"#{call.seq}", printable(call.method, 16), printable(call.path, 100)]
    if call.key is not None:
        parts.append(f"key={short_key(call.key)}")
    if names_agent(call):
        parts.append(f"agent={printable(call.agent, 40)}")
    parts.append(f"-> {_answer(call.exchange)}")
    if call.fault is not None:
        parts.append(f"[fault: {printable(call.fault, 20)}]")
    elif call.status is not None and call.status >= HTTPStatus.BAD_REQUEST and call.answer and "error" in call.answer:
        parts.append(printable(json.dumps(call.answer["error"], ensure_ascii=False), 100))
    return " ".join(parts)


def short_key(key: str) -> str:
    """A session key as a line shows it: of each UUID in it the ends, which tell it from others of one recording."""
    return printable(_UUID.sub(lambda uuid: f"{uuid[0][:8]}…{uuid[0][-4:]}", key), 40)


def names_agent(call: Call) -> bool:
    """Whether a call's agent is known: its operation takes one and its body is whole."""
    return call.operation in _WITH_AGENT and not call.cut


def _answer(exchange: Exchange) -> str:
    error = None if exchange.error is None else printable(exchange.error, 40)
    if exchange.error == NOT_CARRIED and exchange.response is None:
        return "no answer (the recorder could not carry it)"
    if exchange.is_unhandled:
        return "no answer (the client left before its request was complete)"
    if exchange.response is None:
        return f"no answer ({error})" if error else "no answer"
    return f"{exchange.response.status} ({error})" if error else str(exchange.response.status)


def excerpt(recording: Recording, seq: int, around: int = 2) -> Iterator[tuple[bool, str]]:
    """The exchanges and marks near number `seq`, as (is it this number, line); `around` exchanges on each side.

    Of more than a few marks the nearest are shown, and none that tells only of the kit or of what did not happen.
    """
    index = bisect_left(recording.calls, seq, key=lambda call: call.seq)
    shown = recording.calls[max(0, index - around) : index + around + 1]
    numbers = [call.seq for call in shown] + [seq]
    lines = [(call.seq, call_line(call)) for call in shown]
    marks = [mark for mark in _telling(recording.trace.marks) if min(numbers) <= mark.seq <= max(numbers)]
    nearest = sorted(marks, key=lambda mark: abs(mark.seq - seq))[:MAX_MARKS]
    lines += [(mark.seq, f"#{mark.seq} {mark_words(mark, 80)}") for mark in nearest]
    for number, line in sorted(lines):
        yield number == seq, line


def _telling(marks: Sequence[Mark]) -> Iterator[Mark]:
    """The marks that help to understand the exchanges beside them."""
    told = [(mark, read_mark(mark)) for mark in marks]
    skipped = {said.index for _, said in told if isinstance(said, SkippedMark)}
    for mark, said in told:
        left_out = isinstance(said, StepMark) and said.index in skipped
        if not left_out and not isinstance(said, SkippedMark | SentMark):
            yield mark
