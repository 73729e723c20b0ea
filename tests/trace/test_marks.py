"""Marks by class: what is written is what is read, and nothing that a recording holds breaks the reading."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from signet_conformance.trace import Header, Mark, Trace
from signet_conformance.trace.marks import (
    KINDS,
    BypassMark,
    FaultMark,
    HandlerMark,
    InstalledMark,
    KitMark,
    LeftMark,
    LoadedMark,
    ModelMark,
    OfferedMark,
    RefusedMark,
    RegisteredMark,
    ReinstalledMark,
    RemarkMark,
    ScenarioEndMark,
    ScenarioMark,
    SkippedMark,
    StepMark,
    StrayMark,
    ToolAnswerMark,
    UnheardPortMark,
    kit_marks,
    marks_of,
    read_mark,
)

WRITTEN: list[tuple[KitMark, dict[str, object]]] = [
    (ScenarioMark(name="plain", title="A plain session"), {"name": "plain", "title": "A plain session"}),
    (BypassMark(on=True), {"on": True}),
    (
        StepMark(index=0, step="start", session="s1", project="/srv/atlas", agent="atlas-agent", other={"more": True}),
        {
            "index": 0,
            "step": "start",
            "session": "s1",
            "project": "/srv/atlas",
            "agent": "atlas-agent",
            "more": True,
        },
    ),
    (HandlerMark(index=1, event="e", outcome="slow", ms=2.5), {"index": 1, "event": "e", "outcome": "slow", "ms": 2.5}),
    (
        HandlerMark(index=1, event="e", outcome="thrown", lost=False),
        {"index": 1, "event": "e", "outcome": "thrown", "lost": False},
    ),
    (LoadedMark(ok=False, host="pi", words="no export"), {"ok": False, "host": "pi", "words": "no export"}),
    (
        InstalledMark(accepted=False, file="hooks.json", host="codex", release="0.169.0", words="unknown field"),
        {"accepted": False, "file": "hooks.json", "host": "codex", "release": "0.169.0", "words": "unknown field"},
    ),
    (
        ReinstalledMark(how="over", older="0.108", twice=("hooks.json: a hook",)),
        {"how": "over", "older": "0.108", "twice": ("hooks.json: a hook",)},
    ),
    (
        InstalledMark(accepted=False, event="PreCompaction", operations=("pre-compaction",), minor=True),
        {"accepted": False, "event": "PreCompaction", "operations": ("pre-compaction",), "minor": True},
    ),
    (RegisteredMark(host="pi", handlers=0, tools=9), {"host": "pi", "handlers": 0, "tools": 9}),
    (ToolAnswerMark(index=3, done=True), {"index": 3, "done": True}),
    (OfferedMark(tools={"memory_get": ("id",)}), {"tools": {"memory_get": ("id",)}}),
    (UnheardPortMark(words="held"), {"words": "held"}),
    (LeftMark(), {}),
    (LeftMark(command="signet-mcp", memory_mb=125.0), {"command": "signet-mcp", "memory_mb": 125.0}),
    (StrayMark(method="GET", path="/health"), {"method": "GET", "path": "/health"}),
    (StrayMark(method="GET", path="/x", token=True), {"method": "GET", "path": "/x", "token": True}),
    (SkippedMark(index=2, reason="no tools"), {"index": 2, "reason": "no tools"}),
    (ModelMark(session="s1"), {"session": "s1"}),
    (
        RefusedMark(origin="null", method="POST", path="/x"),
        {"origin": "null", "method": "POST", "path": "/x"},
    ),
    (RemarkMark(text="installed twice"), {"text": "installed twice"}),
    (
        FaultMark(kind="status", on=False, match={"path": "/api/*"}, id=2, other={"status": 500}),
        {"on": False, "kind": "status", "match": {"path": "/api/*"}, "id": 2, "status": 500},
    ),
    (ScenarioEndMark(name="plain", error=None), {"name": "plain", "error": None}),
    (ScenarioEndMark(name="plain", error="hung", part=True), {"name": "plain", "error": "hung", "part": True}),
]

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just("\ud83d"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=4,
)
MEMBERS = st.sampled_from(["seq", "other", *{name for kind in KINDS.values() for name in kind.__struct_fields__}])


@pytest.mark.parametrize(("mark", "data"), WRITTEN, ids=lambda given: getattr(given, "NAME", ""))
def test_a_mark_is_read_as_it_was_written(mark: KitMark, data: dict[str, object]) -> None:
    """The members that a mark is written with give the same mark again, with its number."""
    assert mark.data == data
    again = read_mark(Mark(seq=7, name=mark.NAME, data=data))
    assert again is not None
    assert (type(again), again.seq, again.data) == (type(mark), 7, data)


@given(st.sampled_from(sorted(KINDS)), st.dictionaries(MEMBERS | st.text(max_size=5), JSON, max_size=6))
def test_nothing_that_a_mark_holds_breaks_the_reading(name: str, data: dict[str, object]) -> None:
    """A member of the wrong type counts as absent; what the class does not name is kept as it was recorded."""
    mark = read_mark(Mark(seq=3, name=name, data=data))
    assert mark is not None
    assert mark.seq == 3
    named = set(type(mark).__struct_fields__) - set(KitMark.__struct_fields__)
    assert mark.other == {member: value for member, value in data.items() if member not in named}


def test_a_wrong_type_is_absent() -> None:
    """An index that is text, a switch that is a number: neither is taken for something else."""
    step, fault = (
        read_mark(Mark(seq=1, name="step", data={"index": "1", "step": 4, "session": "s1"})),
        read_mark(Mark(seq=1, name="fault", data={"kind": "refuse", "on": 0, "match": "x"})),
    )
    assert isinstance(step, StepMark)
    assert (step.index, step.step, step.session) == (None, None, "s1")
    assert isinstance(fault, FaultMark)
    assert (fault.kind, fault.is_on, fault.match) == ("refuse", True, None)


def test_marks_of_others_say_nothing() -> None:
    """A mark of a name that is not the kit's is passed over; those of one name come in order."""
    names = ("step", "mine", "model", "step")
    marks = tuple(Mark(seq=seq, name=name, data={"session": str(seq)}) for seq, name in enumerate(names))
    trace = Trace(Header(), (), marks)
    assert [mark.seq for mark in kit_marks(trace)] == [0, 2, 3]
    assert [mark.session for mark in marks_of(trace, StepMark)] == ["0", "3"]
