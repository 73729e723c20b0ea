"""Facts about when the model is asked: not before the prompt hook has ended, and in time while the daemon is away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from signet_conformance.finding import Finding

from .model_requests import ASKED, Item
from .model_turns import FAIL, OPEN, PASS, WARN, asks, call, hook, only, outcomes, said, start, step, verdicts

AGAIN, THEN = "Say it once more.", "And then tag it."
PROMPT_BOUND = {"declared": {"bounds_s": {"prompt": 5}}}
UNDECLARED: Mapping[str, object] = {"declared": {}}

INSTANTS: Sequence[tuple[float, float, float, Mapping[str, object], object]] = [
    # hook from, hook to, model asked, header, verdict
    (4.0, 4.6, 4.7, PROMPT_BOUND, PASS),
    (4.0, 4.6, 4.1, PROMPT_BOUND, WARN),
    (4.0, 4.6, 4.0, PROMPT_BOUND, WARN),
    (4.0, 4.6, 4.1, UNDECLARED, OPEN),
    (4.0, 4.6, 4.0, UNDECLARED, OPEN),
    # The end may be noted 50 ms late, the beginning no later than an instant is written down.
    (0.05, 0.1, 0.05, UNDECLARED, PASS),
    (4.0, 4.6, 4.54, UNDECLARED, OPEN),
    (4.0, 4.02, 3.999, UNDECLARED, PASS),
    (4.0, 4.02, 4.0005, UNDECLARED, PASS),
    (4.0, 4.02, 3.998, UNDECLARED, WARN),
    (4.0, 4.02, 3.0, UNDECLARED, WARN),
    (4.0, 4.02, 3.998, PROMPT_BOUND, WARN),
    # Nobody has to wait beyond the bound.
    (0.0, 8.0, 4.95, PROMPT_BOUND, PASS),
    (0.0, 8.0, 4.94, PROMPT_BOUND, WARN),
    (0.0, 8.0, 2.0, PROMPT_BOUND, WARN),
    (2.0, 12.0, 6.96, PROMPT_BOUND, PASS),
    (2.0, 12.0, 6.9, PROMPT_BOUND, WARN),
]


@pytest.mark.parametrize(("begun", "ended", "asked", "header", "expected"), INSTANTS)
def test_the_prompt_hook_ends_or_its_bound_passes_before_the_model_is_asked(
    begun: float, ended: float, asked: float, header: Mapping[str, object], expected: object, tmp_path: Path
) -> None:
    """Each instant just before and just after what is allowed."""
    items = [said(), hook(t0=begun, t1=ended), asks(t0=asked)]
    assert verdicts(tmp_path, 6, items, **header) == [expected]


LATE_HOOK = {"t0": 4.0, "t1": 9.0}
WHICH: Mapping[str, tuple[Sequence[Item], list[object]]] = {
    "the first request of several": ([said(), hook(**LATE_HOOK), asks(t0=4.1), asks(t0=9.5)], [WARN]),
    "no request of the turn": ([said(), hook(), asks(text=THEN)], []),
    "no hook": ([said(), asks()], []),
    "no hook, then a turn with one": ([said(), asks(), said(AGAIN), hook(text=AGAIN), asks(text=AGAIN)], [PASS]),
    "the hook of the same words in the turn before": (
        [said(), hook(), asks(), said(), hook(t0=5.0, t1=9.0), asks(t0=5.1)], [PASS, WARN]
    ),
    "the hook of the same words in the turn after": ([said(), asks(), said(), hook(), asks()], [PASS]),
    "a hook of words that sort before": ([said(), hook(text="A helper's question", **LATE_HOOK), asks(t0=4.1)], []),
    "a hook of words that sort behind": ([said(), hook(text="You are a helper", **LATE_HOOK), asks(t0=4.1)], []),
    "another hook first": (
        [said(), hook(text="A helper's question"), hook(t0=4.0, t1=9.0), asks(t0=4.1)], [WARN]
    ),
    "a hook without words": ([said(), hook(text="", **LATE_HOOK), asks(t0=4.1)], []),
}  # fmt: skip


@pytest.mark.parametrize("case", WHICH)
def test_which_hook_comes_before_which_request(case: str, tmp_path: Path) -> None:
    """The hook of the turn's own words within the turn is held against the turn's first own request."""
    items, expected = WHICH[case]
    assert verdicts(tmp_path, 6, items, **PROMPT_BOUND) == expected


@pytest.mark.parametrize(
    ("asked", "state", "received"),
    [(4.1, "ended", "0.50"), (4.0, "ended", "0.60"), (3.5, "begun", "1.10")],
)
def test_a_model_asked_too_early_is_told_in_words(asked: float, state: str, received: str, tmp_path: Path) -> None:
    """The finding says whether the hook had begun, how much later it ended, and what was declared."""
    items = [said(), hook(t0=4.0, t1=4.6), asks(t0=asked)]
    finding = only(tmp_path, 6, items, **PROMPT_BOUND)
    assert finding.message == f"the model is asked before the prompt hook has {state}"
    assert finding.expected == "the answer of the prompt hook before the model is asked, or 5 s of waiting"
    assert finding.received == f"asked {received} s before its end"
    assert (finding.exchanges, finding.model, finding.fold) == ((2,), (3,), "asked too early")
    if state == "begun":
        undeclared = only(tmp_path, 6, items, **UNDECLARED)
        assert undeclared.expected == "the answer of the prompt hook before the model is asked"


# -- the daemon is away

OFF, ON = (
    {"mark": "fault", "data": {"kind": "refuse", "on": False, "id": 1}},
    {"mark": "fault", "data": {"kind": "refuse", "on": True, "id": 1}},
)


def waiting(usual: float, away: float) -> list[Item]:
    """A session's second turn asks the model so many seconds after the user, its third, without the daemon, so many."""
    return [
        said(), asks(t0=1.0), said(AGAIN), asks(text=AGAIN, t0=3 + usual),
        ON, said(THEN), asks(text=THEN, t0=6 + away), OFF,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("late", "bounds", "expected"),
    [
        (6.0, {"prompt": 5}, PASS),
        (6.5, {"prompt": 5}, WARN),
        (21.0, {"prompt": 5, "start": 15}, PASS),
        (21.5, {"prompt": 5, "start": 15}, WARN),
        (90.0, {"start": 15}, PASS),
        (90.0, {}, PASS),
    ],
)
def test_a_turn_waits_no_longer_than_the_bounds(
    late: float, bounds: Mapping[str, float], expected: object, tmp_path: Path
) -> None:
    """A turn without the daemon may take the declared bounds and a second more than turns with it."""
    items = waiting(1.0, 1.0 + late)
    assert verdicts(tmp_path, 8, items, declared={"bounds_s": bounds}) == [expected]


@pytest.mark.parametrize(("usual", "away", "later"), [(1.0, 4.0, "3.0"), (1.0, 0.5, "0.0"), (0.0, 0.5, "0.5"),
                                                     (-0.5, 0.5, "0.5"), (0.5, 1.5, "1.0")])  # fmt: skip
def test_how_much_later_is_told(usual: float, away: float, later: str, tmp_path: Path) -> None:
    """It is told against what turns of the session take with the daemon, and never less than nothing."""
    finding = only(tmp_path, 8, waiting(usual, away))
    assert (finding.verdict, finding.model) == (PASS, (7,))
    assert finding.message == f"while the daemon does not run, asked {later} s later than otherwise"


def test_a_turn_that_waits_too_long_is_told_in_words(tmp_path: Path) -> None:
    """The finding names the step, the seconds, the bounds and the requests."""
    items = [*waiting(0.0, 30.125)]
    items[5] = said(THEN, index=4)
    finding = only(tmp_path, 8, items, **PROMPT_BOUND)
    assert finding.message == "step 4: while the daemon does not run, the model is asked 30.1 s later than otherwise"
    assert finding.expected == "at most 6 s, by the declared bounds"
    assert (finding.received, finding.model, finding.fold) == (round(30.125, 2), (7,), "late")


@pytest.mark.parametrize(("first", "second"), [("s1", "s2"), ("s2", "s1")])
@pytest.mark.parametrize("away_is_first", [True, False])
def test_first_turns_are_compared_with_first_turns(
    first: str, second: str, away_is_first: bool, tmp_path: Path
) -> None:
    """A program starts with the first turn of a session, which takes its time whatever the daemon does."""
    items = [
        said(session=first), asks(t0=4.0), said(AGAIN, first), asks(text=AGAIN, t0=3.0),
        ON, said(THEN, second if away_is_first else first), asks(text=THEN, t0=10.0), OFF,
    ]  # fmt: skip
    later = "1.0" if away_is_first else "4.0"
    assert only(tmp_path, 8, items).message == f"while the daemon does not run, asked {later} s later than otherwise"


def test_a_first_turn_with_nothing_to_compare_passes(tmp_path: Path) -> None:
    """Where no turn of its kind was undisturbed, an answer is enough."""
    assert outcomes(tmp_path, 8, [ON, said(), asks(t0=90.0), OFF]) == [PASS]


TROUBLE: Sequence[tuple[Mapping[str, object], bool]] = [
    ({"error": "upstream_refused"}, True),
    ({"error": "upstream_reset"}, True),
    ({"fault": {"kind": "refuse"}}, True),
    ({"fault": {"kind": "reset"}}, True),
    ({"fault": {"kind": "hang"}}, True),
    ({"fault": {"kind": "delay"}}, False),
    ({"error": "client_closed"}, False),
    ({}, False),
]


@pytest.mark.parametrize(("trouble", "is_away"), TROUBLE)
def test_a_call_that_met_nobody_tells_that_the_daemon_was_away(
    trouble: Mapping[str, object], is_away: bool, tmp_path: Path
) -> None:
    """It was away in the turn of that call, not in the one before nor in the one after."""
    met = call("/api/hooks/user-prompt-submit", {"sessionKey": "k1", "userMessage": AGAIN}, {}, **trouble)
    items = [said(), asks(), said(AGAIN), {**met, "response": None}, asks(text=AGAIN), said(THEN), asks(text=THEN)]
    told = [outcome.model for outcome in outcomes(tmp_path, 8, items) if isinstance(outcome, Finding)]
    assert told == ([(5,)] if is_away else [])


ANSWERED: Sequence[tuple[object, bool]] = [
    ({"status": 200, "body": {}}, True),
    ({"status": 299, "body": {}}, True),
    ({"status": 199, "body": {}}, False),
    ({"status": 300, "body": {}}, False),
    ({"status": 529, "body": {}}, False),
    (None, False),
]


@pytest.mark.parametrize(("response", "is_answered"), ANSWERED)
def test_what_counts_as_the_models_answer(response: object, is_answered: bool, tmp_path: Path) -> None:
    """Any status of success does; a redirect, a refusal and silence do not."""
    items = waiting(1.0, 1.0)
    items[-2] = {**items[-2], "response": response}
    assert verdicts(tmp_path, 8, items) == [PASS if is_answered else FAIL]


def test_a_turn_without_an_answer_is_told_in_words(tmp_path: Path) -> None:
    """The finding says whether the model was asked at all, names the step, and quotes the user."""
    long = f"{THEN} " + "Then go on with the next of them. " * 9
    silent = {**asks(text=long), "response": None}
    head = [said(), asks(), ON, said(long, index=5)]
    for request, what, named in ((silent, "does not answer", (5,)), (asks("", "A title", tools=False),
                                                                     "is never asked", (5,))):  # fmt: skip
        finding = only(tmp_path, 8, [*head, request, OFF])
        assert (finding.verdict, finding.model, finding.fold) == (FAIL, named, "no answer")
        assert finding.message == f"step 5: while the daemon does not run, the model {what} in the user's turn"
        assert finding.expected == f"an answer to {long.strip()[:200]!r}"
    unread = {"side": "model", "request": {"method": "POST", "path": "/v1/messages",
              "raw_body": {"cut": True, "size": 9, "sha256": "0" * 64}}}  # fmt: skip
    for items in ([*head, unread, OFF], [ON, said(index=5), silent, OFF]):
        finding = only(tmp_path, 8, items)
        message = (
            "step 5: while the daemon does not run, the model may have been asked in a request that was not recorded"
        )
        assert (finding.verdict, finding.message) == (OPEN, message)


def test_each_turn_without_the_daemon_is_judged(tmp_path: Path) -> None:
    """A turn that stays without an answer does not hide the next one."""
    items = [said(), asks(), ON, said(AGAIN), said(THEN), asks(text=THEN), OFF, step("end")]
    assert verdicts(tmp_path, 8, items) == [FAIL, PASS]


def test_what_goes_wrong_beside_a_turn_is_not_its_absence(tmp_path: Path) -> None:
    """A start that met nobody is no absence in the turn, which began later."""
    items = [step("start"), {**start(), "response": None, "error": "upstream_refused"}, said(), asks()]
    assert outcomes(tmp_path, 8, items) == []
    assert outcomes(tmp_path, 8, [said(ASKED), asks(), step("end"), items[1]]) == []
