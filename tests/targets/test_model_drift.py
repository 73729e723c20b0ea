"""Facts about played requests beside real ones: where an injected text stands, and in whose role."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.targets.model_drift import is_played, model_drifts, turns_compared
from signet_conformance.trace import Trace
from tests.support.case_traces import KEYED, build

ASKED = "When do we deploy Atlas?"
MEMORY = "Atlas deploys happen on Friday at 16:00 UTC."
BEGUN: Sequence[Mapping[str, Any]] = [
    {"mark": "scenario", "data": {"name": "plain"}},
    {"mark": "step", "data": {"index": 0, "step": "start", "session": "s1"}},
    {
        "request": {"method": "POST", "path": "/api/hooks/session-start", "body": {**KEYED, "sessionKey": "k1"}},
        "response": {"status": 200, "body": {"inject": MEMORY, "memories": [{"content": MEMORY}]}},
    },
    {"mark": "step", "data": {"index": 1, "step": "prompt", "session": "s1", "text": ASKED}},
]


def recording(
    folder: Path,
    *requests: Mapping[str, Any],
    played: bool = False,
    name: str = "plain",
    before: Sequence[Mapping[str, Any]] = (),
) -> Trace:
    """One turn with the bodies of its requests to the model, and marks `before` it."""
    folder.mkdir(exist_ok=True)
    begun = [{**BEGUN[0], "data": {"name": name}}, *BEGUN[1:-1], *before, BEGUN[-1]]
    asked = [
        {"side": "model", "request": {"method": "POST", "path": "/v1/messages", "body": {"model": "m", **body}}}
        for body in requests
    ]
    header = {"played": True} if played else {}
    return build(folder / f"{'played' if played else 'real'}.jsonl", [*begun, *asked], header)


def said(*messages: tuple[str, str], system: str = "", tools: bool = True) -> Mapping[str, Any]:
    """The body of a request."""
    told = [{"role": role, "content": text} for role, text in messages]
    offered = [{"name": "read"}] if tools else []
    return {"system": system, "messages": told, "tools": offered}


USER = ("user", ASKED)
PLACES = {
    "nowhere": [said(USER)],
    "in the system text, as system": [said(USER, system=MEMORY)],
    "before the user's message, as user": [said(("user", MEMORY), USER)],
    "after the user's message, as system": [said(USER, ("system", MEMORY))],
    "within the user's message, as user": [said(("user", f"{MEMORY}\n\n{ASKED}"))],
    "in a request beside the turn's own": [said(USER, system=MEMORY, tools=False), said(USER)],
}


@pytest.mark.parametrize("place", PLACES)
def test_a_text_that_stands_elsewhere_is_a_difference(place: str, tmp_path: Path) -> None:
    """It is told where each puts it; where both do alike there is none."""
    played = recording(tmp_path, *PLACES["before the user's message, as user"], played=True)
    found = [drift.words for drift in model_drifts([recording(tmp_path, *PLACES[place])], [played])]
    expected = (
        "step 1, place of the text that session-start in step 0 injected: face: before the user's message, as user; "
        f"program: {place}"
    )
    assert found == ([] if place.startswith("before") else [expected])


def test_a_text_that_lasts_less_long_is_a_difference(tmp_path: Path) -> None:
    """Where the model called a tool, the last request of the turn is compared too."""
    told = PLACES["in the system text, as system"]
    played = recording(tmp_path, *told, *told, played=True)
    (drift,) = model_drifts([recording(tmp_path, *told, said(USER))], [played])
    assert drift.words == (
        "step 1, place of the text that session-start in step 0 injected in the last request of the turn: "
        "face: in the system text, as system; program: nowhere"
    )
    assert list(model_drifts([recording(tmp_path, *told)], [played])) == []


def test_nothing_is_compared_after_a_compaction_that_the_program_left_out(tmp_path: Path) -> None:
    """What stands before its model from then on is another history; the session of another step goes on."""
    played = recording(tmp_path, said(USER, system=MEMORY), played=True)
    for session, found in (("s1", 0), ("s2", 1)):
        left_out = [
            {"mark": "step", "data": {"index": 7, "step": "compact", "session": session}},
            {"mark": "skipped", "data": {"index": 7, "reason": "it compacted nothing"}},
        ]
        real = recording(tmp_path, said(USER), before=left_out)
        assert (len(list(model_drifts([real], [played]))), turns_compared([real], [played])) == (found, found)


def test_a_turn_in_which_only_one_asks_is_a_difference(tmp_path: Path) -> None:
    """The other one asks nothing."""
    played = recording(tmp_path, said(("user", "Something else.")), played=True)
    (drift,) = model_drifts([recording(tmp_path, said(USER))], [played])
    assert drift.words == "step 1: face: the model is not asked; program: the model is asked"


def test_only_recordings_of_one_scenario_are_compared(tmp_path: Path) -> None:
    """A played run may have performed others."""
    real = recording(tmp_path, said(USER))
    other = recording(tmp_path, said(USER, system=MEMORY), played=True, name="tools")
    assert list(model_drifts([real], [other])) == []
    assert (turns_compared([real], [other]), turns_compared([real], [real])) == (0, 1)
    assert (is_played(real), is_played(other)) == (False, True)
