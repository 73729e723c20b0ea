"""Facts about requests that carry what belongs to another session or project, held against the kit's own marks."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conversation_items import FIRST, SECOND, hook, in_one_folder, said, step, transcript, verdict


@pytest.mark.parametrize(("parent", "expected"), [(None, "WARN"), ("s1", "PASS")])
def test_recall_for_another_session_is_warned_of(tmp_path: Path, parent: str | None, expected: str) -> None:
    """What is shown there would count as seen by a session that never saw it; a sub-agent may ask for its parent."""
    more = {} if parent is None else {"parent": parent}
    recall = {"method": "POST", "path": "/api/memory/recall", "body": {"query": "ledger", "sessionKey": "k-1"}}
    answered = {"request": recall, "response": {"status": 200, "body": {"results": []}}}
    opened = [step("start"), hook("session-start"), step("start", "s2", **more), hook("session-start", "k-2")]
    items = [*opened, step("tool", "s2", tool="memory_search"), answered]
    assert verdict(tmp_path, items, "SIG-REC-004") == expected


@pytest.mark.parametrize(("session", "ahead", "asked"), [("s2", "k-1", "k-2"), ("s1", "k-2", "k-1")])
def test_recall_that_comes_beside_that_of_the_step_is_not_blamed(
    tmp_path: Path, session: str, ahead: str, asked: str
) -> None:
    """A connector may look ahead for a session that has just had its turn, while another asks: no breach."""
    recalls = [
        {
            "request": {"method": "POST", "path": "/api/memory/recall", "body": {"query": "ledger", "sessionKey": key}},
            "response": {"status": 200, "body": {"results": []}},
        }
        for key in (ahead, asked)
    ]
    opened = [step("start"), hook("session-start"), step("start", "s2"), hook("session-start", "k-2")]
    items = [*opened, step("tool", session, tool="memory_search")]
    assert verdict(tmp_path, [*items, recalls[0]], "SIG-REC-004") == "WARN"
    assert verdict(tmp_path, [*items, *recalls], "SIG-REC-004") == "PASS"


@pytest.mark.parametrize(("projects", "expected"), [(("/a", "/b"), "WARN"), (("/a", "/a"), "INCONCLUSIVE")])
def test_one_folder_for_two_projects_is_warned_of(tmp_path: Path, projects: tuple[str, str], expected: str) -> None:
    """Sessions of different projects end in different folders, whatever a host calls these."""
    assert verdict(tmp_path, in_one_folder(*projects), "SIG-END-004") == expected


@pytest.mark.parametrize(("marked", "expected"), [(True, "PASS"), (False, "WARN")])
def test_two_turns_with_one_reply_are_no_late_submission(tmp_path: Path, marked: bool, expected: str) -> None:
    """A prompt that marks show before its own turn is not taken for one that the transcript shows answered."""
    again = (SECOND[0], FIRST[1])
    model = [{"mark": "model", "data": {"session": "s1"}}] if marked else []
    items = [
        *[step("start"), hook("session-start"), said(FIRST), hook("user-prompt-submit", userMessage=FIRST[0]), *model],
        *[said(again), hook("user-prompt-submit", userMessage=again[0], lastAssistantMessage=FIRST[1]), *model],
        *[step("end"), hook("session-end", transcript=transcript(again))],
    ]
    assert verdict(tmp_path, items, "SIG-PROMPT-003") == expected
