"""Facts about requests that carry what belongs to another session or project, held against the kit's own marks."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conversation_items import FIRST, SECOND, hook, in_one_folder, native, said, step, transcript, verdict


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


@pytest.mark.parametrize(
    ("summary", "expected"),
    [("Invoices were told.", "PASS"), ("Summary:\nInvoices  were told.\n", "PASS"), ("It was compacted.", "WARN")],
)
def test_summary_that_is_not_what_was_left_is_warned_of(tmp_path: Path, summary: str, expected: str) -> None:
    """The next session is given the summary, so it has to be that of the conversation."""
    compacted = [step("compact", summary="Invoices were told."), hook("pre-compaction")]
    items = [step("start"), hook("session-start"), *compacted, hook("compaction-complete", summary=summary)]
    assert verdict(tmp_path, items, "SIG-CMP-002") == expected


@pytest.mark.parametrize(
    ("key", "parent", "expected"), [("k-1", None, "PASS"), ("k-2", None, "WARN"), ("k-2", "s1", "PASS")]
)
def test_summary_under_the_key_of_another_session_is_warned_of(
    tmp_path: Path, key: str, parent: str | None, expected: str
) -> None:
    """It would be given to whoever goes on with that one; a sub-agent's session may have it from its parent."""
    more = {} if parent is None else {"parent": parent}
    begun, other = [step("start"), hook("session-start")], [step("start", "s2", **more), hook("session-start", "k-2")]
    compacted = [step("compact", summary="Invoices were told."), hook("pre-compaction", key)]
    told = [*compacted, hook("compaction-complete", key, summary="Invoices were told.")]
    items = [*begun, native("s1", "k-1"), *other, native("s2", "k-2"), *told]
    assert verdict(tmp_path, items, "SIG-CMP-002") == expected
    # Where the driver tells no keys, a start may have come late from a queue.
    assert verdict(tmp_path, [*begun, *other, *told], "SIG-CMP-002") == "PASS"


@pytest.mark.parametrize(("left", "expected"), [("All is said", "PASS"), ("All was said", "WARN")])
def test_short_summary_of_another_session_says_nothing(tmp_path: Path, left: str, expected: str) -> None:
    """Fewer than twelve characters stand in many a summary; here of one that the program began by itself."""
    opened = [step("start"), hook("session-start"), step("start", "s2"), hook("session-start", "k-2")]
    other = [step("compact", "s2", summary=left), hook("pre-compaction", "k-2")]
    told = [hook("compaction-complete", "k-2", summary=left), said(FIRST), hook("pre-compaction")]
    items = [native("s1", "k-1"), native("s2", "k-2"), *opened, *other, *told]
    assert verdict(tmp_path, [*items, hook("compaction-complete", summary=f"{left} of it.")], "SIG-CMP-002") == expected


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
