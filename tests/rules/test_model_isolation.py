"""Facts about texts in the wrong session: whose they are, which of their lines count, and what leaves it open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from .model_requests import ASKED, Item
from .model_turns import (
    FACT,
    MEMORY,
    OPEN,
    PASS,
    WARN,
    asks,
    call,
    hook,
    only,
    said,
    start,
    step,
    verdicts,
)

OTHER = "Rename the flag."
THEIRS = [step("start"), start(), said(), hook(FACT), asks(FACT)]
MINE = [step("start", "s2"), start(key="k2"), said(OTHER, "s2")]


def begun(session: str, key: str, **also: Any) -> list[Item]:
    """A session that is opened with an agent and a project."""
    return [step("start", session, **also), start(key=key)]


SAME: Mapping[str, tuple[Sequence[Item], list[object]]] = {
    "absent": ([*THEIRS, *MINE, asks("", OTHER)], [PASS]),
    "before the model": ([*THEIRS, *MINE, asks(FACT, OTHER)], [WARN]),
    "in the second request": ([*THEIRS, *MINE, asks("", OTHER), asks(FACT, OTHER)], [PASS, WARN]),
    "in what the model says": (
        [*THEIRS, *MINE, asks(messages=[
            {"role": "user", "content": OTHER}, {"role": "assistant", "content": FACT}
        ])], [PASS],
    ),
    "given later": ([*MINE, asks(FACT, OTHER), step("end", "s2"), *THEIRS], []),
    "own text first": (
        [*MINE[:2], step("start"), start("", "k1"), said(), hook(FACT), asks(), *MINE[2:], asks(FACT, OTHER)],
        [PASS, WARN],
    ),
    "a helper's session": ([*THEIRS, step("start", "s2", parent="s1"), *MINE[1:], asks(FACT, OTHER)], []),
    "a session in another's place": ([*THEIRS, step("start", "s2", replaces="s1"), *MINE[1:], asks(FACT, OTHER)], []),
    "a session after a helper's": (
        [*THEIRS, step("start", "s2", parent="s1"), *MINE[1:], asks(FACT, OTHER), step("start", "s3"),
         start(key="k3"), said(OTHER, "s3"), asks(FACT, OTHER)], [WARN],
    ),
    "a turn of no session": ([*THEIRS, said(OTHER, None), asks(FACT, OTHER)], []),
    "recalled by the session itself": (
        [*THEIRS, *MINE, call("/api/memory/recall", {"query": "refunds"}, {"results": [{"content": FACT}]}),
         asks(FACT, OTHER)], [],
    ),
    "recalled by key in another step": (
        [*THEIRS, *MINE[:2], said(ASKED, "s3"), call("/api/hooks/user-prompt-submit", {"sessionKey": "k2"},
         {"inject": FACT}), *MINE[2:], asks(FACT, OTHER)], [],
    ),
    "said before any step": (
        [call("/api/memory/recall", {"query": "refunds"}, {"results": [{"content": FACT}]}), *THEIRS, *MINE,
         asks(FACT, OTHER)], [WARN],
    ),
    "asked for, not answered": (
        [*THEIRS, *MINE, {**call("/api/memory/recall", {"query": FACT}, {}), "response": None}, asks(FACT, OTHER)],
        [WARN],
    ),
    "the same words said before": ([*THEIRS, *MINE[:2], said(ASKED, "s2"), asks(FACT)], [OPEN]),
    "the same words said later": (
        [*THEIRS, *MINE, asks(FACT, OTHER), said(OTHER), asks("", OTHER)], [WARN]
    ),
    "words said before that sort behind": (
        [step("start"), start(), said("You know it."), hook(FACT, "You know it."), asks("", "You know it."), *MINE,
         asks(FACT, OTHER)], [WARN],
    ),
    "words said before that sort before": (
        [step("start"), start(), said("Do as ever."), hook(FACT, "Do as ever."), asks("", "Do as ever."), *MINE,
         asks(FACT, OTHER)], [WARN],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SAME)
def test_a_text_of_another_session_stands_in_no_request(case: str, tmp_path: Path) -> None:
    """A session of the same agent and project is not told what was injected into another, unless it was said there."""
    items, expected = SAME[case]
    assert verdicts(tmp_path, 4, items) == expected
    assert verdicts(tmp_path, 5, items) == []


@pytest.mark.parametrize(("mine", "theirs"), [("s1", "s2"), ("s2", "s1")])
def test_whose_text_it_is_does_not_hang_on_names(mine: str, theirs: str, tmp_path: Path) -> None:
    """Own texts are no leak, others' are, and the same words excuse only where the owner said them."""
    head = [*begun(theirs, "k1"), said(ASKED, theirs), hook(FACT), asks(FACT)]
    tail = [*begun(mine, "k2"), said(OTHER, mine), hook("The flag is called dark mode now", OTHER, "k2")]
    leak = asks(f"{FACT}\nThe flag is called dark mode now", OTHER)
    assert verdicts(tmp_path, 4, [*head, *tail, leak]) == [WARN]
    third = [*head, step("prompt", "s3", text=OTHER), *tail, leak]
    assert verdicts(tmp_path, 4, third) == [WARN]
    own_words = [*head, *begun(mine, "k2"), said(OTHER, mine), asks("", OTHER), *tail[2:], leak]
    assert verdicts(tmp_path, 4, own_words) == [PASS, WARN]


def test_a_late_hook_is_of_the_session_that_its_key_began_in(tmp_path: Path) -> None:
    """What it brings in the step of another session is that of its key's, and of the step's, which may know it."""
    items = [*THEIRS[:2], *MINE, hook(FACT, key="k1"), asks("", OTHER), step("start", "s3"), start(key="k3"),
             said("Tag it.", "s3"), asks(FACT, "Tag it.")]  # fmt: skip
    finding = only(tmp_path, 4, items)
    assert finding.message == "what was injected into session s1 reaches the model in session s3"


AGENTS = [("atlas", "beacon"), ("beacon", "atlas")]


@pytest.mark.parametrize(("mine", "theirs"), AGENTS)
@pytest.mark.parametrize("what", ["agent", "project"])
@pytest.mark.parametrize("named_by", ["marks", "starts"])
@pytest.mark.parametrize("sessions", [("s1", "s2"), ("s2", "s1")])
def test_another_agents_and_another_projects_text_is_of_the_other_requirement(
    mine: str, theirs: str, what: str, named_by: str, sessions: tuple[str, str], tmp_path: Path
) -> None:
    """Agent and project are those of the marks, or else of the first start; where one of them differs, it is 005."""
    items: list[Item] = []
    for session, key, name, text in ((sessions[0], "k1", theirs, ASKED), (sessions[1], "k2", mine, OTHER)):
        also = {"agentId": name} if what == "agent" else {"project": f"/srv/{name}"}
        marks = {} if named_by == "starts" else {what: name}
        sent = start(key=key, also=also if named_by == "starts" else {})
        items += [step("start", session, **marks), sent, said(text, session)]
        items += [hook(FACT if key == "k1" else "", text, key), asks(FACT, text)]
    finding = only(tmp_path, 5, items)
    whose = (
        f"agent {theirs}, " if what == "agent" else f"project {theirs if named_by == 'marks' else f'/srv/{theirs}'})"
    )
    assert (finding.verdict, whose in finding.expected) == (WARN, True)
    assert verdicts(tmp_path, 4, items) == []


def test_a_session_is_of_the_agent_and_project_of_its_first_start(tmp_path: Path) -> None:
    """What it is resumed with later is another matter."""
    resumed = start("", also={"agentId": "beacon", "project": "/srv/ledger", "source": "resume"})
    items = [*THEIRS[:2], step("resume"), resumed, *THEIRS[2:], *MINE, asks(FACT, OTHER)]
    assert only(tmp_path, 4, items).expected == "nothing of session s1 (agent atlas-agent, project /srv/atlas)"
    assert verdicts(tmp_path, 5, items) == []


def test_texts_of_all_other_sessions_are_looked_for(tmp_path: Path) -> None:
    """One of another agent does not hide one of the same agent behind it, nor the other way round."""
    head = [
        step("start", "s1", agent="beacon"), said(ASKED, "s1"), hook("Ledger exports are kept ninety days"),
        step("start", "s2", agent="atlas"), said(ASKED, "s2"), hook(FACT, key="k2"),
        step("start", "s3", agent="beacon"), said(ASKED, "s3"), hook("Invoices are sent on the first Monday", key="k3"),
    ]  # fmt: skip
    leak = asks(f"{FACT}\nInvoices are sent on the first Monday", OTHER)
    items = [*head, step("start", "s4", agent="atlas"), said(OTHER, "s4"), leak]
    assert verdicts(tmp_path, 4, items) == [WARN]
    assert verdicts(tmp_path, 5, items) == [PASS, WARN]


def test_a_leak_is_told_in_words(tmp_path: Path) -> None:
    """The finding names both sessions, the other's agent and project, and the line."""
    named = [step("start", agent="atlas", project="/srv/atlas"), *THEIRS[1:]]
    mine = [step("start", "s2", agent="atlas", project="/srv/atlas"), *MINE[1:]]
    finding = only(tmp_path, 4, [*named, *mine, asks(FACT, OTHER)])
    assert finding.message == "what was injected into session s1 reaches the model in session s2"
    assert finding.expected == "nothing of session s1 (agent atlas, project /srv/atlas)"
    assert finding.received == "refunds over 500 eur need approval from mira"
    assert (finding.exchanges, finding.model, finding.fold) == ((4,), (9,), "another session's text")
    nameless = [step("start"), said(), hook(FACT), step("start", "s2"), said(OTHER, "s2"), asks(FACT, OTHER)]
    assert only(tmp_path, 4, nameless).expected == "nothing of session s1 (agent not named, project not named)"
    unsure = only(tmp_path, 4, SAME["the same words said before"][0])
    assert unsure.message == "which session the request belongs to is not certain"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Refunds need approval from Mira", [WARN]),
        ("Refunds over fifty need approval from Mira", [WARN]),
        ("Refunds need written approval", []),
    ],
)
def test_a_line_of_less_than_five_words_is_anybodys(line: str, expected: list[object], tmp_path: Path) -> None:
    """A heading stands in many prompts."""
    items = [*THEIRS[:3], hook(line), *MINE, asks(line, OTHER)]
    assert verdicts(tmp_path, 4, items) == expected


IDENTITY = "You are Rig, an agent of few words"
STARTS: Mapping[str, tuple[str, object, str, list[object]]] = {
    # what is injected, its memories, what the other session's model is told
    "a memory": (MEMORY, [{"content": MEMORY}], MEMORY, [WARN]),
    "a memory within a line": (f"fact 0.9 {MEMORY} seen in May", [{"content": MEMORY}],
                               f"fact 0.9 {MEMORY} seen in May", [WARN]),
    "a line within a memory": (MEMORY, [{"content": f"As was said, {MEMORY} Always."}], MEMORY, [WARN]),
    "another part of the start": (f"{IDENTITY}\n{MEMORY}", [{"content": MEMORY}], IDENTITY, [PASS]),
    "a part of the start, no memories": (IDENTITY, [], IDENTITY, []),
    "a part of the start, a memory without words": (IDENTITY, [{"content": ""}], IDENTITY, []),
    "a part of the start, odd memories": (IDENTITY, [None, "x", {"content": None}], IDENTITY, []),
    "no list of memories": (MEMORY, {"content": MEMORY}, MEMORY, []),
}  # fmt: skip


@pytest.mark.parametrize("case", STARTS)
def test_only_memories_of_a_start_are_its_sessions_own(case: str, tmp_path: Path) -> None:
    """Identity and instructions may be read from files by any session."""
    inject, memories, told, expected = STARTS[case]
    items = [step("start"), start(inject, memories=memories), step("start", "s2"), start("", "k2"), said(OTHER, "s2"),
             asks(told, OTHER)]  # fmt: skip
    assert verdicts(tmp_path, 4, items) == expected
