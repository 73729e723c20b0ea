"""A recording that is too large to be held is judged as a small one is, to the last word of each finding."""

from __future__ import annotations

import gc
import json
import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from signet_conformance import engine
from signet_conformance.engine import JudgedTrace, judge
from signet_conformance.engine.folding import Tally
from signet_conformance.engine.pieces import SECOND_ROUND, by_pieces, rules_by
from signet_conformance.errors import TraceError
from signet_conformance.facts import NeedsWholeError, Recording
from signet_conformance.rules import builtin_rules, daemon_rules
from signet_conformance.trace import Trace, file_exchanges, read, reading
from signet_conformance.trace.file_exchanges import FileExchanges
from tests.rules.test_cases import CASES_OF
from tests.support.case_traces import DECLARED, KEYED, build
from tests.support.evidence import recordings

from .generated import TRACES, Line, as_trace

HEADER = b'{"kind":"header","format":"signet-trace/1"}\n'


@contextmanager
def nothing_is_held(piece_bytes: int = 1) -> Iterator[None]:
    """Each recording counts as a large one, and is judged in pieces of so many bytes, one exchange at least."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(reading, "HELD_BYTES", 0)
        patched.setattr(file_exchanges, "_PIECE_BYTES", piece_bytes)
        yield


def told(judged: JudgedTrace) -> dict[str, str]:
    """Every judgement in full, by requirement."""
    sides = (judged.judgements, judged.daemon, judged.harness)
    return {name: repr(judgement) for side in sides for name, judgement in side.items()}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One file that every example of a property writes anew."""
    return tmp_path_factory.mktemp("large") / "trace.jsonl"


def unmarked(file: Path, lines: list[Line]) -> Trace:
    """The trace of some lines as a recorder alone makes it, which knows of no steps."""
    return as_trace(file, [line for line in lines if line.get("name") != "step"])


def hook(operation: str, session: int, **body: Any) -> Any:
    """A call of a hook that the daemon answers."""
    body = {**KEYED, "sessionKey": f"s-{session}", **body}
    request = {"method": "POST", "path": f"/api/hooks/{operation}", "body": body}
    return {"request": request, "response": {"status": 200, "body": {"sessionKnown": True}}}


def in_pieces(trace: Trace) -> dict[str, Tally]:
    """The tallies of the rules that are judged over the pieces of a large recording, with the kit's own rules."""
    _, tallies = by_pieces(trace, None, [*builtin_rules(), *daemon_rules()], 1)
    return dict(tallies)


BESIDE = [
    *(hook("session-start", number) for number in (1, 2)),
    *(hook("user-prompt-submit", number, userMessage="Which host?") for number in (1, 2)),
]
"""Two sessions that stand in each other."""
PLANTED = {"declared": {**DECLARED, "canaries": {"<redacted:1>": "a planted secret"}}}
MARK = {"mark": "note", "data": {}}
ASKED = {"side": "model", "request": {"method": "POST", "path": "/v1/messages", "body": {"messages": []}}}


@settings(max_examples=60)
@given(lines=TRACES)
def test_any_trace_is_judged_session_by_session_as_a_whole(file: Path, lines: list[Line]) -> None:
    """Whatever is recorded, and however sessions stand in each other, one session after the other comes to the same."""
    bare = [line for line in lines if line.get("kind") != "mark"]
    held = told(judge(as_trace(file, bare)))
    with nothing_is_held():
        large = as_trace(file, bare)
        assert isinstance(large.exchanges, FileExchanges)
        assert large.exchanges.by_sessions() is not None
        assert told(judge(large)) == held


@settings(max_examples=40)
@given(lines=TRACES)
def test_any_large_trace_is_judged_as_a_small_one(file: Path, lines: list[Line]) -> None:
    """Whatever is recorded, pieces of one exchange come to what the whole comes to."""
    held = told(judge(unmarked(file, lines)))
    with nothing_is_held():
        large = unmarked(file, lines)
        assert isinstance(large.exchanges, FileExchanges)
        assert told(judge(large)) == held


@pytest.mark.parametrize("area", sorted({name.split("-")[1] for name in CASES_OF}))
def test_breaches_are_found_in_large_traces_too(area: str, tmp_path: Path) -> None:
    """Each case of each requirement has the judgement that it has in a small recording."""
    for requirement, cases in CASES_OF.items():
        for case in cases if requirement.split("-")[1] == area else ():
            name, only = tmp_path / "trace.jsonl", frozenset({requirement})
            held = told(judge(build(name, case["exchanges"], case.get("header")), only))
            with nothing_is_held(piece_bytes=400):
                assert told(judge(read(name), only)) == held, case["id"]


@pytest.mark.parametrize("recording", [pytest.param(file, id=file.stem) for file in recordings()[::3]])
def test_recordings_of_connectors_are_judged_alike(recording: Path, tmp_path: Path) -> None:
    """Recordings of real connectors, as they are and without the kit's marks, come to the same in pieces."""
    bare = tmp_path / "bare.jsonl"
    lines = recording.read_bytes().splitlines(keepends=True)
    bare.write_bytes(b"".join(line for line in lines if json.loads(line).get("kind") != "mark"))
    for name in (recording, bare):
        held = told(judge(read(name)))
        with nothing_is_held(piece_bytes=8000):
            assert told(judge(read(name))) == held


def test_rules_by_exchange_and_by_session_are_judged_in_pieces(tmp_path: Path) -> None:
    """Each that finds nothing in sessions beside each other: the whole recording is held for no other."""
    held = judge(build(tmp_path / "trace.jsonl", BESIDE, PLANTED))
    judgements = {**held.judgements, **held.daemon}
    by_session = {name for name in rules_by("session") if not judgements[name].findings}
    with nothing_is_held():
        tallies = in_pieces(read(tmp_path / "trace.jsonl"))
    assert tallies.keys() == {*rules_by("exchange"), *SECOND_ROUND, *by_session}


@pytest.mark.parametrize(("more", "growing"), [([MARK], False), ([ASKED], False), ([], True)])
def test_only_rules_by_exchange_are_judged_in_pieces(more: list[Any], growing: bool, tmp_path: Path) -> None:
    """A recording that marks or a model's side explain, or that still grows, is not taken apart by sessions."""
    with nothing_is_held():
        trace = replace(build(tmp_path / "trace.jsonl", [*BESIDE, *more], PLANTED), growing=growing)
        assert in_pieces(trace).keys() == rules_by("exchange").keys()


def test_breaches_of_sessions_are_told_in_the_order_of_the_rule(tmp_path: Path) -> None:
    """Where sessions stand in each other, a rule by session that finds a breach is left to the whole recording."""
    mine, others = (hook("user-prompt-submit", number, userMessage="") for number in (1, 2))
    with nothing_is_held():
        after = in_pieces(build(tmp_path / "trace.jsonl", [mine, mine, others, others], PLANTED))
        between = in_pieces(build(tmp_path / "trace.jsonl", [mine, others, others, mine], PLANTED))
    broken = {name for name, tally in after.items() if tally.findings}
    assert {"SIG-START-004", "SIG-PROMPT-001"} <= broken
    assert after.keys() - between.keys() == broken & rules_by("session").keys()


def test_a_judged_piece_is_freed_at_once() -> None:
    """Nothing that a rule asks of a piece refers back to it: no collector runs meanwhile, and memory would grow."""
    rules = {**rules_by("exchange"), **rules_by("session")}
    gc.disable()
    try:
        for path in recordings()[::5]:
            piece = Recording(read(path), piece=True, of_sessions=True)
            for rule in rules.values():
                with suppress(NeedsWholeError):
                    list(rule(piece))
            freed = weakref.ref(piece)
            del piece
            assert freed() is None, path.name
    finally:
        gc.enable()


def test_more_breaches_than_are_explained(tmp_path: Path) -> None:
    """Of hundreds of breaches of one requirement a large recording explains as many as a small one."""
    bad: Any = {"request": {"method": "POST", "path": "/api/hooks/session-start", "body": {"source": 7}}}
    held = told(judge(build(tmp_path / "trace.jsonl", [bad] * 450)))
    with nothing_is_held(piece_bytes=20_000):
        assert told(judge(build(tmp_path / "trace.jsonl", [bad] * 450))) == held


@pytest.mark.parametrize("lines", ["\n", ". ", " ox "], ids=["lines", "sentences", "letters"])
def test_a_repeated_inject_is_found_among_many(lines: str, tmp_path: Path) -> None:
    """Whichever answer it came with; what was said before anything was injected repeats nothing."""

    def hook(name: str, session: int, said: str, inject: str = "") -> Any:
        body = {"harness": "openclaw", "sessionKey": f"s-{session}", "userMessage": said}
        request = {"method": "POST", "path": f"/api/hooks/{name}", "body": body}
        return {"request": request, "response": {"status": 200, "body": {"sessionKnown": True, "inject": inject}}}

    injects = [
        lines.join(["Notes of the week", f"The staging host of team {number} is called atlas", "Ask before a change"])
        for number in range(30)
    ]
    items = [hook("user-prompt-submit", 30, injects[4]), hook("user-prompt-submit", 0, "Which host?", injects[0])]
    items += [hook("session-start", number, "", inject) for number, inject in enumerate(injects)]
    items += [
        hook("user-prompt-submit", 28, f"It says: {injects[4]}. Why?"),
        hook("user-prompt-submit", 29, "And now?"),
    ]
    held = told(judge(build(tmp_path / "trace.jsonl", items)))
    with nothing_is_held(piece_bytes=400):
        judged = judge(build(tmp_path / "trace.jsonl", items))
    assert told(judged) == held
    judgement = judged.judgements["SIG-PROMPT-007"]
    assert [finding.exchanges for finding in judgement.findings] == [(33, 7)]
    assert judgement.subjects == 32


def test_damage_within_a_large_recording_is_told_with_its_line(tmp_path: Path) -> None:
    """A line whose end is broken is found when its exchange is judged, and named."""
    name = tmp_path / "a.jsonl"
    good = b'{"kind":"exchange","seq":%d,"t0":0,"t1":1,"request":{"method":"GET","path":"/health"}}\n'
    broken = b'{"kind":"exchange","seq":2,"t0":0,"request":{"method":"GET","path":"/health"}}\n'
    name.write_bytes(HEADER + good % 1 + broken + good % 3)
    with nothing_is_held(), pytest.raises(TraceError, match="t0 and t1") as caught:
        judge(read(name))
    assert str(caught.value.where).endswith("a.jsonl:3")


def test_lines_out_of_order_are_taken_by_their_numbers(tmp_path: Path) -> None:
    """A recorder writes a line when its exchange has ended; a large recording is sorted as a small one is."""
    name = tmp_path / "a.jsonl"
    line = '{"kind":"exchange","seq":%d,"t0":0,"t1":1,"request":{"method":"GET","path":"/health"}}\n'
    name.write_text('{"kind":"header","format":"signet-trace/1"}\n' + "".join(line % seq for seq in (2, 5, 1, 9, 4)))
    with nothing_is_held():
        exchanges = read(name).exchanges
        assert [exchange.seq for exchange in exchanges] == [1, 2, 4, 5, 9]
        assert [exchange.seq for exchange in exchanges[1:3]] == [2, 4]
        assert exchanges[-1].line == 5


def test_workers_come_to_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several processes judge a recording, held or not, to the same judgements in the same order."""
    monkeypatch.setattr(engine, "_LONG", 0)
    bare = tmp_path / "bare.jsonl"
    lines = b"".join(path.read_bytes().partition(b"\n")[2] for path in recordings()[:1]).splitlines(keepends=True)
    bare.write_bytes(HEADER + b"".join(line for line in lines if json.loads(line).get("kind") != "mark"))
    held = told(judge(read(bare)))
    assert list(told(judge(read(bare), workers=3)).items()) == list(held.items())
    with nothing_is_held(piece_bytes=4000):
        assert list(told(judge(read(bare), workers=3)).items()) == list(held.items())


def test_broken_line_is_told_by_whichever_worker_meets_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first broken line is the one that is named, though workers read the pieces beside each other."""
    monkeypatch.setattr(engine, "_LONG", 0)
    name = tmp_path / "a.jsonl"
    good = b'{"kind":"exchange","seq":%d,"t0":0,"t1":1,"request":{"method":"GET","path":"/health"}}\n'
    broken = b'{"kind":"exchange","seq":%d,"t0":0,"request":{"method":"GET","path":"/health"}}\n'
    name.write_bytes(HEADER + b"".join((broken if seq in (4, 7) else good) % seq for seq in range(1, 9)))
    with nothing_is_held(), pytest.raises(TraceError) as caught:
        judge(read(name), workers=2)
    assert str(caught.value.where).endswith("a.jsonl:5")


@pytest.mark.parametrize("how", ["cut", "written over"])
def test_change_of_a_file_that_is_read_is_told(how: str, tmp_path: Path) -> None:
    """A line that can no longer be read is blamed on whoever wrote to the file meanwhile."""
    name = tmp_path / "a.jsonl"
    line = b'{"kind":"exchange","seq":2,"t0":0,"t1":1,"request":{"method":"GET","path":"/health"}}\n'
    name.write_bytes(HEADER + line)
    with nothing_is_held():
        exchanges = read(name).exchanges
        with name.open("r+b") as stream:
            if how == "cut":
                stream.truncate(len(HEADER) + 40)
            else:
                stream.write(HEADER + bytes(20))
        os.utime(name, ns=(0, 0))
        with pytest.raises(TraceError, match="the file changed while it was read") as caught:
            exchanges[0]
    assert caught.value.where == f"{name}:2"


def test_rules_by_exchange_and_by_session_are_built_in() -> None:
    """Only rules of the kit are asked piece by piece; what a user's own rule looks at nobody knows."""
    known = {*builtin_rules(), *daemon_rules()}
    assert {*rules_by("exchange"), *rules_by("session"), *SECOND_ROUND} <= known
    assert rules_by("exchange").keys().isdisjoint(rules_by("session"))


def test_recording_that_is_shared_is_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What several processes judge, each reads for itself; a driven recording is held, since its marks tell of all."""
    monkeypatch.setattr(reading, "SHARED_BYTES", 0)
    name = tmp_path / "a.jsonl"
    name.write_bytes(
        HEADER + b'{"kind":"exchange","seq":1,"t0":0,"t1":1,"request":{"method":"GET","path":"/health"}}\n'
    )
    assert isinstance(read(name, workers=2).exchanges, FileExchanges)
    assert isinstance(read(name).exchanges, tuple)
    with name.open("ab") as stream:
        stream.write(b'{"kind":"mark","seq":2,"t":1,"name":"step"}\n')
    assert isinstance(read(name, workers=2).exchanges, tuple)


def test_session_that_is_too_large_leaves_no_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A recording with a session that cannot be held whole is judged exchange by exchange, to the same judgements."""
    bare = tmp_path / "bare.jsonl"
    lines = recordings()[0].read_bytes().splitlines(keepends=True)
    bare.write_bytes(b"".join(line for line in lines if json.loads(line).get("kind") != "mark"))
    held = told(judge(read(bare)))
    monkeypatch.setattr(file_exchanges, "_SESSION_BYTES", 100)
    with nothing_is_held(piece_bytes=4000):
        large = read(bare)
        assert isinstance(large.exchanges, FileExchanges)
        assert large.exchanges.by_sessions() is None
        assert told(judge(large)) == held


def test_line_of_an_exchange_is_known_without_reading(tmp_path: Path) -> None:
    """A report names the line of a breach; a number that no recorder gives is refused in a large recording."""
    name = tmp_path / "a.jsonl"
    line = '{"kind":"exchange","seq":%d,"t0":0,"t1":1,"request":{"method":"GET","path":"/health"}}\n'
    name.write_text(HEADER.decode() + "".join(line % seq for seq in (2, 7, 4)))
    with nothing_is_held():
        exchanges = read(name).exchanges
        assert isinstance(exchanges, FileExchanges)
        assert [exchanges.line_of(seq) for seq in (2, 4, 7, 3, 9)] == [2, 4, 3, None, None]
        name.write_text(HEADER.decode() + line % 10**30)
        with pytest.raises(TraceError, match="larger than any recorder counts"):
            read(name)
