"""Facts about what a model is told of its memory tools: a result is what the daemon answered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.finding import Verdict

from .model_requests import ASKED, anthropic, asking, example, model, of

TOLD = [
    ("found", "1. Atlas deploys happen on Friday\n   at 16:00 UTC. (0.9)", Verdict.PASS),
    ("found", '{"results": [{"content": "Atlas deploys happen on Friday at 16:00 UTC."}]}', Verdict.PASS),
    ("found", "No memories found.", Verdict.WARN),
    ("found", "Error: the memory daemon is unavailable", Verdict.WARN),
    ("found", "[object Object]", Verdict.WARN),
    ("found", "undefined", Verdict.WARN),
    ("found", "", Verdict.WARN),
    ("found", "{}", Verdict.WARN),
    ("found", "[]", Verdict.WARN),
    ("found", '["a panel shows them"]', Verdict.INCONCLUSIVE),
    ("found", '{"results": [], "query": "Atlas deploys"}', Verdict.WARN),
    ("found", '{"results": [], "memories": [{"text": "something else"}]}', Verdict.INCONCLUSIVE),
    ("found", '{"query": "Atlas deploys"}', Verdict.INCONCLUSIVE),
    ("found", "[1 result, see panel]", Verdict.INCONCLUSIVE),
    ("two", "1. Atlas deploys happen on Friday. Nothing else.", Verdict.PASS),
    ("two", "1. Mira approves refunds above 500 EUR. Nothing else.", Verdict.PASS),
    ("two", "1. Only Beacon asks Jon instead. Nothing else.", Verdict.PASS),
    ("two", "No memories found.", Verdict.WARN),
    ("marked as failed", "Hm.", Verdict.WARN),
    ("nothing", "No memories found.", Verdict.INCONCLUSIVE),
    ("refused", "No memories found.", Verdict.WARN),
    ("refused", '{"error": "the daemon answered 500"}', Verdict.PASS),
    ("refused", "Signet is not reachable right now", Verdict.PASS),
    ("refused", "Signet didn't answer: no results.", Verdict.PASS),
    ("refused", "No answer from Signet, so no memories.", Verdict.PASS),
    ("refused", "Something went wrong, and nothing was found: try again.", Verdict.PASS),
    ("refused", "Hm.", Verdict.INCONCLUSIVE),
]


@pytest.mark.parametrize(("answer", "result", "verdict"), TOLD)
def test_the_result_of_a_recall_is_compared_with_the_answer(
    answer: str, result: str, verdict: Verdict, tmp_path: Path
) -> None:
    """Memories that were found, and failures, have to be told; how is the program's affair."""
    items = example(7)
    items[-1]["request"]["body"]["messages"][-1]["content"][0]["content"] = result
    if answer == "nothing":
        items[-2]["response"]["body"]["results"] = []
    if answer == "two":
        other = "Mira approves refunds above 500 EUR.\nOnly Beacon asks Jon instead of her."
        items[-2]["response"]["body"]["results"].append({"id": "m-2", "content": other})
    items[-1]["request"]["body"]["messages"][-1]["content"][0]["is_error"] = answer == "marked as failed"
    if answer == "refused":
        items[-2]["response"] = {"status": 500, "body": {"error": "no"}}
    assert of(tmp_path, 7, items).verdict is verdict


@pytest.mark.parametrize(
    ("query", "status", "result", "verdict"),
    [
        (
            "Why did the export fail?",
            200,
            'Results for "Why did the export fail?": see the panel',
            Verdict.INCONCLUSIVE,
        ),
        ("Why did the export fail?", 200, "Searching failed.", Verdict.WARN),
        ("Why did the export fail?", 500, 'No memories found for "Why did the export fail?".', Verdict.WARN),
        ("Why did the export fail?", 500, "Searching failed.", Verdict.PASS),
        ("memories", 500, "No memories found.", Verdict.WARN),
        ("error", 500, "Errors occurred.", Verdict.PASS),
    ],
)
def test_a_query_is_no_report_of_the_outcome(
    query: str, status: int, result: str, verdict: Verdict, tmp_path: Path
) -> None:
    """The words of a query that speaks of an outcome are left out where the result repeats them."""
    items = json.loads(json.dumps(example(7)).replace('"query": "Atlas deploys"', f'"query": "{query}"'))
    items[-1]["request"]["body"]["messages"][-1]["content"][0]["content"] = result
    if status != 200:
        items[-2]["response"] = {"status": status, "body": {"error": "no"}}
    assert of(tmp_path, 7, items).verdict is verdict


@pytest.mark.parametrize(
    ("again", "late", "verdict"),
    [
        ("Atlas deploys", False, Verdict.INCONCLUSIVE),
        ("refunds", False, Verdict.WARN),
        ("Atlas deploys", True, Verdict.WARN),
    ],
    ids=["again", "of another query", "after the result"],
)
def test_a_result_is_compared_with_the_last_answer_before_it(
    again: str, late: bool, verdict: Verdict, tmp_path: Path
) -> None:
    """A connector that asks again reports the second answer."""
    *before, refused, told = example(7)
    refused["response"] = {"status": 503, "body": BUSY}
    retry = {
        "request": {"method": "POST", "path": "/api/memory/recall", "body": {"query": again}},
        "response": {"status": 200, "body": {"results": []}},
    }
    items = [*before, refused, told, retry] if late else [*before, refused, retry, told]
    assert of(tmp_path, 7, items).verdict is verdict


def test_a_recall_without_a_result_is_not_judged(tmp_path: Path) -> None:
    """A connector may search for itself."""
    items = json.loads(json.dumps(example(7)).replace('"input": {"query": "Atlas deploys"}', '"input": {}'))
    assert of(tmp_path, 7, items).verdict is Verdict.NOT_APPLICABLE


@pytest.mark.parametrize("kept", ["", "No memories found."])
def test_a_result_is_compared_in_its_own_turn(kept: str, tmp_path: Path) -> None:
    """Programs shorten older results, which is not the connector's doing."""
    items = example(7)
    messages = items[-1]["request"]["body"]["messages"]
    messages[-1]["content"][0]["content"] = "Atlas deploys happen on Friday at 16:00 UTC."
    later = json.loads(json.dumps(items[-1]))
    said = later["request"]["body"]["messages"]
    said[-1]["content"][0]["content"] = kept
    said += [{"role": "assistant", "content": "Friday."}, {"role": "user", "content": "And when on Monday?"}]
    step = {"mark": "step", "data": {"index": 2, "step": "prompt", "session": "s1", "text": "And when on Monday?"}}
    assert of(tmp_path, 7, [*items, step, later]).verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("status", "result", "verdict"),
    [
        (200, "Saved.", Verdict.PASS),
        (200, "OK: deploys fail on Fridays, error 500 included", Verdict.PASS),
        (200, "Stored, after one error.", Verdict.PASS),
        (200, "Failed to save memory", Verdict.WARN),
        (200, '{"id": "m-1", "type": "fact", "pinned": false, "embedded": false}', Verdict.PASS),
        (200, '{"id": "m-12", "type": "fact", "pinned": false, "embedded": false}', Verdict.WARN),
        (503, "Saved to memory", Verdict.WARN),
        (503, "Could not save: busy", Verdict.PASS),
        (503, "The daemon did not answer; whether it was saved is not known.", Verdict.PASS),
        (503, "Saving did not work.", Verdict.PASS),
        (503, "Nothing was stored.", Verdict.PASS),
        (503, "No memories found.", Verdict.WARN),
    ],
)
def test_the_result_of_a_save_is_compared_with_the_answer(
    status: int, result: str, verdict: Verdict, tmp_path: Path
) -> None:
    """What was kept is told as kept, what was not as a failure; what it says itself does not count."""
    assert of(tmp_path, 7, saving(status, result)).verdict is verdict


def saving(status: int, result: str) -> list[dict[str, Any]]:
    """A turn in which the model saves something, with the daemon's status and what the tool says."""
    text = json.dumps(example(7)).replace('"query": "Atlas deploys"', '"content": "deploys fail on Fridays"')
    items: list[dict[str, Any]] = json.loads(text.replace("/api/memory/recall", "/api/memory/remember"))
    items[-2]["response"] = {"status": status, "body": {"id": "m-1"} if status == 200 else {"error": "busy"}}
    items[-1]["request"]["body"]["messages"][-1]["content"][0]["content"] = result
    return items


def test_refused_save_after_which_nothing_is_known_is_not_called_done(tmp_path: Path) -> None:
    """The message says what the model reads."""
    (finding,) = of(tmp_path, 7, saving(503, "No memories found.")).findings
    assert finding.message == "the daemon answered 503, but the model is told that nothing is known"


def test_answer_that_denies_what_was_asked_is_called_useless(tmp_path: Path) -> None:
    """The daemon answered, and nothing was saved."""
    items = saving(200, "Saved to memory")
    items[-2]["response"]["body"] = {"success": False}
    (finding,) = of(tmp_path, 7, items).findings
    assert finding.message == "the daemon answered 200 with nothing of use, but the model is told that it was done"


def test_answer_that_came_too_late_is_not_called_useless(tmp_path: Path) -> None:
    """The connector had given up before it came."""
    items = saving(200, "No memories found.")
    items[-2]["error"] = {"kind": "client_closed"}
    (finding,) = of(tmp_path, 7, items).findings
    assert finding.message.startswith("the daemon did not answer in time, but the model")


ROW = "5d1f0c62-6f0e-4a7b-9a53-2f6f3d1f7a10"
WRITTEN = "Atlas deploys happen on Monday."


def using(tool: str, arguments: dict[str, Any], call: dict[str, Any], result: str) -> list[dict[str, Any]]:
    """A turn in which the model calls one tool, which makes one call of the daemon."""
    items = example(7)
    said = items[-1]["request"]["body"]["messages"]
    said[-2]["content"][0] = {"type": "tool_use", "id": "call-1", "name": tool, "input": arguments}
    said[-1]["content"][0]["content"] = result
    return [*items[:-2], call, items[-1]]


CHANGED = {"id": ROW, "status": "updated", "currentVersion": 1, "newVersion": 2, "contentChanged": False}
DELETED = {"id": ROW, "status": "deleted", "currentVersion": 1, "newVersion": 2}
BUSY = {"error": "busy"}
DEEDS = [
    ("DELETE", 200, DELETED, f"Memory {ROW} forgotten.", Verdict.PASS),
    ("DELETE", 200, DELETED, json.dumps(DELETED), Verdict.PASS),
    ("DELETE", 200, DELETED, f"Failed to forget memory {ROW}.", Verdict.WARN),
    ("DELETE", 200, DELETED, "See the panel.", Verdict.PASS),
    ("DELETE", 200, {}, "Failed to forget it.", Verdict.NOT_APPLICABLE),
    ("DELETE", 503, BUSY, f"Memory {ROW} forgotten.", Verdict.WARN),
    ("DELETE", None, None, "Done.", Verdict.WARN),
    ("DELETE", 503, BUSY, f"Failed to forget memory {ROW}.", Verdict.PASS),
    ("DELETE", 503, BUSY, "Nothing was deleted.", Verdict.PASS),
    ("DELETE", 503, BUSY, "It will be deleted once the daemon is back.", Verdict.INCONCLUSIVE),
    ("DELETE", 503, BUSY, "Hm.", Verdict.INCONCLUSIVE),
    ("DELETE", 404, {"error": "no such memory"}, "Done.", Verdict.NOT_APPLICABLE),
    ("DELETE", 409, {"id": ROW, "status": "already_deleted", "error": "gone"}, "Forgotten.", Verdict.NOT_APPLICABLE),
    ("PATCH", 200, CHANGED, json.dumps(CHANGED), Verdict.PASS),
    ("PATCH", 200, CHANGED, "The memory could not be updated.", Verdict.WARN),
    ("PATCH", 200, CHANGED, f"Now it says: {WRITTEN}", Verdict.PASS),
    ("PATCH", 409, {"error": "version conflict"}, "Updated.", Verdict.WARN),
    ("PATCH", 409, {"error": "version conflict"}, "Not updated: another version", Verdict.PASS),
    ("PATCH", 503, BUSY, f"I keep this for later: {WRITTEN}", Verdict.INCONCLUSIVE),
    ("GET", 200, {"id": ROW, "content": WRITTEN}, json.dumps({"id": ROW, "content": WRITTEN}), Verdict.PASS),
    ("GET", 200, {"id": ROW, "content": WRITTEN}, f"Memory {ROW} not found.", Verdict.WARN),
    ("GET", 404, {"error": "not found"}, f"Memory {ROW} not found.", Verdict.NOT_APPLICABLE),
    ("GET", 503, BUSY, f"Memory {ROW} not found.", Verdict.WARN),
    ("GET", 503, BUSY, "The daemon is not available.", Verdict.PASS),
]


FORGOTTEN = ("forget", {"ids": [ROW, "m-77"], "mode": "execute"})
MODIFIED = ("modify", {"patches": [{"id": ROW, "content": "The export failed."}], "reason": "it moved"})
BATCHES = [
    (FORGOTTEN, 503, "Done.", Verdict.WARN),
    (FORGOTTEN, 503, "Failed to forget them.", Verdict.PASS),
    (FORGOTTEN, 200, "Failed to forget them.", Verdict.NOT_APPLICABLE),
    (MODIFIED, 503, "Updated.", Verdict.WARN),
    (MODIFIED, 503, "Updated. It says now: The export failed.", Verdict.WARN),
    (MODIFIED, 503, "The memory could not be updated.", Verdict.PASS),
    (MODIFIED, 200, "The memory could not be updated.", Verdict.NOT_APPLICABLE),
]


@pytest.mark.parametrize(("sent", "status", "result", "verdict"), BATCHES)
def test_the_result_of_a_batch_is_compared_with_its_refusal(
    sent: tuple[str, dict[str, Any]], status: int, result: str, verdict: Verdict, tmp_path: Path
) -> None:
    """The model reads of a failure if the whole batch was refused; an accepted batch is not judged."""
    route, body = sent
    request = {"method": "POST", "path": f"/api/memory/{route}", "body": body}
    answer = {"total": 1, "results": []} if status == 200 else BUSY
    call = {"request": request, "response": {"status": status, "body": answer}}
    assert of(tmp_path, 7, using("memory_tool", body, call, result)).verdict is verdict


def test_an_id_is_no_report_of_a_failure(tmp_path: Path) -> None:
    """The result may repeat an id that reads like a status."""
    items = using("memory_tool", {"id": "m-404"}, forgetting("m-404"), "Memory m-404 forgotten.")
    assert of(tmp_path, 7, items).verdict is Verdict.WARN


def test_the_last_of_several_answers_is_described(tmp_path: Path) -> None:
    """A connector that asks again reports the last answer."""
    *items, told = using("memory_tool", {"id": ROW}, forgetting(ROW), "Done.")
    lost = forgetting(ROW) | {"response": None, "error": {"kind": "upstream_reset"}}
    (finding,) = of(tmp_path, 7, [*items, lost, told]).findings
    assert finding.message == "the daemon did not answer, but the model is told that it was done"


@pytest.mark.parametrize(("method", "status", "answer", "result", "verdict"), DEEDS)
def test_the_result_of_a_tool_with_an_id_is_compared_with_the_answer(
    method: str, status: int | None, answer: Any, result: str, verdict: Verdict, tmp_path: Path
) -> None:
    """What was changed, forgotten or read is told as that, and a refusal as a failure."""
    body = {"content": WRITTEN, "reason": "it moved"} if method == "PATCH" else None
    call = {"request": {"method": method, "path": f"/api/memory/{ROW}", "body": body}}
    lost = {"error": {"kind": "fault"}, "fault": {"kind": "reset"}}
    call |= lost if status is None else {"response": {"status": status, "body": answer}}
    assert of(tmp_path, 7, using("memory_tool", {"id": ROW, **(body or {})}, call, result)).verdict is verdict


def test_each_of_two_tools_is_compared_with_its_own_answer(tmp_path: Path) -> None:
    """The model calls the second tool after it has read the first one's result."""
    items = using("memory_tool", {"id": ROW}, forgetting(ROW), "Done.")
    later = json.loads(json.dumps(items[-1]))
    use, result = later["request"]["body"]["messages"][-2:]
    use["content"][0] |= {"id": "call-2", "input": {"id": "m-77"}}
    result["content"][0]["tool_use_id"] = "call-2"
    later["request"]["body"]["messages"][-2:-2] = items[-1]["request"]["body"]["messages"][-2:]
    findings = of(tmp_path, 7, [*items, forgetting("m-77"), later]).findings
    assert [finding.exchanges for finding in findings] == [(len(items) - 1,), (len(items) + 1,)]


def forgetting(row: str, status: int = 503, **more: Any) -> dict[str, Any]:
    """A request to forget a memory, refused unless another status is given."""
    request = {"method": "DELETE", "path": f"/api/memory/{row}"}
    return {"request": request, "response": {"status": status, "body": DELETED if status == 200 else BUSY}, **more}


BY_QUERY = {"method": "POST", "path": "/api/memory/forget", "body": {"query": "Atlas", "mode": "execute"}}
ODD_SHAPE = {"fault": {"kind": "shape"}, "response": {"status": 200, "body": {"results": "none"}}}
NOT_SHOWN = {
    "of several memories one": [forgetting(ROW, 200), forgetting("m-77")],
    "memories by a query": [{"request": BY_QUERY, "response": {"status": 503, "body": BUSY}}],
    "a memory that the tool was not given": [forgetting(ROW), forgetting("m-78")],
    "a memory, by an answer of another shape": [forgetting(ROW, **ODD_SHAPE)],
}


@pytest.mark.parametrize("name", NOT_SHOWN)
def test_an_answer_that_leaves_the_outcome_open_is_not_judged(name: str, tmp_path: Path) -> None:
    """The model may be told that it is done."""
    call, *others = NOT_SHOWN[name]
    *items, told = using("memory_tool", {"ids": [ROW, "m-77"]}, call, "Done.")
    assert of(tmp_path, 7, [*items, *others, told]).verdict is Verdict.NOT_APPLICABLE


def test_a_new_text_about_a_failure_is_no_report_of_one(tmp_path: Path) -> None:
    """A result may repeat what was written."""
    written = {"content": "The export failed."}
    call = {
        "request": {"method": "PATCH", "path": f"/api/memory/{ROW}", "body": written},
        "response": {"status": 200, "body": CHANGED},
    }
    items = using("memory_tool", {"id": ROW, **written}, call, "It says now: The export failed.")
    assert of(tmp_path, 7, items).verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("method", "result", "claim"),
    [
        ("DELETE", "Done.", "it was done"),
        ("PATCH", "Updated.", "it was done"),
        ("GET", "Memory not found.", "nothing is known"),
    ],
)
def test_the_message_says_that_the_daemon_did_not_answer(method: str, result: str, claim: str, tmp_path: Path) -> None:
    """The message tells a missing answer from a late one, and a change from a read."""
    lost = {"response": None, "error": {"kind": "fault"}, "fault": {"kind": "reset"}}
    call = {"request": {"method": method, "path": f"/api/memory/{ROW}"}, **lost}
    (finding,) = of(tmp_path, 7, using("memory_tool", {"id": ROW}, call, result)).findings
    assert finding.message == f"the daemon did not answer, but the model is told that {claim}"


def test_the_message_says_that_a_save_was_stored(tmp_path: Path) -> None:
    """The message does not call it changed or forgotten."""
    (finding,) = of(tmp_path, 7, saving(200, "Failed to save memory")).findings
    assert finding.message == "the daemon stored it, but the model is told that it failed"


def test_a_result_that_is_marked_as_failed_reports_a_failure(tmp_path: Path) -> None:
    """A result that the program marks as failed needs no words of failure."""
    items = saving(503, "Hm.")
    items[-1]["request"]["body"]["messages"][-1]["content"][0]["is_error"] = True
    assert of(tmp_path, 7, items).verdict is Verdict.PASS


def test_a_result_may_come_after_another_request(tmp_path: Path) -> None:
    """A program may ask for a title before it sends the result."""
    *items, told = example(7)
    assert of(tmp_path, 7, [*items, anthropic("Name this session.", tools=False), told]).verdict is Verdict.WARN


@pytest.mark.parametrize("query", ["", "Atlas deploys"], ids=["no query", "the query of two tools"])
def test_a_recall_that_several_tools_may_have_made_is_not_judged(query: str, tmp_path: Path) -> None:
    """A recall may be any tool's if it has no query, or a query that two tools were given."""
    items = json.loads(json.dumps(example(7)).replace('"query": "Atlas deploys"', f'"query": "{query}"'))
    if query:
        use, result = items[-1]["request"]["body"]["messages"][-2:]
        use["content"].append({**use["content"][0], "id": "call-2"})
        result["content"].append({**result["content"][0], "tool_use_id": "call-2"})
    assert of(tmp_path, 7, items).verdict is Verdict.NOT_APPLICABLE


def test_a_result_from_before_a_recall_is_not_its_result(tmp_path: Path) -> None:
    """The model may ask for the same once more."""
    *items, recall, told = example(7)
    recall["response"]["body"]["results"] = []
    again = {**recall, "response": {"status": 503, "body": BUSY}}
    assert of(tmp_path, 7, [*items, recall, told, again]).verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(("method", "answer", "done"), [("DELETE", DELETED, "forgot"), ("PATCH", CHANGED, "changed")])
def test_it_is_told_what_was_done_in_spite_of_what_the_model_is_told(
    method: str, answer: Any, done: str, tmp_path: Path
) -> None:
    """Forgetting is told as that."""
    call = {
        "request": {"method": method, "path": f"/api/memory/{ROW}", "body": None},
        "response": {"status": 200, "body": answer},
    }
    (finding,) = of(tmp_path, 7, using("memory_tool", {"id": ROW}, call, "It failed.")).findings
    assert finding.message == f"the daemon {done} it, but the model is told that it failed"


@pytest.mark.parametrize(("result", "verdict"), [("No memories found.", Verdict.WARN), ("Error 503", Verdict.PASS)])
def test_tools_are_judged_after_another_step_than_a_prompt(result: str, verdict: Verdict, tmp_path: Path) -> None:
    """The model goes on by itself after a compaction, and calls tools; the request may hold no word of the user's."""
    items = example(7)
    steps = [
        {"mark": "step", "data": {"index": 2, "step": "compact", "session": "s1", "summary": "All was said."}},
        {"mark": "step", "data": {"index": 3, "step": "tool", "session": "s1", "tool": "memory_search"}},
    ]
    items[-2]["response"] = {"status": 503, "body": BUSY}
    said = items[-1]["request"]["body"]["messages"]
    said[0]["content"] = "Summary: all was said."
    said[-1]["content"][0]["content"] = result
    assert of(tmp_path, 7, [*items[:-2], *steps, *items[-2:]]).verdict is verdict


def test_a_result_that_may_be_of_another_tool_decides_nothing(tmp_path: Path) -> None:
    """Two results that are new at once, or one that names no id of the request, tell nothing of it."""
    call = {
        "request": {"method": "DELETE", "path": f"/api/memory/{ROW}", "body": None},
        "response": {"status": 503, "body": BUSY},
    }
    other = using("memory_tool", {"id": "m-77"}, call, "Done.")
    two = using("memory_tool", {"id": ROW}, call, "Done.")
    said = two[-1]["request"]["body"]["messages"]
    said[-2]["content"].append({"type": "tool_use", "id": "call-2", "name": "read", "input": {"path": "a.txt"}})
    said[-1]["content"].append({"type": "tool_result", "tool_use_id": "call-2", "content": "Done."})
    for items in (other, two):
        assert of(tmp_path, 7, items).verdict is Verdict.NOT_APPLICABLE


@pytest.mark.parametrize(
    ("route", "result", "verdict"),
    [
        ("recall", "No memories found.", Verdict.INCONCLUSIVE),
        ("recall", "Error: an odd answer", Verdict.PASS),
        ("remember", "Saved.", Verdict.INCONCLUSIVE),
    ],
)
def test_an_answer_of_an_odd_shape_may_be_told_either_way(
    route: str, result: str, verdict: Verdict, tmp_path: Path
) -> None:
    """Its status is that of success, and who tolerates it finds nothing in it (SIG-FAIL-005)."""
    text = json.dumps(example(7)).replace("/api/memory/recall", f"/api/memory/{route}")
    items = json.loads(text.replace('"query"', '"query"' if route == "recall" else '"content"'))
    items[-2] = {**items[-2], "response": {"status": 200, "body": {"results": "none"}}, "fault": {"kind": "shape"}}
    items[-1]["request"]["body"]["messages"][-1]["content"][0]["content"] = result
    assert of(tmp_path, 7, items).verdict is verdict


@pytest.mark.parametrize(
    ("result", "verdict"),
    [
        ("1. The export failed on Friday …", Verdict.PASS),
        ("1. The export failed on …", Verdict.WARN),
        ("The search failed on Friday", Verdict.WARN),
    ],
)
def test_a_memory_may_be_shortened(result: str, verdict: Verdict, tmp_path: Path) -> None:
    """Its first five words tell the model of it, though it speaks of a failure itself."""
    items = example(7)
    row = {"id": "m-1", "content": "The export failed on Friday because the disk of the platform team was full."}
    items[-2]["response"]["body"]["results"] = [row]
    items[-1]["request"]["body"]["messages"][-1]["content"][0]["content"] = result
    assert of(tmp_path, 7, items).verdict is verdict


@pytest.mark.parametrize("api", ["chat", "responses", "ollama"])
def test_a_tools_result_is_read_in_every_format(api: str, tmp_path: Path) -> None:
    """Each vendor's way to repeat a call with its result is understood."""
    arguments, said = '{"query": "Atlas deploys"}', "No memories found."
    function = {"name": "memory_search", "arguments": arguments if api == "chat" else json.loads(arguments)}
    chat = [
        {"role": "user", "content": ASKED},
        {"role": "assistant", "tool_calls": [{**({"id": "c1"} if api == "chat" else {}), "function": function}]},
        {
            "role": "tool",
            "content": said,
            **({"tool_call_id": "c1"} if api == "chat" else {"tool_name": "memory_search"}),
        },
    ]
    responses = [
        {"role": "user", "content": ASKED},
        {"type": "function_call", "call_id": "c1", "name": "memory_search", "arguments": arguments},
        {"type": "function_call_output", "call_id": "c1", "output": said},
    ]
    body, path = {
        "chat": ({"messages": chat}, "/v1/chat/completions"),
        "ollama": ({"messages": chat}, "/api/chat"),
        "responses": ({"input": responses}, "/v1/responses"),
    }[api]
    assert of(tmp_path, 7, asking(7, model(body, path))).verdict is Verdict.WARN


def test_each_result_of_a_chained_conversation_is_compared(tmp_path: Path) -> None:
    """A request that names the one before it repeats no earlier result."""
    items: list[Any] = example(7)[:-2]
    items[-1] = model({"input": ASKED}, "/v1/responses")
    for row in (ROW, "m-77"):
        use = {"type": "function_call", "call_id": f"call-{row}", "name": "memory_tool", "arguments": {"id": row}}
        result = {"type": "function_call_output", "call_id": f"call-{row}", "output": "Done."}
        given = [{"role": "user", "content": ASKED}, use, result]
        items += [forgetting(row), model({"input": given, "previous_response_id": "r-1"}, "/v1/responses")]
    assert len(of(tmp_path, 7, items).findings) == 2
