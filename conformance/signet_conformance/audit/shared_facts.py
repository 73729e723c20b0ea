"""Verdicts that rest on several recordings of one session, or of one idempotency key.

Each recording is judged alone first. This module joins the parts of a session whose hooks are in several files:
END-005 is judged over all parts, and HEALTH-001, START-004, PROMPT-005 and END-002 know what an earlier part began.
A key that two recorders saw at the same time, or for two projects or sessions, breaches SESS-001. An idempotency key
with two contents in two recordings breaches REM-002.

The rows are read several times, each time for a share of the keys, so that memory stays bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf

from msgspec import Struct, field

from signet_conformance.audit.rows import BreachRow, RecordingRow, Row, SaveRow, SessionRow
from signet_conformance.facts import END

MOST_OTHERS = 20
_MOST_NAMED = 1000
"""How many recordings of one key are named as breaching; a constant key occurs in every recording."""
KEYS_AT_ONCE = 200_000
_ENDED, _PROMPT_STARTED = "SIG-END-005", "SIG-PROMPT-005"
_PROBED = "SIG-HEALTH-001"
_OF_FIRST_PART = ("SIG-START-004", "SIG-END-002")
"""Only the first part of a session can breach these: later parts continue it."""
_DISTINCT, _ONE_CONTENT = "SIG-SESS-001", "SIG-REM-002"

Rows = Callable[[], Iterable[Row]]


class SharedFacts(Struct):
    """What recordings show together.

    `settled` holds (recording, requirement, session) whose findings are dropped; `added`, by recording, the breaches
    that it does not show alone. `joined` counts the joined sessions.
    """

    settled: set[tuple[str, str, str]] = field(default_factory=set)
    added: dict[str, list[BreachRow]] = field(default_factory=dict)
    joined: int = 0

    def add(self, row: BreachRow) -> None:
        """Add a breach that only several recordings show."""
        self.added.setdefault(row.recording, []).append(row)


class _Part(Struct, frozen=True):
    """One recording's part of a session: its row, its recorder, and the place of the recording among all."""

    row: SessionRow
    recorder: str | None
    place: int


def between(rows: Rows, keys: int) -> SharedFacts:
    """Find what only all recordings together show. `keys` is the number of session keys and idempotency keys."""
    result = SharedFacts()
    shares = max(1, -(-keys // KEYS_AT_ONCE))
    for share in range(shares):
        for parts, saves in _shared_keys(rows, share, shares):
            if parts:
                _judge_session(parts, result)
            else:
                _judge_saves(saves, result)
    for added in result.added.values():
        added.sort(key=lambda row: (row.requirement, row.exchanges))
    return result


def _shared_keys(rows: Rows, share: int, shares: int) -> Iterator[tuple[list[_Part], list[tuple[SaveRow, int]]]]:
    """Yield the parts, or the saves, of each key of a share that occurs in several recordings, in row order."""
    sessions: dict[str, list[_Part]] = {}
    saves: dict[tuple[str | None, str], list[tuple[SaveRow, int]]] = {}
    recording: RecordingRow | None = None
    place = 0
    for row in rows():
        if isinstance(row, RecordingRow):
            recording, place = row, place + 1
        elif isinstance(row, SessionRow) and int(row.session[:8], 16) % shares == share:
            recorder = None if recording is None else recording.recorder
            sessions.setdefault(row.session, []).append(_Part(row, recorder, place))
        elif isinstance(row, SaveRow) and int(row.idempotency[:8], 16) % shares == share:
            connector = None if recording is None else recording.connector
            saves.setdefault((connector, row.idempotency), []).append((row, place))
    yield from ((parts, []) for parts in sessions.values() if len(parts) > 1)
    yield from (([], same) for same in saves.values() if same[0][1] != same[-1][1])


# -- sessions


def _judge_session(parts: list[_Part], result: SharedFacts) -> None:
    mixed = _mixed(parts)
    if mixed:
        names = [part.row.recording for part in parts]
        for part in mixed[:_MOST_NAMED]:
            row = part.row
            others = tuple(name for name in names[: MOST_OTHERS + 1] if name != row.recording)[:MOST_OTHERS]
            result.add(_breach(_DISTINCT, row, row.first_exchange, "/request/body/json/sessionKey", others))
        return
    if any(part.row.first is None for part in parts):
        return  # their order is not known
    _join(sorted(parts, key=lambda part: (part.row.first or 0.0, part.place)), result)


def _mixed(parts: Sequence[_Part]) -> list[_Part]:
    """The parts of a key that show several sessions, by project, native id or time; empty if it may be one session."""
    if len({part.recorder for part in parts if part.recorder is not None}) < 2:
        return []
    known = [part for part in parts if part.recorder is not None]
    for fact in ("project", "native"):
        if len({getattr(part.row, fact) for part in known} - {None}) > 1:
            return known
    timed = sorted((part for part in known if part.row.first is not None), key=lambda part: part.row.first or 0.0)
    latest: _Part | None = None
    for part in timed:
        overlaps = latest is not None and (part.row.first or 0.0) < (latest.row.last or -inf)
        if latest is not None and overlaps and part.recorder != latest.recorder:
            return known
        if latest is None or (part.row.last or -inf) > (latest.row.last or -inf):
            latest = part
    return []


def _join(parts: Sequence[_Part], result: SharedFacts) -> None:
    """Judge the parts of a session, which are in the order of time, as one session."""
    result.joined += 1
    rows = [part.row for part in parts]
    recorders = [part.recorder for part in parts]
    started = any(row.starts for row in rows)
    ended = rows[-1].last_operation == END
    for row in rows if ended else rows[:-1]:
        result.settled.add((row.recording, _ENDED, row.session))
    if started and not ended and not rows[-1].starts:
        others = tuple(row.recording for row in rows[:-1])[-MOST_OTHERS:]
        result.add(_breach(_ENDED, rows[-1], rows[-1].last_exchange, "/request/path", others))
    for number, row in enumerate(rows[1:], 1):
        for requirement in _OF_FIRST_PART:
            result.settled.add((row.recording, requirement, row.session))
        if recorders[number] is not None and recorders[number] in recorders[:number]:
            # The same recorder saw the probe. If the recorder was restarted, the connector may have been, too.
            result.settled.add((row.recording, _PROBED, row.session))
    if started:
        result.settled.update((row.recording, _PROMPT_STARTED, row.session) for row in rows)


# -- saves


def _judge_saves(saves: list[tuple[SaveRow, int]], result: SharedFacts) -> None:
    first = min(saves, key=lambda each: (inf if each[0].at is None else each[0].at, each[1]))[0]
    breaching = [row for row, _ in saves if row.content != first.content and row.recording != first.recording]
    for row in breaching[:_MOST_NAMED]:
        pointer = "/request/body/json/idempotencyKey"
        result.add(_breach(_ONE_CONTENT, row, row.exchange, pointer, (first.recording,)))


def _breach(
    requirement: str, row: SessionRow | SaveRow, exchange: int, pointer: str, others: tuple[str, ...]
) -> BreachRow:
    return BreachRow(
        recording=row.recording,
        requirement=requirement,
        verdict="WARN",
        session=row.session if isinstance(row, SessionRow) else None,
        exchanges=(exchange,),
        pointer=pointer,
        between=others,
    )
