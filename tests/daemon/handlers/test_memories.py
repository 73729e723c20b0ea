"""Saving, finding, changing and forgetting memories."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from signet_conformance.daemon.state.texts import CHUNK_TARGET, chunks_of, infer_type, normalise, read_marks

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Kit, MovedClock

LONG = " ".join(f"Lorikeet observation {number} was made at dawn." for number in range(60))


@pytest.mark.parametrize("text", ["kestrel  builds RUN on blue.", " Kestrel builds run on blue!? "])
def test_duplicate_ignores_case_blanks_and_final_marks(kit: Kit, text: str) -> None:
    """The same content in another writing is answered with the first row."""
    first = kit.remember("Kestrel builds run on blue")
    again = kit.remember(text)
    assert (again["id"], again["deduped"], again["embedded"], again["tags"]) == (first["id"], True, True, "")


@pytest.mark.parametrize(
    "place", [{"agentId": "alice"}, {"project": "/srv/other"}, {"visibility": "private"}, {"scope": "s"}]
)
def test_same_content_elsewhere_is_new(kit: Kit, place: dict[str, Any]) -> None:
    """Agent, project, visibility and scope each keep their own rows."""
    assert "deduped" not in {**kit.remember("One fact."), **kit.remember("One fact.", **place)}


def test_idempotency_key_answers_first_row(kit: Kit) -> None:
    """A known idempotency key gives the first row whatever the content."""
    first = kit.remember("Idem one.", idempotencyKey="k")
    assert kit.remember("Idem two.", metadata={"idempotency_key": "k"})["content"] == "Idem one."
    assert kit.get(f"/api/memory/{first['id']}").json()["idempotencyKey"] == "k"


def test_long_content_is_chunked_once(kit: Kit) -> None:
    """Content over 800 characters becomes chunks; the same content again is 409, with its key it is the same chunks."""
    first = kit.remember(LONG, idempotencyKey="long")
    assert first["chunked"] is True
    assert first["chunk_count"] == len(first["ids"]) > 1
    assert kit.post("/api/memory/remember", {"content": LONG}).status_code == 409
    again = kit.remember(LONG, idempotencyKey="long")
    assert (again["ids"], again["group_id"], again["deduped"]) == (first["ids"], first["group_id"], True)
    assert kit.post("/api/memory/remember", {"content": "short", "idempotencyKey": "long"}).status_code == 409


def test_chunks_overlap_and_lose_nothing() -> None:
    """Every chunk but the last ends with the beginning of the next one."""
    chunks = chunks_of(LONG)
    assert all(len(chunk) <= CHUNK_TARGET * 1.25 + 1 for chunk in chunks)
    assert all(f"observation {number} " in " ".join(chunks) for number in range(60))
    for chunk, following in pairwise(chunks):
        assert chunk.endswith(following[:50]) or following[:50] in chunk


def test_a_sentence_without_end_is_cut() -> None:
    """A text without sentence ends is cut into pieces of the target length."""
    assert [len(chunk) for chunk in chunks_of("x" * 1500)] == [751, 751, 300]


@pytest.mark.parametrize(
    ("text", "rest", "tags", "pinned"),
    [
        ("critical: never push", "never push", None, True),
        ("[Deploy, friday]: no deploys", "no deploys", "deploy,friday", False),
        ("CRITICAL: [a]: b", "b", "a", True),
        ("[a] b", "[a] b", None, False),
    ],
)
def test_marks(text: str, rest: str, tags: str | None, pinned: bool) -> None:
    """`critical:` pins, `[a,b]:` tags, anything else is content."""
    marks = read_marks(text)
    assert (marks.rest, marks.tags, marks.pinned) == (rest, tags, pinned)


@pytest.mark.parametrize(
    ("text", "kind"), [("Robin prefers tea", "preference"), ("we decided it", "decision"), ("it is", "fact")]
)
def test_type_follows_words(text: str, kind: str) -> None:
    """The type of a memory is read from its words; a type that is sent is ignored."""
    assert infer_type(text) == kind


def test_line_ends_are_normalised() -> None:
    """Stored content has plain line ends."""
    assert normalise(" a\r\nb\rc ").stored == "a\nb\nc"


def test_recall_leaves_out_what_the_session_saw(kit: Kit) -> None:
    """A second recall with the key is empty, with includeRecalled it repeats, after a compaction it starts over."""
    kit.remember("Kestrel builds run on blue")
    assert kit.recalled("Kestrel", sessionKey="s") == ["Kestrel builds run on blue"]
    assert kit.recalled("Kestrel", sessionKey="s") == []
    assert kit.recalled("Kestrel", sessionKey="s", includeRecalled=True) == ["Kestrel builds run on blue"]
    kit.hook("compaction-complete", sessionKey="s", summary="so far", project="/srv/acme-api")
    assert kit.recalled("Kestrel", sessionKey="s") == ["Kestrel builds run on blue"]


def test_private_row_is_hidden_from_others(kit: Kit) -> None:
    """Another agent, known or not, neither recalls nor gets a private row; nor does an unknown agent a global one."""
    secret = kit.remember("Osprey door code", agentId="alice", visibility="private")["id"]
    shared = kit.remember("Osprey nest height", agentId="alice")["id"]
    assert kit.recalled("Osprey") == ["Osprey nest height"]
    assert kit.get(f"/api/memory/{secret}").status_code == 404
    assert kit.get(f"/api/memory/{secret}?agentId=alice").status_code == 200
    assert kit.get(f"/api/memory/{shared}", headers={"x-signet-agent-id": "never-seen"}).status_code == 404
    assert kit.recalled("Osprey", agentId="never-seen") == []


def test_modify_answers_each_patch(kit: Kit) -> None:
    """A batch is 200 with a status for each patch."""
    first, second, gone = (kit.remember(text)["id"] for text in ("Tern one.", "Tern two.", "Tern three."))
    kit.send("DELETE", f"/api/memory/{gone}", {"reason": "r"})
    patches = [
        {"id": first, "tags": ["a"]},
        {"id": first, "tags": "a"},
        {"id": first, "content": "TERN TWO"},
        {"id": second, "type": "rule", "if_version": 9},
        {"id": gone, "pinned": True},
        {"id": "unknown", "pinned": True},
        {"id": first, "importance": 7},
        {"id": first},
        {"tags": "a"},
        "patch",
    ]
    answer = kit.post("/api/memory/modify", {"reason": "r", "patches": patches}).json()
    statuses = [result["status"] for result in answer["results"]]
    assert statuses == [
        "updated", "no_changes", "duplicate_content_hash", "version_conflict", "deleted", "not_found",
        *["invalid_request"] * 4,
    ]  # fmt: skip
    assert (answer["total"], answer["updated"]) == (10, 1)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"id": "x", "content": "flat"}, "patches[] is required"),
        ({"patches": [{}] * 201}, "patches[] exceeds maximum batch size (200)"),
        ([], "Invalid JSON body"),
    ],
)
def test_modify_refusals(kit: Kit, body: Any, error: str) -> None:
    """A body without patches, or with more than 200, is 400."""
    answer = kit.post("/api/memory/modify", body)
    assert (answer.status_code, answer.json()) == (400, {"error": error})


def test_patch_statuses(kit: Kit) -> None:
    """PATCH is 200, 400 without a reason, 404 for an unknown id, 409 for an old version."""
    memory = kit.remember("Gannet dives deep.")["id"]
    path = f"/api/memory/{memory}"
    assert kit.send("PATCH", path, {"tags": "a"}).json() == {"error": "reason is required"}
    done = kit.send("PATCH", path, {"content": "Gannet dives deeper.", "reason": "r"}).json()
    assert done == {"id": memory, "status": "updated", "currentVersion": 1, "newVersion": 2, "contentChanged": True}
    assert kit.send("PATCH", path, {"tags": "a", "reason": "r", "if_version": 1}).status_code == 409
    assert kit.send("PATCH", "/api/memory/unknown", {"tags": "a", "reason": "r"}).status_code == 404
    assert kit.recalled("deeper") == ["Gannet dives deeper."]


def test_forget_previews_by_default(kit: Kit) -> None:
    """Without a mode nothing is deleted; unknown ids count as none."""
    memory = kit.remember("Puffin burrow.")["id"]
    preview = kit.post("/api/memory/forget", {"ids": [memory, "unknown"]}).json()
    assert (preview["mode"], preview["count"], preview["requiresConfirm"]) == ("preview", 1, False)
    assert kit.get(f"/api/memory/{memory}").status_code == 200
    done = kit.post("/api/memory/forget", {"ids": [memory], "mode": "execute", "reason": "r"}).json()
    assert done["results"] == [{"id": memory, "status": "deleted", "currentVersion": 1, "newVersion": 2}]
    assert kit.get(f"/api/memory/{memory}").status_code == 404


def test_large_forget_needs_the_token(kit: Kit) -> None:
    """More than 25 rows go only with the token of their preview."""
    ids = [kit.remember(f"Skua number {number}")["id"] for number in range(26)]
    body = {"ids": ids, "mode": "execute", "reason": "r", "limit": 50}
    refused = kit.post("/api/memory/forget", body)
    assert (refused.status_code, refused.json()["requiresConfirm"], refused.json()["count"]) == (400, True, 26)
    token = kit.post("/api/memory/forget", {"ids": ids, "limit": 50}).json()["confirmToken"]
    assert token == refused.json()["confirmToken"]
    assert kit.post("/api/memory/forget", {**body, "confirm_token": token}).json()["deleted"] == 26


def test_pinned_row_needs_force(kit: Kit) -> None:
    """A pinned row is deleted with force only, and by a pipeline not even so."""
    path = f"/api/memory/{kit.remember('critical: keep me')['id']}"
    assert kit.send("DELETE", f"{path}?reason=r").json()["status"] == "pinned_requires_force"
    pipeline = {"x-signet-actor-type": "pipeline"}
    assert kit.send("DELETE", f"{path}?reason=r&force=true", headers=pipeline).status_code == 403
    assert kit.send("DELETE", f"{path}?reason=r&force=1").json()["status"] == "deleted"


def test_recovery_within_thirty_days(kit: Kit, clock: MovedClock) -> None:
    """A deleted row can be brought back for 30 days."""
    paths = [f"/api/memory/{kit.remember(text)['id']}" for text in ("Dunlin.", "Knot.")]
    for path in paths:
        kit.send("DELETE", f"{path}?reason=r")
    assert kit.post(f"{paths[0]}/recover", {"reason": "r"}).json()["status"] == "recovered"
    clock.move(days=31)
    assert kit.post(f"{paths[1]}/recover", {"reason": "r"}).json()["status"] == "retention_expired"


def test_frozen_daemon_refuses_changes(start: Callable[..., Kit]) -> None:
    """With the kill switch on, saves and changes are 503, recall works."""
    kit = start(frozen=True)
    refused = {"error": "Mutations are frozen (kill switch active)"}
    for path, body in (
        ("remember", {"content": "c"}),
        ("modify", {"patches": [{}]}),
        ("forget", {"ids": ["x"], "mode": "execute", "reason": "r"}),
    ):
        answer = kit.post(f"/api/memory/{path}", body)
        assert (answer.status_code, answer.json()) == (503, refused)
    assert kit.recalled("anything") == []


def test_prompt_names_an_entity(kit: Kit) -> None:
    """A prompt that names a known project and asks for a fact of it gets that fact."""
    attribute = {
        "groupKey": "release", "claimKey": "cutover_date", "content": "Magpie Ledger cut-over is in May",
        "confidence": 0.95, "importance": 0.9,
    }  # fmt: skip
    aspect = {"entityName": "Magpie Ledger", "entityType": "project", "aspect": "schedule", "attributes": [attribute]}
    saved = kit.remember("Magpie Ledger moves in May.", structured={"aspects": [aspect]})
    assert (saved["structured"], saved["entities_linked"]) == (True, 1)
    answer = kit.hook("user-prompt-submit", userPrompt="When is the Magpie Ledger cut-over?").json()
    assert (answer["engine"], answer["memoryCount"]) == ("entity-context", 1)
    assert "Magpie Ledger / schedule / release / cutover_date: Magpie Ledger cut-over is in May" in answer["inject"]
    assert kit.hook("user-prompt-submit", userPrompt="ok").json()["engine"] == "low-signal"
    assert kit.hook("user-prompt-submit", userPrompt="Deploy something").json()["engine"] == "no-entity"


def test_envelope_of_a_host_is_no_subject(kit: Kit) -> None:
    """What a host puts around a prompt and calls untrusted takes no part in the search."""
    prompt = 'Sender (untrusted metadata): {"id": "Osprey"}\nDeploy the billing service'
    assert kit.hook("user-prompt-submit", userPrompt=prompt).json()["queryTerms"] == "deploy billing service"


def test_one_word_many_times_does_not_stall(kit: Kit) -> None:
    """A query of one word repeated 166,000 times is asked of the index as one word."""
    kit.remember("Heron cache has a ttl of 300 s.")
    assert kit.recalled("Heron " * 166_000) == ["Heron cache has a ttl of 300 s."]


def test_search_over_a_huge_transcript_does_not_stall(kit: Kit) -> None:
    """A transcript of 5 MB is searched through the index."""
    prompt = "Heron moves north. " * 260_000
    kit.hook("user-prompt-submit", sessionKey="huge", userPrompt=prompt)
    hits = kit.post("/api/sessions/search", {"query": prompt}).json()["hits"]
    assert [hit["sessionKey"] for hit in hits] == ["huge"]
