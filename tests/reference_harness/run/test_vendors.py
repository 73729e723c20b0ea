"""A task over each vendor's interface: however the model ends, the reason is normalised and the session is ended."""

from __future__ import annotations

from typing import Any

import pytest

from signet_reference_harness.run.inputs import RESEARCH
from tests.reference_harness.llm_server.served import Serve
from tests.reference_harness.recording_daemon import RecordingDaemon
from tests.reference_harness.run.conftest import Do

ANTHROPIC, CHAT, RESPONSES, OLLAMA = APIS = (
    "anthropic-messages",
    "openai-completions",
    "openai-responses",
    "ollama-chat",
)
CALL = {"type": "tool_call", "name": "memory_search", "arguments": {"query": "cache"}}
SAID = {"content": "Done."}
CASES: dict[str, tuple[tuple[str, ...], list[dict[str, Any]], str, int]] = {
    "two-tool-rounds": (APIS, [{"content": [CALL]}, {"content": [CALL]}, SAID], "end_turn", 0),
    "parallel-tools": (APIS, [{"content": [CALL, CALL, CALL]}, SAID], "end_turn", 0),
    "cut-stream": (APIS, [{"content": "One two three", "fault": {"kind": "end", "after": 1}}], "malformed", 1),
    "429-then-success": (
        APIS,
        [{"error": {"status": 429, "message": "slow down", "retry_after_s": 0}}, SAID],
        "end_turn",
        0,
    ),
    "refusal-as-text": ((CHAT, RESPONSES), [{"content": [{"type": "refusal", "text": "I will not."}]}], "refusal", 1),
    "refusal": ((ANTHROPIC,), [{"content": "I will not.", "stop": "refusal"}], "refusal", 1),
    "over-long-context": (APIS, [{"error": {"kind": "context_limit"}}], "context_limit", 1),
    "pause": ((ANTHROPIC,), [{"content": "Wait.", "stop": "pause"}], "pause", 1),
}
ROWS = [(api, name) for name, (apis, *_) in CASES.items() for api in apis]


@pytest.mark.parametrize(("api", "case"), ROWS, ids=[f"{case}-{api}" for api, case in ROWS])
def test_a_task_ends_in_the_normalised_reason(
    do: Do, daemon: RecordingDaemon, serve: Serve, api: str, case: str
) -> None:
    """The reason is in the summary and decides the exit status; start, prompt and end reach the daemon, once each."""
    _, turns, outcome, status = CASES[case]
    url = serve(turns=turns).url
    base_url = f"{url}/v1" if api.startswith("openai") else url
    done = do(prompt="Hello.", api=api, base_url=base_url, model="m", api_key="sk-test-1")
    assert (done.summary["outcome"], done.status) == (outcome, status)
    hooks = [path for path in daemon.paths() if path != "recall"]
    assert hooks == ["session-start", "user-prompt-submit", "session-end"]
    called = sum(len([part for part in turn["content"] if part is CALL]) for turn in turns if "content" in turn)
    assert daemon.paths().count("recall") == called + len(RESEARCH)
