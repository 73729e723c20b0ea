"""A public mock server of the same interfaces writes the same events; `nox -s public_mock` installs and starts it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from .served import Serve
from .test_vendor_types import PATHS, events

PACKAGE = os.environ.get("SIGNET_AIMOCK", "")
"""The folder of the installed package @copilotkit/aimock."""
NODE = shutil.which("node")
CALLS = [("recall", {"query": "a b c"}), ("remember", {"content": "x"})]
ANSWERS: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    "text": ({"content": "Hello there, friend."}, [{"type": "text", "text": "Hello there, friend."}]),
    "thinking": (
        {"content": "Hello.", "reasoning": "Let me think."},
        [{"type": "thinking", "text": "Let me think."}, {"type": "text", "text": "Hello."}],
    ),
    "calls": (
        {"content": "I look.", "toolCalls": [{"name": name, "arguments": json.dumps(given)} for name, given in CALLS]},
        [
            {"type": "text", "text": "I look."},
            *({"type": "tool_call", "name": name, "arguments": given} for name, given in CALLS),
        ],
    ),
}
"""Name of an answer to how the public server is told it, and how ours is."""

pytestmark = pytest.mark.skipif(not (PACKAGE and NODE), reason="needs node and @copilotkit/aimock: nox -s public_mock")


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the public server, whose answers are requested by name."""
    fixtures = [{"match": {"userMessage": name}, "response": told} for name, (told, _) in ANSWERS.items()]
    limited = {"error": {"message": "slower", "type": "rate_limit_error"}, "status": 429}
    fixtures.append({"match": {"userMessage": "limited"}, "response": limited})
    path = tmp_path_factory.mktemp("aimock") / "fixtures.json"
    path.write_text(json.dumps({"fixtures": fixtures}))
    command = [NODE or "", str(Path(PACKAGE, "dist", "cli.js")), "-p", "0", "-f", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        listening = (re.search(r"listening on (http://\S+)", line) for line in process.stdout)
        yield next(match for match in listening if match)[1]
        process.terminate()


def ask(url: str, api: str, wanted: str, *, stream: bool) -> httpx.Response:
    """Request an answer by its name."""
    said = [{"role": "user", "content": wanted}]
    body = {
        "model": "m",
        "max_tokens": 99,
        "stream": stream,
        "input" if api == "openai-responses" else "messages": said,
    }
    return httpx.post(
        url + PATHS[api], json=body, headers={"anthropic-version": "2023-06-01"}, trust_env=False, timeout=60
    )


def anthropic_event(event: Any) -> list[tuple[Any, ...]]:
    """Blocks, the content of their deltas, and the end."""
    kind, index = event["type"], event.get("index")
    if kind == "content_block_start":
        return [(kind, index, event["content_block"]["type"], event["content_block"].get("name"))]
    if kind == "content_block_delta":
        delta = event["delta"]
        text = delta.get("text", delta.get("thinking", delta.get("partial_json")))
        return [] if delta["type"] == "signature_delta" else [("delta", index, delta["type"], text)]
    if kind == "message_delta":
        return [(kind, event["delta"]["stop_reason"], event["delta"]["stop_sequence"])]
    return [] if kind == "ping" else [(kind, index)]


def completions_event(event: Any) -> list[tuple[Any, ...]]:
    """The content of deltas, and the end; the place of the role differs and has no meaning."""
    told: list[tuple[Any, ...]] = []
    for choice in event["choices"]:
        delta = choice["delta"]
        told += [("delta", member, delta[member]) for member in ("reasoning_content", "content") if delta.get(member)]
        for call in delta.get("tool_calls", ()):
            if "id" in call:
                told.append(("call", call["index"], call["type"], call["function"]["name"]))
            told.append(("delta", call["index"], call["function"]["arguments"]))
        told += [("finish", choice["finish_reason"])] if choice["finish_reason"] else []
    return told


def responses_event(event: Any) -> list[tuple[Any, ...]]:
    """Every event with its place and content."""
    kind, place = event["type"], tuple(event.get(name) for name in ("output_index", "content_index", "summary_index"))
    if kind.endswith(".delta"):
        return [("delta", kind, *place, event["delta"])]
    item, part = event.get("item"), event.get("part")
    brought = event.get("text", event.get("arguments"))
    if item is not None:
        brought = (item["type"], item.get("name"), item.get("arguments"), texts(item))
    elif part is not None:
        brought = (part["type"], part["text"])
    elif "response" in event:
        brought = (event["response"]["status"], [texts(each) for each in event["response"]["output"]])
    return [(kind, *place, brought)]


def texts(item: Any) -> list[tuple[str, str]]:
    """The texts of an item of a response."""
    return [(part["type"], part["text"]) for part in (*item.get("content", ()), *item.get("summary", ()))]


def ollama_event(event: Any) -> list[tuple[Any, ...]]:
    """The content of a line, and the end. Thinking is left out: the public server's form is not Ollama's."""
    message = event["message"]
    told: list[tuple[Any, ...]] = [("delta", message["content"])] if message["content"] else []
    calls = [call["function"] for call in message.get("tool_calls", ())]
    told += [("call", call["name"], call["arguments"]) for call in calls]
    return told + ([("done", event["done_reason"])] if event["done"] else [])


NORMALISED = {
    "anthropic-messages": anthropic_event,
    "openai-completions": completions_event,
    "openai-responses": responses_event,
    "ollama-chat": ollama_event,
}


def normalised(api: str, text: str) -> list[tuple[Any, ...]]:
    """A stream without ids, times and usage, its deltas joined; arguments as values, as both may space their JSON."""
    joined: list[tuple[Any, ...]] = []
    for told in (each for event in events(text) for each in NORMALISED[api](event)):
        if told[0] == "delta" and joined and joined[-1][:-1] == told[:-1]:
            joined[-1] = (*told[:-1], joined[-1][-1] + told[-1])
        elif told[0] != "delta" or told[-1]:
            joined.append(told)
    return [tuple(unspaced(part) for part in told) for told in joined]


def unspaced(part: Any) -> Any:
    """JSON texts made compact, at any depth."""
    if isinstance(part, tuple):
        return tuple(unspaced(each) for each in part)
    if isinstance(part, str) and part[:1] == "{":
        return json.dumps(json.loads(part), separators=(",", ":"))
    return part


@pytest.mark.parametrize("api", PATHS)
@pytest.mark.parametrize("wanted", ANSWERS)
def test_the_events_are_those_of_the_public_server(public: str, serve: Serve, api: str, wanted: str) -> None:
    """Text, thinking and parallel calls are the same events in the same order."""
    served = serve(turns=[{"content": ANSWERS[wanted][1]}])
    theirs = normalised(api, ask(public, api, wanted, stream=True).text)
    ours = normalised(api, ask(served.url, api, wanted, stream=True).text)
    assert len(theirs) > 1
    assert ours == theirs


@pytest.mark.parametrize("api", PATHS)
@pytest.mark.parametrize("wanted", ["text", "calls"])
def test_a_whole_answer_has_the_members_of_the_public_server_s(
    public: str, serve: Serve, api: str, wanted: str
) -> None:
    """Our answer has every member of the public server's, of the same type."""
    served = serve(turns=[{"content": ANSWERS[wanted][1]}])
    theirs = ask(public, api, wanted, stream=False).json()
    lacking = list(differing(theirs, ask(served.url, api, wanted, stream=False).json()))
    assert lacking == []


def differing(theirs: Any, ours: Any, place: str = "") -> Iterator[str]:
    """The places of their answer where ours has nothing, or another type."""
    if isinstance(theirs, bool | str | None) or isinstance(ours, bool | str | None):
        if type(theirs) is not type(ours):
            yield place
    elif isinstance(theirs, dict):
        for name, value in theirs.items():
            yield from differing(value, ours[name], f"{place}/{name}") if name in ours else [f"{place}/{name}"]
    elif isinstance(theirs, list):
        if len(theirs) != len(ours):
            yield place
        for number, (their, our) in enumerate(zip(theirs, ours, strict=False)):
            yield from differing(their, our, f"{place}/{number}")


@pytest.mark.parametrize("api", [api for api in PATHS if api != "ollama-chat"])
def test_an_error_has_the_form_of_the_public_server_s(public: str, serve: Serve, api: str) -> None:
    """Same status, members and scripted type, except that the public server writes Ollama's errors in OpenAI's form."""
    error = {"status": 429, "message": "slower", "type": "rate_limit_error"}
    served = serve(turns=[{"error": error}])
    theirs, ours = ask(public, api, "limited", stream=True), ask(served.url, api, "limited", stream=True)
    assert ours.status_code == theirs.status_code == 429
    told, said = theirs.json()["error"], ours.json()["error"]
    assert {name: said[name] for name in ("type", "message")} == {name: told[name] for name in ("type", "message")}
    assert told.keys() <= said.keys()
