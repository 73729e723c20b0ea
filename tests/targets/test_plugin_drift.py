"""Where a face of plugins differs from what the real program told one, by marks of both."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.targets.drift import plugin_drifts, unplayed, update_plugin_face
from signet_conformance.targets.face import face_of_harness
from signet_conformance.targets.face_document import FaceDocument
from signet_conformance.trace import Trace
from signet_conformance.trace.marks import ObservedMark
from tests.support.case_traces import build

FACE = json.loads(face_of_harness("opencode").path.read_bytes())
FOLDER = "/home/atlas/src/acme-api"
STEPS = [
    {"mark": "loaded", "data": {"ok": True, "host": "opencode", "release": FACE["version"], "real": True}},
    {"mark": "step", "data": {"index": 0, "step": "start", "session": "s1", "project": "/workspace/src/acme-api"}},
]


def event(name: str, *members: str, **more: Any) -> ObservedMark:
    """One event of a plugin."""
    return ObservedMark(event=name, members=members, cwd=FOLDER, **more)


STATUS = event("session.status", "sessionID", "status", args=("status.type=busy",))
TALK = (event("session.created", "info", "sessionID"), STATUS, event("session.idle", "sessionID"))
TOOL = (event("tool.execute.before", *FACE["hooks"]["tool.execute.before"]),)


def recorded(folder: Path, done: Sequence[ObservedMark]) -> Trace:
    """A recording in which the program told its plugins this."""
    return build(folder / "run.jsonl", [*STEPS, *({"mark": "observed", "data": mark.data} for mark in done)])


def told(folder: Path, done: Sequence[ObservedMark], played: Sequence[ObservedMark], **members: Any) -> list[str]:
    """The differences, where the face has these members beside its own."""
    face = FaceDocument.model_validate({**FACE, **members})
    return [drift.words for drift in plugin_drifts(face, [recorded(folder, done)], [played])]


ASKS, TRANSFORMS, SAYS = map(event, ("asks", "transforms", "says"))
TURN = (ASKS, TRANSFORMS, SAYS)
BESIDE = {"beside_turns": ["transforms"]}
ELSEWHERE = ObservedMark(event="late.one", cwd="/workspace/of-another")
"""What comes at any time, of a session before."""
NO_DRIFT = {
    "the same": (TALK, TALK, {}),
    "in a row": ((TALK[0], STATUS, STATUS, TALK[2]), TALK, {}),
    "not played": ((*TALK, event("session.diff", "diff")), TALK, {}),
    "without order": ((TALK[1], TALK[0], TALK[2]), TALK, {"irregular": ["session.created"]}),
    "before a user only": (TALK, (*TALK, event("session.deleted", "info")), {"interactive": ["session.deleted"]}),
    "once beside its turns": ((*TALK, *TURN, TRANSFORMS), (*TALK, *TURN), BESIDE),
    "before the turn's own": ((*TALK, TRANSFORMS, *TURN), (*TALK, *TURN), BESIDE),
    "hook among events": ((TALK[0], *TOOL, *TALK[1:]), (*TOOL, *TALK), {}),
    "a folder of an unplayed one": ((*TALK, ELSEWHERE), TALK, {"unplayed": ["late.one"]}),
    "a folder of an irregular one": ((*TALK, ELSEWHERE), (*TALK, ELSEWHERE), {"irregular": ["late.one"]}),
    "sometimes": ((*TALK, event("x", "a")), (*TALK, event("x", "b")), {"sometimes": {"x": ["a", "b"]}}),
}


@pytest.mark.parametrize("case", NO_DRIFT)
def test_what_a_face_does_not_promise_is_no_drift(case: str, tmp_path: Path) -> None:
    """Repeats in a row, and what the face declares: unplayed, irregular, interactive, sometimes."""
    done, played, members = NO_DRIFT[case]
    assert told(tmp_path, done, played, **members) == []


DRIFT = {
    "fired beyond": (
        (*TALK, event("new.one")),
        TALK,
        "new.one: face: not fired; program: fired 1",
    ),
    "never fired": (TALK, (*TALK, event("session.deleted")), "session.deleted: face: fired 1 times"),
    "another order": ((STATUS, *TALK), TALK, "events first: face: nothing; program: session.status"),
    "another kind": (
        (TALK[0], event("session.status", "sessionID", "status", args=("status.type=retry",)), TALK[2]),
        TALK,
        "face: session.status status.type=busy; program: session.status status.type=retry",
    ),
    "a member more": ((*TALK[:2], event("session.idle", "sessionID", "why")), TALK, "program: why"),
    "a member less": ((*TALK[:2], event("session.idle")), TALK, "program: never sent"),
    "another folder": (
        (*TALK[:2], ObservedMark(event="session.idle", members=("sessionID",), cwd="/root")),
        TALK,
        "working folder of session.idle: face: the project's, acme-api; program: /root",
    ),
}


BEYOND = {
    "more than once": ((*TURN, TRANSFORMS, *TURN, TRANSFORMS), (*TURN, *TURN), "after says: face: nothing"),
    "not in the turn": ((ASKS, SAYS, TRANSFORMS), TURN, "after asks: face: nothing; program: says"),
    "another one": ((*TURN, ASKS), TURN, "after says: face: nothing; program: asks"),
}


@pytest.mark.parametrize("case", BEYOND)
def test_what_comes_once_beside_the_turns_is_compared_in_them(case: str, tmp_path: Path) -> None:
    """One session has one such event anywhere; a second, one that its turn lacks, and any other one is drift."""
    done, played, words = BEYOND[case]
    lines = told(tmp_path, done, played, **BESIDE)
    assert [line for line in lines if words in line], lines


def test_events_beyond_the_face_are_told_in_the_order_of_their_names(tmp_path: Path) -> None:
    """Two comparisons of the same recordings print the same lines."""
    names = [f"new.{n}" for n in range(8)]
    lines = told(tmp_path, [*TALK, *map(event, reversed(names))], TALK)
    assert [line.partition(":")[0] for line in lines[:8]] == names


@pytest.mark.parametrize("case", DRIFT)
def test_a_difference_is_told(case: str, tmp_path: Path) -> None:
    """Each kind of difference names its state in the face and in the program."""
    done, played, words = DRIFT[case]
    lines = told(tmp_path, done, played)
    assert [line for line in lines if words in line], lines


def test_a_face_is_updated_from_a_recording(tmp_path: Path) -> None:
    """Members as they were sent, without those of an output; what nobody plays is said to be unplayed."""
    compacting = event("experimental.session.compacting", "sessionID", "reason", "output.context")
    trace = recorded(tmp_path, [*TALK, compacting, event("new.one")])
    made = update_plugin_face(FACE, [trace], [[*TALK, compacting]], "9.0.0")
    assert made["version"] == "9.0.0"
    assert made["hooks"]["experimental.session.compacting"] == ["sessionID", "reason"]
    assert made["hooks"]["chat.message"] == FACE["hooks"]["chat.message"]
    assert made["unplayed"] == sorted([*FACE["unplayed"], "new.one"])
    assert unplayed(FaceDocument.model_validate(made), [trace]) == ["new.one"]
