"""The vendors' own packages read each turn, streamed and whole, as the script has it."""

from __future__ import annotations

from typing import Any

import pytest

from .served import Serve
from .vendors import CLIENTS, KEY, Answer, ask

CALLS = [("recall", {"query": "the release notes of May"}), ("remember", {"content": "ö\n", "importance": 0.5})]
CALL_PARTS = [{"type": "tool_call", "name": name, "arguments": arguments} for name, arguments in CALLS]
TEXT = "I look it up,\nwait: ok?  "
STOPS: list[tuple[str, str, Any]] = [
    ("anthropic-messages", "end_turn", "end_turn"),
    ("anthropic-messages", "stop_sequence", "stop_sequence"),
    ("anthropic-messages", "tool_use", "tool_use"),
    ("anthropic-messages", "length", "max_tokens"),
    ("anthropic-messages", "context_limit", "model_context_window_exceeded"),
    ("anthropic-messages", "refusal", "refusal"),
    ("anthropic-messages", "pause", "pause_turn"),
    ("openai-completions", "end_turn", "stop"),
    ("openai-completions", "tool_use", "tool_calls"),
    ("openai-completions", "refusal", "stop"),
    ("openai-responses", "end_turn", ("completed", None, None)),
    ("openai-responses", "tool_use", ("completed", None, None)),
    ("openai-responses", "refusal", ("completed", None, None)),
    ("openai-responses", "length", ("incomplete", "max_output_tokens", None)),
    ("openai-responses", "content_filter", ("incomplete", "content_filter", None)),
    ("ollama-chat", "end_turn", "stop"),
    ("ollama-chat", "length", "length"),
]

pytestmark = [pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])]
every_api = pytest.mark.parametrize("api", CLIENTS)


def unbroken(answer: Answer) -> Answer:
    """The answer, read to its end."""
    if answer.broken is not None:
        raise answer.broken
    return answer


@every_api
def test_a_turn_arrives_as_the_script_says(serve: Serve, api: str, *, stream: bool) -> None:
    """Thinking, text, parallel calls in order and the usage arrive; a streamed answer comes in several chunks."""
    content = [{"type": "thinking", "text": "Where was it?"}, {"type": "text", "text": TEXT}, *CALL_PARTS]
    served = serve(turns=[{"content": content, "usage": {"input_tokens": 11, "output_tokens": 7}}])
    answer = unbroken(ask(served.url, api, stream=stream))
    assert (answer.thinking, answer.text, answer.calls) == ("Where was it?", TEXT, CALLS)
    assert answer.tokens == (11, 7)
    assert len(set(answer.ids)) == (0 if api == "ollama-chat" else 2)
    assert answer.chunks > 3 or not stream


@every_api
def test_the_chunks_of_a_script_are_the_chunks_of_the_stream(serve: Serve, api: str, *, stream: bool) -> None:
    """A list of texts is one text, even with an empty one and half an emoji in it."""
    served = serve(turns=[{"content": [{"type": "text", "text": ["a", "", "b \n", "\u2028ö"]}]}])
    assert unbroken(ask(served.url, api, stream=stream)).text == "ab \n\u2028ö"


@pytest.mark.parametrize(("api", "reason", "word"), STOPS)
def test_a_reason_to_stop_is_told_in_the_vendor_s_word(
    serve: Serve, api: str, reason: str, word: Any, *, stream: bool
) -> None:
    """Each reason for which an interface has a word arrives as that word."""
    content = CALL_PARTS[:1] if reason == "tool_use" else "Well."
    answer = unbroken(ask(serve(turns=[{"content": content, "stop": reason}]).url, api, stream=stream))
    assert answer.stop == word


@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_openai_s_package_raises_for_an_answer_cut_short(serve: Serve, reason: str, *, stream: bool) -> None:
    """finish_reason length and content_filter arrive; the package's stream collector raises for them."""
    answer = ask(serve(turns=[{"content": "We", "stop": reason}]).url, "openai-completions", stream=stream)
    assert answer.text == "We"
    if stream:
        assert type(answer.broken).__name__ in ("LengthFinishReasonError", "ContentFilterFinishReasonError", "NoneType")
    else:
        assert answer.stop == reason


@pytest.mark.parametrize(
    ("api", "word", "expected"),
    [
        ("anthropic-messages", "no_such_reason", "no_such_reason"),
        ("anthropic-messages", None, None),
        ("openai-completions", "function_call", "function_call"),
        ("openai-completions", None, None),
        ("openai-responses", {"status": "failed", "code": "server_error"}, ("failed", None, "server_error")),
        ("openai-responses", {"status": "cancelled"}, ("cancelled", None, None)),
        ("openai-responses", {"status": "incomplete", "reason": "odd"}, ("incomplete", "odd", None)),
        ("ollama-chat", "load", "load"),
        ("ollama-chat", "unload", "unload"),
        ("ollama-chat", None, None),
    ],
)
def test_a_raw_reason_arrives_as_it_is(serve: Serve, api: str, word: Any, expected: Any, *, stream: bool) -> None:
    """The package reads the raw_stop of its interface, even null."""
    turn = {"content": "Well.", "raw_stop": {api: word}}
    answer = ask(serve(turns=[turn]).url, api, stream=stream)
    if api == "openai-completions" and stream and word is None:
        assert answer.text == "Well."
        return
    assert unbroken(answer).stop == expected


@pytest.mark.parametrize("api", ["anthropic-messages", "openai-completions", "openai-responses"])
def test_a_refusal_arrives_where_the_vendor_puts_it(serve: Serve, api: str, *, stream: bool) -> None:
    """OpenAI's interfaces have a member for it; Anthropic's is text with a reason of its own."""
    served = serve(turns=[{"content": [{"type": "refusal", "text": "I will not do that."}]}])
    answer = unbroken(ask(served.url, api, stream=stream))
    told = answer.text if api == "anthropic-messages" else answer.refusal
    assert told == "I will not do that."
    assert answer.stop == {"anthropic-messages": "refusal", "openai-completions": "stop"}.get(
        api, ("completed", None, None)
    )


@pytest.mark.parametrize(
    ("api", "part"),
    [("ollama-chat", {"type": "refusal", "text": "No."}), ("ollama-chat", {"type": "text", "text": "No."})],
)
def test_what_an_interface_has_no_word_for_is_said(serve: Serve, api: str, part: Any, *, stream: bool) -> None:
    """A turn that an interface cannot express is an error that names the part, not a similar answer."""
    answer = ask(serve(turns=[{"content": [part], "stop": "refusal"}]).url, api, stream=stream)
    assert f"{api} has no " in str(answer.broken)


@every_api
@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500, 503, 529])
def test_an_error_is_the_package_s_error_of_that_status(serve: Serve, api: str, status: int, *, stream: bool) -> None:
    """The status and the script's message arrive."""
    served = serve(turns=[{"error": {"status": status, "message": "not today", "retry_after_s": 3}}])
    broken: Any = ask(served.url, api, stream=stream).broken
    assert broken.status_code == status
    assert "not today" in str(broken)
    if api != "ollama-chat":
        assert broken.response.headers["retry-after"] == "3"


@every_api
def test_a_request_that_is_too_long_is_refused_in_the_vendor_s_words(serve: Serve, api: str, *, stream: bool) -> None:
    """Status 400, with the words by which programs recognise it."""
    broken: Any = ask(serve(turns=[{"error": {"kind": "context_limit"}}]).url, api, stream=stream).broken
    words = {
        "anthropic-messages": "prompt is too long",
        "openai-completions": "maximum context length",
        "openai-responses": "maximum context length",
        "ollama-chat": "exceeds the context length",
    }
    assert broken.status_code == 400
    assert words[api] in str(broken)
    assert getattr(broken, "code", None) == ("context_length_exceeded" if "openai" in api else None)


@every_api
@pytest.mark.parametrize("after", [0, 2, 99])
def test_a_connection_that_is_cut_breaks_the_answer(serve: Serve, api: str, after: int, *, stream: bool) -> None:
    """The package raises; of a stream it has read exactly the part before the cut."""
    turn = {"content": "one two three four", "fault": {"kind": "close", "after": after}}
    served = serve(turns=[turn])
    answer = ask(served.url, api, stream=stream)
    assert answer.broken is not None
    words = ["one ", "two ", "three ", "four"][:after] if stream else []
    assert answer.text == "".join(words)
    assert served.requests()[0]["outcome"] == "close"


@every_api
def test_an_answer_that_ends_too_early_has_no_reason_to_stop(serve: Serve, api: str, *, stream: bool) -> None:
    """There is neither an error nor a reason, only the part that arrived."""
    turn = {"content": "one two three", "fault": {"kind": "end", "after": 2}}
    answer = ask(serve(turns=[turn]).url, api, stream=stream)
    assert answer.stop in (None, ("in_progress", None, None))
    if answer.broken is None and not (stream and api == "openai-responses"):
        assert answer.text == ("one two " if stream else "one two three")


@every_api
def test_an_error_in_the_middle_is_raised(serve: Serve, api: str, *, stream: bool) -> None:
    """The vendor's error event becomes the package's error, or its event of that type, after the earlier parts."""
    fault = {"kind": "error", "after": 1, "error": {"status": 529, "message": "overloaded now"}}
    answer = ask(serve(turns=[{"content": "one two", "fault": fault}]).url, api, stream=stream)
    assert "overloaded now" in str(answer.broken)


@every_api
def test_a_malformed_event_is_no_event(serve: Serve, api: str, *, stream: bool) -> None:
    """The package cannot read it: it raises, and does not take it for the end."""
    turn = {"content": "one two", "fault": {"kind": "garbage", "after": 1}}
    assert ask(serve(turns=[turn]).url, api, stream=stream).broken is not None


@every_api
def test_a_raw_answer_is_sent_as_it_is(serve: Serve, api: str, *, stream: bool) -> None:
    """An interface's body, events and status come from the script unchanged; other interfaces get the turn."""
    raw = {"status": 418, "body": {"error": {"message": "a teapot"}}}
    served = serve(turns=[{"content": "Hi", "raw": {api: raw}}, {"content": "Hi", "raw": {"ollama-chat": raw}}])
    broken: Any = ask(served.url, api, stream=stream).broken
    assert broken.status_code == 418
    if api != "ollama-chat":
        assert unbroken(ask(served.url, api, stream=stream)).text == "Hi"


@every_api
def test_a_key_is_in_nothing_that_the_server_tells(serve: Serve, api: str, *, stream: bool) -> None:
    """GET /requests shows that there was a key, but not the key."""
    served = serve(turns=[{"content": "Hi"}])
    unbroken(ask(served.url, api, stream=stream))
    shown = served.http.get("/requests").text
    assert KEY not in shown
    assert "[redacted]" in shown or api == "ollama-chat"
    (kept,) = served.requests()
    assert (kept["api"], kept["asked"]["stream"], kept["turn"], kept["outcome"]) == (api, stream, "turns/0", "complete")
