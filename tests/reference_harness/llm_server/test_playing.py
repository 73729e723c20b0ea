"""Which turn answers which request, when, and what GET /requests shows of it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.support.processes import wait_until

from .served import Serve, Served

RESULT = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "three memories"}]}
CALLED = {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "recall", "input": {}}]}


def say(served: Served, *messages: Any, **more: Any) -> httpx.Response:
    """Call Anthropic's interface; a text is a message of the user."""
    told = [{"role": "user", "content": each} if isinstance(each, str) else each for each in messages]
    return served.http.post("/v1/messages", json={"model": "m", "messages": told, **more})


def text(answer: httpx.Response) -> str:
    """The text of a whole answer."""
    said: str = answer.json()["content"][0]["text"]
    return said


def test_turns_are_played_in_order(serve: Serve) -> None:
    """Each request takes one turn; GET /requests has the turn's name or place."""
    served = serve(turns=[{"content": "one", "name": "greeting"}, {"content": "two"}])
    assert [text(say(served, "hi")), text(say(served, "hi"))] == ["one", "two"]
    assert [kept["turn"] for kept in served.requests()] == ["greeting", "turns/1"]


def test_a_script_that_has_run_out_says_so(serve: Serve) -> None:
    """The error is 500, says how to go on, and tells the vendors' packages not to try again."""
    answer = say(serve(turns=[]), "hi")
    assert answer.status_code == 500
    assert answer.headers["x-should-retry"] == "false"
    assert "the script has no turn left" in answer.json()["error"]["message"]


def test_the_last_turn_is_repeated_when_asked_for(serve: Serve) -> None:
    """With when_out repeat, the last turn is played for ever."""
    served = serve(turns=[{"content": "one"}, {"content": "two"}], when_out="repeat")
    assert [text(say(served, "hi")) for _ in range(4)] == ["one", "two", "two", "two"]


def test_a_request_waits_for_a_turn_when_asked_to(serve: Serve) -> None:
    """With when_out wait, GET /requests shows the request, and a turn of POST /turns answers it."""
    served = serve(turns=[], when_out="wait")
    with ThreadPoolExecutor(1) as other:
        answer = other.submit(say, served, "hi")
        (seen,) = served.http.get("/requests", params={"after": served.last, "wait_s": 60}).json()["requests"]
        assert (seen["asked"]["messages"], seen["turn"]) == ([{"role": "user", "text": "hi"}], None)
        served.http.post("/turns", json={"turns": [{"content": "at last"}]}).raise_for_status()
        assert text(answer.result()) == "at last"


@pytest.mark.parametrize(("turns", "status"), [([{"content": "at last"}], 200), ([], 500)])
def test_a_request_that_waits_is_answered_by_another_script(serve: Serve, turns: list[object], status: int) -> None:
    """PUT /script wakes it; if that script has no turns and does not wait, the answer is an error."""
    served = serve(turns=[], when_out="wait", wait_ms=300_000)
    with ThreadPoolExecutor(1) as other:
        answer = other.submit(say, served, "hi")
        served.http.get("/requests", params={"after": served.last, "wait_s": 60}).raise_for_status()
        served.play(turns=turns)
        assert answer.result().status_code == status


def test_a_turn_that_names_a_request_answers_that_one(serve: Serve) -> None:
    """Of two waiting requests, the second one is answered first."""
    served = serve(turns=[], when_out="wait")
    with ThreadPoolExecutor(2) as others:
        answers, numbers = [], [served.last]
        for said in ("first", "second"):
            answers.append(others.submit(say, served, said))
            (seen,) = served.http.get("/requests", params={"after": numbers[-1], "wait_s": 60}).json()["requests"]
            numbers.append(seen["number"])
        for number, words in reversed(list(zip(numbers[1:], ("to the first", "to the second"), strict=True))):
            answer = {"turns": [{"content": words}], "request": number}
            served.http.post("/turns", json=answer).raise_for_status()
        assert [text(answer.result()) for answer in answers] == ["to the first", "to the second"]


def test_a_wait_that_is_too_long_ends_as_an_error(serve: Serve) -> None:
    """After wait_ms the answer is 500 and names POST /turns."""
    answer = say(serve(turns=[], when_out="wait", wait_ms=1), "hi")
    assert (answer.status_code, "POST /turns" in answer.text) == (500, True)


@pytest.mark.parametrize(
    ("when", "matching", "other"),
    [
        ({"last_user": {"contains": "May"}}, ["in May"], ["in May", CALLED, "in June"]),
        ({"last_user": {"matches": r"\bship(ped)?\b"}}, ["we shipped"], ["a shipment"]),
        ({"last_user": {"contains": "a", "matches": "b"}}, ["a b"], ["a"]),
        ({"anywhere": {"contains": "May"}}, ["in May", "in June"], ["in June"]),
        ({"tool_result": {"contains": "memories"}}, ["hi", CALLED, RESULT], ["hi", CALLED, RESULT, "next"]),
        ({"after_tool": True}, ["hi", CALLED, RESULT], ["hi"]),
        ({"after_tool": False}, ["hi"], ["hi", CALLED, RESULT]),
        ({"api": "anthropic-messages", "last_user": {"contains": "May"}}, ["May"], ["June"]),
    ],
)
def test_a_rule_answers_what_is_like_it(serve: Serve, when: Any, matching: list[Any], other: list[Any]) -> None:
    """A request that meets the condition is answered by the rule, another one by the next turn."""
    served = serve(turns=[{"content": "turn"}], rules=[{"when": when, "turn": {"content": "rule"}}], when_out="repeat")
    assert [text(say(served, *matching)), text(say(served, *other))] == ["rule", "turn"]
    assert [kept["turn"] for kept in served.requests()] == ["rules/0", "turns/0"]


@pytest.mark.parametrize(
    ("when", "matching"),
    [
        ({"system": {"contains": "brief"}}, {"system": [{"type": "text", "text": "Be brief."}]}),
        ({"offers_tool": "recall"}, {"tools": [{"name": "recall", "input_schema": {}}]}),
        ({"model": "other"}, {"model": "other"}),
        ({"stream": False, "model": "m"}, {}),
    ],
)
def test_a_rule_looks_beside_the_messages(serve: Serve, when: Any, matching: Any) -> None:
    """System prompt, offered tools, model and streaming can be conditions too."""
    rules = [{"when": when, "turn": {"content": "rule"}}]
    assert text(say(serve(turns=[], rules=rules), "hi", **matching)) == "rule"
    assert say(serve(turns=[], rules=[{**rules[0], "when": {**when, "model": "none"}}]), "hi").status_code == 500


def test_a_rule_holds_so_often(serve: Serve) -> None:
    """After `times` uses, the turns answer."""
    rule = {"when": {}, "times": 2, "turn": {"content": "rule"}}
    served = serve(turns=[{"content": "turn"}], rules=[rule])
    assert [text(say(served, "hi")) for _ in range(3)] == ["rule", "rule", "turn"]


def test_a_delay_passes_before_the_first_byte(serve: Serve) -> None:
    """The times of the request show the delay, and that of each chunk."""
    served = serve(turns=[{"content": "a b c", "delay_ms": 60, "chunk_delay_ms": 30}])
    assert say(served, "hi", stream=True).status_code == 200
    (kept,) = served.requests()
    assert kept["first_chunk"] - kept["began"] >= 0.06
    assert kept["ended"] - kept["first_chunk"] >= 0.06


def test_a_client_that_leaves_is_noticed(serve: Serve) -> None:
    """An answer that hangs ends as client_closed once the client closes."""
    served = serve(turns=[{"content": "one two", "fault": {"kind": "hang", "after": 1}}])
    ask = {"model": "m", "stream": True, "messages": []}
    with (
        httpx.Client(base_url=served.url, trust_env=False) as leaving,
        leaving.stream("POST", "/v1/messages", json=ask),
    ):
        pass
    wait_until(lambda: served.requests()[0]["outcome"] == "client_closed", "the server did not notice")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (
            "/v1/messages",
            {
                "anthropic-ratelimit-requests-limit": "50",
                "anthropic-ratelimit-requests-remaining": "0",
                "anthropic-ratelimit-requests-reset": "Z",
            },
        ),
        (
            "/v1/responses",
            {
                "x-ratelimit-limit-requests": "50",
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-requests": "6m0s",
            },
        ),
    ],
)
def test_rate_limits_are_told_in_the_vendor_s_headers(serve: Serve, path: str, expected: dict[str, str]) -> None:
    """Anthropic sends the time of the reset, OpenAI the time until it; further headers are sent unchanged."""
    limit = {"scope": "requests", "limit": 50, "remaining": 0, "reset_s": 360}
    error = {"status": 429, "retry_after_s": "Wed, 21 Oct 2026 07:28:00 GMT"}
    served = serve(turns=[{"rate_limits": [limit], "headers": {"X-Odd": "1"}, "error": error}])
    answer = served.http.post(path, json={"model": "m"})
    assert answer.status_code == 429
    assert {name: value for name, value in answer.headers.items() if "ratelimit" in name}.keys() == expected.keys()
    assert all(answer.headers[name].endswith(value) for name, value in expected.items())
    assert (answer.headers["x-odd"], answer.headers["retry-after"]) == ("1", "Wed, 21 Oct 2026 07:28:00 GMT")
