"""Failures between a provider and its server: tried again by one policy, or reported, and never with the key."""

from __future__ import annotations

import json
from typing import Any

import pytest

from signet_reference_harness.errors import ProviderDeferredError, ProviderError
from signet_reference_harness.providers import StopReason, Usage
from signet_reference_harness.providers.agent_file import RetryPolicy
from tests.reference_harness.llm_server.served import Serve
from tests.reference_harness.providers.asking import APIS, KEY, ask
from tests.support.ports import unheard_port

each_api = pytest.mark.parametrize("api", APIS)
streamed_or_not = pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
GOOD = {"content": "All is well."}


def failing(status: int, **members: Any) -> dict[str, Any]:
    """A turn that is an error."""
    return {"error": {"status": status, **members}}


@each_api
@streamed_or_not
def test_429_waits_as_asked_then_succeeds(serve: Serve, api: str, streamed: bool) -> None:
    """The wait of Retry-After is kept exactly, and the second answer counts."""
    served = serve(turns=[failing(429, retry_after_s=3), GOOD])
    asked = ask(api, served.url, streamed=streamed)
    assert (asked.answer.content, asked.waits) == ("All is well.", [3.0])
    assert len(served.requests()) == 2


@each_api
@pytest.mark.parametrize("status", [500, 503, 529])
def test_a_failing_server_is_asked_three_times(serve: Serve, api: str, status: int) -> None:
    """Waits double; then the error names provider, status, message and attempts."""
    served = serve(turns=[failing(status, message="out of order")], when_out="repeat")
    asked = ask(api, served.url)
    error = asked.error
    assert isinstance(error, ProviderError)
    assert error.message.endswith("tried 3 times")
    assert asked.waits == [0.75, 1.25]
    assert f"{api} answered {status}" in error.message
    assert "out of order" in error.message
    assert len(served.requests()) == 3


@each_api
@pytest.mark.parametrize("status", [400, 401, 404])
def test_what_is_refused_is_asked_once(serve: Serve, api: str, status: int) -> None:
    """No wait helps against a wrong key, model or request; the error has a remedy."""
    served = serve(turns=[failing(status, message=f"not with {KEY}")], when_out="repeat")
    asked = ask(api, served.url, key_source="SOME_KEY")
    assert isinstance(asked.error, ProviderError)
    assert len(served.requests()) == 1
    assert "not with [key]" in asked.error.message
    assert KEY not in repr(asked.error) + str(asked.error)
    assert asked.error.__cause__ is None
    if status != 400:
        assert {401: "SOME_KEY", 404: "--model"}[status] in (asked.error.remedy or "")


@each_api
@pytest.mark.parametrize("too_long", ["deferred", "error"])
def test_a_longer_wait_is_not_waited_for(serve: Serve, api: str, too_long: Any) -> None:
    """Depending on the settings, the answer is deferred by those seconds or is an error. No second request is sent."""
    limits = [{"scope": "tokens", "limit": 9, "remaining": 0, "reset_s": 120}]
    served = serve(turns=[{**failing(429, retry_after_s=120), "rate_limits": limits}])
    asked = ask(api, served.url, retry=RetryPolicy(too_long=too_long))
    assert asked.waits == []
    assert isinstance(asked.error, ProviderError)
    assert isinstance(asked.error, ProviderDeferredError) == (too_long == "deferred")
    assert "asks to wait 120 s" in asked.error.message
    if isinstance(asked.error, ProviderDeferredError):
        assert asked.error.seconds == 120


def test_a_reset_header_is_waited_for(serve: Serve) -> None:
    """Without Retry-After, the wait is the reset of the limit with nothing remaining."""
    limits = [
        {"scope": "requests", "limit": 9, "remaining": 3, "reset_s": 15},
        {"scope": "tokens", "limit": 9, "remaining": 0, "reset_s": 4},
    ]
    asked = ask("openai-completions", serve(turns=[{**failing(429), "rate_limits": limits}, GOOD]).url)
    assert (asked.answer.content, asked.waits) == ("All is well.", [4.0])


@each_api
def test_a_stream_cut_after_a_token_is_shown_as_broken(serve: Serve, api: str) -> None:
    """The arrived part is kept, the reason is malformed, and the request is not repeated."""
    served = serve(turns=[{**GOOD, "fault": {"kind": "close", "after": 2}}, GOOD])
    asked = ask(api, served.url)
    assert (asked.answer.stop_reason, asked.answer.content) == (StopReason.MALFORMED, "All is ")
    assert asked.text == "All is "
    assert "broke" in asked.answer.detail
    assert len(served.requests()) == 1


@each_api
@streamed_or_not
def test_a_connection_lost_before_a_token_is_tried_again(serve: Serve, api: str, streamed: bool) -> None:
    """Nothing was shown, so the next answer counts."""
    served = serve(turns=[{**GOOD, "fault": {"kind": "close"}}, GOOD])
    asked = ask(api, served.url, streamed=streamed)
    assert (asked.answer.content, asked.waits) == ("All is well.", [0.75])


@each_api
@streamed_or_not
def test_an_answer_without_a_reason_is_malformed(serve: Serve, api: str, streamed: bool) -> None:
    """A stream that closes properly but gives no reason for its end is an error."""
    asked = ask(api, serve(turns=[{**GOOD, "fault": {"kind": "end", "after": 9}}]).url, streamed=streamed)
    assert (asked.answer.stop_reason, asked.answer.raw_reason) == (StopReason.MALFORMED, None)
    assert "without a reason" in asked.answer.detail


@each_api
@streamed_or_not
def test_a_malformed_event_is_told(serve: Serve, api: str, streamed: bool) -> None:
    """An unreadable event ends the answer as malformed; the part before it is kept."""
    served = serve(turns=[{**GOOD, "fault": {"kind": "garbage", "after": 1}}])
    asked = ask(api, served.url, streamed=streamed)
    assert (asked.answer.stop_reason, asked.answer.content) == (StopReason.MALFORMED, "All ")
    assert "cannot be read" in asked.answer.detail
    assert len(served.requests()) == 1


@each_api
def test_a_page_instead_of_an_answer_is_malformed(serve: Serve, api: str) -> None:
    """A web page in place of an answer is reported as such, without a traceback."""
    served = serve(turns=[{"raw": {api: {"body": "<html>Login</html>"}}, "headers": {"content-type": "text/html"}}])
    assert ask(api, served.url, streamed=False).answer.stop_reason is StopReason.MALFORMED


def _ending(api: str, reason: object, count: object) -> str:
    """The body of an answer of an API that says "Hello." and ends with a reason and with counts of tokens."""
    if api == "ollama-chat":
        message = {"role": "assistant", "content": "Hello."}
        last = {"done": True, "done_reason": reason, "prompt_eval_count": count, "eval_count": 4}
        return json.dumps({"message": message, "done": False}) + "\n" + json.dumps(last) + "\n"
    events: list[dict[str, Any]]
    if api == "anthropic-messages":
        text = {"type": "text_delta", "text": "Hello."}
        usage = {"input_tokens": count, "output_tokens": 4}
        events = [
            {"type": "content_block_delta", "index": 0, "delta": text},
            {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage},
        ]
    elif api == "openai-responses":
        usage = {"input_tokens": count, "output_tokens": 4}
        events = [
            {"type": "response.output_text.delta", "delta": "Hello."},
            {"type": "response.completed", "response": {"status": reason, "usage": usage}},
        ]
    else:
        usage = {"prompt_tokens": count, "completion_tokens": 4}
        events = [
            {"choices": [{"delta": {"content": "Hello."}, "finish_reason": None}]},
            {"choices": [{"delta": {}, "finish_reason": reason}]},
            {"choices": [], "usage": usage},
        ]
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events)


_REASONS = {
    "anthropic-messages": "end_turn", "openai-completions": "stop", "openai-responses": "completed",
    "ollama-chat": "stop",
}  # fmt: skip


@each_api
@pytest.mark.parametrize("count", ["12", [3], True, -1, 1.5, None])
def test_tokens_that_are_no_count_are_not_added_up(serve: Serve, api: str, count: object) -> None:
    """The answer itself is kept."""
    served = serve(turns=[{"raw": {api: {"body": _ending(api, _REASONS[api], count)}}}])
    answer = ask(api, served.url).answer
    assert (answer.content, answer.stop_reason) == ("Hello.", StopReason.END_TURN)
    assert answer.usage == Usage(0, 4)


@each_api
@pytest.mark.parametrize("reason", [7, ["stop"], True])
def test_a_reason_that_is_no_word_is_malformed(serve: Serve, api: str, reason: object) -> None:
    """The arrived part is kept, and the detail shows the server's value."""
    served = serve(turns=[{"raw": {api: {"body": _ending(api, reason, 3)}}}])
    answer = ask(api, served.url).answer
    assert (answer.content, answer.stop_reason, answer.raw_reason) == ("Hello.", StopReason.MALFORMED, None)
    assert f"the reason {reason!r} is not a text" in answer.detail


@each_api
def test_an_error_event_after_a_token_ends_in_error(serve: Serve, api: str) -> None:
    """The arrived part is kept, and the provider's words are reported."""
    fault = {"kind": "error", "after": 2, "error": {"status": 529, "message": f"overloaded, {KEY}"}}
    asked = ask(api, serve(turns=[{**GOOD, "fault": fault}]).url)
    assert asked.answer.stop_reason is StopReason.ERROR
    assert asked.answer.content == "All is "
    assert "overloaded, [key]" in asked.answer.detail


@each_api
def test_an_error_event_before_a_token_is_tried_again(serve: Serve, api: str) -> None:
    """Overload reported within a stream is treated like its status."""
    fault = {"kind": "error", "error": {"status": 529}}
    assert ask(api, serve(turns=[{**GOOD, "fault": fault}, GOOD]).url).answer.content == "All is well."


def test_a_failed_response_is_tried_again_and_then_an_error(serve: Serve) -> None:
    """The responses API reports a failing server within an answer; its code is the raw reason."""
    stop = {"openai-responses": {"status": "failed", "code": "server_error", "message": "oops"}}
    served = serve(turns=[{"raw_stop": stop}], when_out="repeat")
    asked = ask("openai-responses", served.url)
    assert isinstance(asked.error, ProviderError)
    assert asked.error.raw_reason == "server_error"
    assert "tried 3 times" in asked.error.message
    shown = ask("openai-responses", serve(turns=[{"content": "Well.", "raw_stop": stop}]).url)
    assert (shown.answer.stop_reason, shown.answer.raw_reason) == (StopReason.ERROR, "server_error")
    assert shown.answer.content == "Well."


@each_api
def test_a_server_that_hangs_times_out(serve: Serve, api: str) -> None:
    """Before a token it is a timeout, tried again if the settings say so; after one a broken stream."""
    served = serve(turns=[{**GOOD, "fault": {"kind": "hang"}}, {**GOOD, "fault": {"kind": "hang", "after": 2}}])
    before = ask(api, served.url, timeout_s=0.5, retry=RetryPolicy(timeouts=False))
    assert isinstance(before.error, ProviderError)
    assert "no answer in time" in before.error.message
    assert "tried" not in before.error.message
    after = ask(api, served.url, timeout_s=3.0)  # more than a busy machine takes for the first two tokens
    assert (after.answer.stop_reason, after.answer.content) == (StopReason.MALFORMED, "All is ")


@each_api
@streamed_or_not
def test_an_address_where_nothing_listens_is_told(api: str, streamed: bool) -> None:
    """The error is of kind network, names the address, and comes after three attempts."""
    asked = ask(api, "http://127.0.0.1:9", streamed=streamed)
    assert isinstance(asked.error, ProviderError)
    assert "ConnectError" in asked.error.message
    assert asked.error.message.endswith("tried 3 times")
    assert "http://127.0.0.1:9" in (asked.error.remedy or "")


def test_a_server_that_forbids_it_is_not_asked_again(serve: Serve) -> None:
    """x-should-retry: false wins over the status."""
    served = serve(turns=[{**failing(500), "headers": {"x-should-retry": "false"}}], when_out="repeat")
    assert isinstance(ask("anthropic-messages", served.url).error, ProviderError)
    assert len(served.requests()) == 1


@each_api
def test_a_port_where_nothing_listens_is_told_as_such(api: str) -> None:
    """The error has the system's description."""
    with unheard_port() as port:
        assert "connection refused" in str(ask(api, f"http://127.0.0.1:{port}").error)
