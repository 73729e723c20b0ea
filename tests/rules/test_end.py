"""Facts about ends: what excuses a session that is not ended, what may follow an end, and where it took place."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from .conversation_items import in_one_folder, native
from .test_conversation import AWAY, Item, hook, judgement, step, verdict

BROKEN_OFF = {"mark": "scenario_end", "data": {"error": "the connector died"}}
START, END, PROMPT = hook("session-start"), hook("session-end", cwd="/srv/atlas"), hook("user-prompt-submit")
CHECKPOINT = hook("session-checkpoint-extract", transcript="User: Which one?")


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([START, PROMPT, END], "PASS"),
        ([START, END, START, END], "PASS"),
        ([START, PROMPT], "WARN"),
        ([START, END, PROMPT], "WARN"),
        ([START, END, PROMPT, PROMPT], "WARN"),
    ],
)
@pytest.mark.parametrize("broken_off", [False, True])
def test_session_that_is_not_ended(tmp_path: Path, items: Sequence[Item], expected: str, broken_off: bool) -> None:
    """Where the scenario was broken off nobody can tell; an end that was sent was sent all the same."""
    end_of_it = [BROKEN_OFF] if broken_off else []
    excused = broken_off and expected == "WARN"
    assert verdict(tmp_path, [*items, *end_of_it], "SIG-END-005") == ("INCONCLUSIVE" if excused else expected)


@pytest.mark.parametrize(
    "items",
    [
        [native("s1", "k-1"), step("restart_host"), hook("session-start", "k-9"), native("s1", "k-9")],
        [step("restart_host"), step("start", "s0"), hook("session-start", "k-0")],
        [step("restart_host"), step("start", "s2"), hook("session-start", "k-2")],
        [step("restart_host"), PROMPT],
    ],
    ids=["another id of the host", "a session before", "a session behind", "the same key"],
)
def test_restart_of_the_host_changed_no_key(tmp_path: Path, items: Sequence[Item]) -> None:
    """The message names a restart of the host only if the session has had another key since."""
    told = judgement(tmp_path, [step("start"), START, *items], "SIG-END-005")
    first = next(finding for finding in told.findings if finding.exchanges == (2,))
    assert first.message == "started and never ended"


CLEARED = hook("session-end", reason="clear")
LOST = {**CLEARED, "response": None, "error": {"kind": "fault"}, "fault": {"kind": "reset"}}


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([CLEARED, START], ("PASS", ())),
        ([CLEARED, PROMPT], ("FAIL", (2, 3))),
        ([CLEARED, CHECKPOINT], ("FAIL", (2, 3))),
        ([CLEARED, *AWAY, START], ("PASS", ())),
        ([CLEARED, *AWAY, PROMPT], ("INCONCLUSIVE", (2, 5))),
        ([CLEARED, *AWAY, CHECKPOINT], ("INCONCLUSIVE", (2, 5))),
        ([CLEARED], ("INCONCLUSIVE", (2,))),
        ([CLEARED, hook("session-start", "k-2")], ("PASS", ())),
        ([LOST, CLEARED, START], ("PASS", ())),
        ([LOST, hook("session-start", reason="clear"), PROMPT], ("PASS", ())),
        ([LOST, hook("session-checkpoint-extract", reason="clear"), START], ("FAIL", (2, 3))),
        ([LOST, hook("session-end", reason="agent_end"), START], ("FAIL", (2, 3))),
        ([LOST, hook("session-end", reason="logout"), START], ("FAIL", (2, 3))),
    ],
)
def test_cleared_session_goes_on_with_a_start(
    tmp_path: Path, items: Sequence[Item], expected: tuple[str, tuple[int, ...]]
) -> None:
    """Another hook shows that its context was kept, unless a start may have met nobody; a lost end may be repeated."""
    told = judgement(tmp_path, [START, *items], "SIG-END-009")
    assert (told.verdict, *(finding.exchanges for finding in told.findings)) == tuple(filter(None, expected))


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([CHECKPOINT], ("WARN", (3, 2))),
        ([CHECKPOINT, CHECKPOINT], ("WARN", (3, 4, 2))),
        ([CHECKPOINT, PROMPT], ("WARN", (3, 2))),
        ([PROMPT, CHECKPOINT], ("PASS", ())),
        ([START, CHECKPOINT], ("PASS", ())),
        ([*AWAY, CHECKPOINT], ("INCONCLUSIVE", (5, 2))),
        ([CHECKPOINT, *AWAY], ("WARN", (3, 2))),
        ([CHECKPOINT, *AWAY, CHECKPOINT], ("WARN", (3, 6, 2))),
    ],
)
def test_turn_alone_follows_an_end(
    tmp_path: Path, items: Sequence[Item], expected: tuple[str, tuple[int, ...]]
) -> None:
    """What comes between the last end and the next start or prompt claims an ended session."""
    told = judgement(tmp_path, [START, END, *items], "SIG-END-007")
    assert (told.verdict, *(finding.exchanges for finding in told.findings)) == tuple(filter(None, expected))


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([START, PROMPT, CHECKPOINT, END], "1 subject"),
        ([START, hook("session-end")], "session-end without cwd"),
        ([START, hook("session-end", cwd="/srv/other")], "cwd is not the project of the session's start"),
        ([hook("session-start", ""), PROMPT], "nothing in the trace is subject to it"),
    ],
)
def test_where_an_end_took_place(tmp_path: Path, items: Sequence[Item], message: str) -> None:
    """An end alone says where, and it is where its session was started."""
    assert judgement(tmp_path, items, "SIG-END-004").message == message


@pytest.mark.parametrize("projects", [("/a", "/b"), ("/b", "/a")])
def test_one_folder_of_two_projects_is_told(tmp_path: Path, projects: Sequence[str]) -> None:
    """Whichever the user opened first."""
    (finding,) = judgement(tmp_path, in_one_folder(*projects), "SIG-END-004").findings
    assert (finding.exchanges, finding.expected) == ((8,), f"the folder of {projects[1]}")


@pytest.mark.parametrize(
    ("cwd", "project", "started", "expected"),
    [
        ("acme-api", "/srv/acme-api", None, "WARN"),
        ("./acme-api", "/srv/acme-api", None, "WARN"),
        ("~/acme-api", "/srv/acme-api", None, "WARN"),
        ("/elsewhere/acme-api", "/srv/acme-api", None, "INCONCLUSIVE"),
        ("C:\\acme-api", "/srv/acme-api", None, "INCONCLUSIVE"),
        ("\\\\host\\acme-api", "/srv/acme-api", None, "INCONCLUSIVE"),
        ("acme-api", "/srv/acme-api", "acme-api", "INCONCLUSIVE"),
        ("acme-api", "acme-api", None, "INCONCLUSIVE"),
        ("acme-api", None, None, "INCONCLUSIVE"),
    ],
    ids=["its name", "relative", "of home", "elsewhere", "drive", "share", "started so", "asked so", "nobody knows"],
)
def test_folder_that_the_user_opened_is_an_absolute_path(
    cwd: str, project: str | None, started: str | None, expected: str, tmp_path: Path
) -> None:
    """A name alone is no folder, whatever the folder is; whether a path is the right one only its mark tells."""
    opened = {} if project is None else {"project": project}
    items = [step("start", **opened), hook("session-start", project=started)]
    items += [step("end"), hook("session-end", cwd=cwd)]
    assert judgement(tmp_path, items, "SIG-END-004").verdict == expected
