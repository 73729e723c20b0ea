"""A headless task that cannot be done: what is told, with which exit status, and what never is."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from signet_reference_harness.providers import CompletionResult
from signet_reference_harness.providers.scripted import ScriptedProvider
from signet_reference_harness.providers.settings import ProviderSettings
from signet_reference_harness.tools import ToolContext
from tests.reference_harness.llm_server.served import Serve
from tests.reference_harness.recording_daemon import START, Answer, RecordingDaemon
from tests.support.ports import unheard_port

from .conftest import WHOLE_TURN, Do, model

KEY = "sk-planted-7c1f"


def agent_file(folder: Path, text: str) -> Path:
    """The agent's own file, with that text."""
    path = folder / "workspace" / "agent.yaml"
    path.parent.mkdir()
    path.write_text(text)
    return path


def test_a_session_file_under_another_name_is_2(do: Do, serve: Serve) -> None:
    """The error names the file and both sessions."""
    served = serve(turns=[{"content": "Blue."}])
    file = Path(do(prompt="Which colour?", session="nightly", **model(served.url)).summary["session_file"])
    moved = file.rename(file.with_name("daily.jsonl"))
    done = do(prompt="And now?", session="daily", **model(served.url))
    assert (done.status, done.told[0][0]) == (2, f"{moved}: holds the session nightly, not daily")


def test_a_session_whose_project_is_gone_is_2(do: Do, project: Path, serve: Serve) -> None:
    """Its tools would have no folder to work in: the error names the session and the folder."""
    served = serve(turns=[{"content": "Blue."}])
    do(prompt="Which colour?", session="nightly", **model(served.url))
    project.rmdir()
    done = do(prompt="And now?", session="nightly", cwd=None, **model(served.url))
    assert (done.status, done.told[0][0]) == (2, f"--session nightly: its project is gone: {project}")


@pytest.mark.parametrize(
    ("script", "outcome"),
    [
        ({"turns": [{"error": {"status": 400, "message": "no such model"}}]}, "error"),
        ({"turns": [{"content": "Half an ans", "fault": {"kind": "end"}}]}, "malformed"),
    ],
)
def test_a_provider_that_fails_is_1_and_the_session_ends(
    do: Do, daemon: RecordingDaemon, serve: Serve, script: dict[str, Any], outcome: str
) -> None:
    """The error is told with the provider's own words, and stands in the summary."""
    done = do(prompt="Hello.", **model(serve(**script).url))
    assert done.status == 1
    assert done.summary["status"] == "failed"
    assert done.summary["outcome"] == outcome
    assert done.summary["error"]["message"] == done.told[0][0]
    assert daemon.paths() == WHOLE_TURN


def test_a_provider_that_cannot_be_asked_is_told_with_what_to_do(
    do: Do, daemon: RecordingDaemon, serve: Serve, tmp_path: Path
) -> None:
    """A refused key, and an address where nobody listens: both are named, and so is the way to go on."""
    agent_file(tmp_path, "runtime: {retry: {attempts: 1}}\n")
    refused = do(prompt="Hello.", **model(serve(turns=[{"error": {"status": 401}}]).url), api_key=KEY).told[0]
    assert "answered 401" in refused[0]
    assert str(refused[1]).startswith("check the key from --api-key, or give another by --api-key; then go on from")
    with unheard_port() as port:
        address = f"http://127.0.0.1:{port}"
        away = do(prompt="Hello.", **model(address)).told[0]
    assert f"did not answer at {address}" in away[0]
    assert str(away[1]).startswith(f"check that ollama can be reached at {address}, or name another address by")
    assert daemon.paths() == [*WHOLE_TURN, *WHOLE_TURN]


MALFORMED_FILES = {
    f"runtime: {{api_key: '{KEY}'\n": ":2:1: is not YAML",
    f"runtime:\n  api_key: [{KEY}]\n": "/runtime/api_key: is not a text",
    f"runtime: {KEY}\n": "/runtime: is not a mapping",
    f"- {KEY}\n": "holds no mapping",
}


@pytest.mark.parametrize("text", MALFORMED_FILES)
def test_a_malformed_agent_file_is_2_and_never_shown(
    do: Do, daemon: RecordingDaemon, tmp_path: Path, text: str
) -> None:
    """The file and the place in it are named; no error, summary or event holds the key that stands there."""
    path = agent_file(tmp_path, text)
    done = do(prompt="Hello.", provider="ollama", model="m", output_format="stream-json")
    assert (done.status, done.summary["status"], daemon.requests) == (2, "invalid", [])
    assert str(path) in done.told[0][0]
    assert MALFORMED_FILES[text] in done.told[0][0]
    assert KEY not in json.dumps(done.summary) + done.out + done.err + repr(done.told)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_sessions_folder_that_cannot_be_written_to_is_2(do: Do, daemon: RecordingDaemon, tmp_path: Path) -> None:
    """It exists and is read-only: that is told before the session begins."""
    folder = tmp_path / "kept"
    folder.mkdir(mode=0o555)
    done = do(prompt="Hello.", sessions_dir=folder, **model("http://127.0.0.1:9"))
    assert (done.status, daemon.requests) == (2, [])
    assert done.told[0][0] == f"--sessions-dir {folder}: cannot be written to"


BAD_INPUT: list[tuple[dict[str, Any], str]] = [
    ({"prompt": "x", "words": ("y",)}, "there are 2 prompts: the argument and --prompt"),
    ({}, "no prompt is given"),
    ({"prompt": " \n"}, "the prompt is blank"),
    ({"prompt_file": Path("/nowhere/at-all.md")}, "/nowhere/at-all.md"),
    ({"prompt": "x", "cwd": Path("/nowhere/at-all")}, "/nowhere/at-all: is not a folder"),
    ({"prompt": "x", "session": "../up"}, "cannot name a file"),
    ({"prompt": "x", "sessions_dir": Path("/dev/null/sessions")}, "--sessions-dir /dev/null/sessions"),
    ({"prompt": "x", "provider": "antropic"}, "there is no provider 'antropic' (--provider)"),
    ({"prompt": "x", "provider": "anthropic", "model": "m"}, "ANTHROPIC_API_KEY"),
]


@pytest.mark.parametrize(("options", "told"), BAD_INPUT)
def test_bad_input_is_2_and_names_what_and_where(
    do: Do, daemon: RecordingDaemon, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], told: str
) -> None:
    """Nothing is asked of daemon or model; the summary is written all the same."""
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    done = do(**{"provider": "ollama", "model": "m", **options})
    assert done.status == 2
    assert told in done.told[0][0]
    assert done.told[0][1]
    assert done.summary["status"] == "invalid"
    assert done.summary["error"]["message"] == done.told[0][0]
    assert daemon.requests == []


def test_no_daemon_is_2_before_the_model_is_asked(do: Do, daemon: RecordingDaemon, serve: Serve) -> None:
    """Where nobody listens, the address is named; the task is not done without memory by accident."""
    served = serve(turns=[{"content": "Hi."}])
    daemon.refuse()
    done = do(prompt="Hello.", **model(served.url))
    daemon.listen_again()
    assert done.status == 2
    assert daemon.origin in done.told[0][0]
    assert served.requests() == []


@pytest.mark.parametrize("path", ["/health", START])
@pytest.mark.parametrize(
    ("answer", "told", "remedy"),
    [
        (Answer({"error": "unauthorized"}, 401), "refuses this harness", "SIGNET_TOKEN"),
        (Answer({"error": "forbidden"}, 403), "refuses this harness", "SIGNET_TOKEN"),
        (Answer(text="<html>Sign in</html>"), "is not a daemon", "SIGNET_DAEMON_URL"),
        (Answer(text="<html>Not found</html>", status=404), "is not a daemon", "SIGNET_DAEMON_URL"),
        (Answer([]), "is not a daemon", "SIGNET_DAEMON_URL"),
    ],
    ids=["401", "403", "html", "404", "list"],
)
def test_a_daemon_that_does_not_take_the_session_is_as_none(
    do: Do, daemon: RecordingDaemon, serve: Serve, path: str, answer: Answer, told: str, remedy: str
) -> None:
    """No model is asked, nothing stands open, and the id is free; --without-memory does the task."""
    served = serve(turns=[{"content": "Hi."}])
    daemon.always[path] = answer
    done = do(prompt="Hello.", run_id="r1", **model(served.url))
    assert (done.status, done.summary["status"], served.requests()) == (2, "invalid", [])
    assert told in done.told[0][0]
    assert remedy in (done.told[0][1] or "")
    assert set(daemon.paths()) <= {"session-start"}
    done = do(prompt="Hello.", run_id="r1", without_memory=True, **model(served.url))
    assert (done.status, done.out, done.err) == (0, "Hi.\n", "")
    assert done.summary["memory"] == {"started": False, "refused": 0, "failed": 0}


def test_an_agent_without_a_daemon_is_2(do: Do, daemon: RecordingDaemon, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent that the table does not name never falls to the default daemon."""
    monkeypatch.setenv("SIGNET_ROUTES", f"nova={daemon.origin}")
    done = do(prompt="Hello.", **model("http://127.0.0.1:9"))
    assert (done.status, daemon.requests) == (2, [])
    assert "'atlas'" in done.told[0][0]


def test_a_planted_key_is_nowhere(do: Do, daemon: RecordingDaemon, serve: Serve, tmp_path: Path) -> None:
    """Not in the summary, the session file, the output, an error or a request to the daemon, though a model says it."""
    served = serve(turns=[{"content": f"Your key is {KEY}."}, {"error": {"status": 401, "message": f"bad key {KEY}"}}])
    settings = {**model(served.url), "api_key": KEY, "session": "planted", "output_format": "stream-json"}
    done = [do(prompt="Which key?", **settings), do(prompt="And now?", **settings)]
    assert [each.status for each in done] == [0, 1]
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    said = [each.out + each.err + repr(each.told) for each in done]
    assert not [text for text in said if KEY in text]
    assert not [data for data in files if KEY.encode() in data]
    assert KEY not in json.dumps([request.body for request in daemon.requests])


def test_a_text_that_is_too_short_for_a_key_is_not_hidden(do: Do, daemon: RecordingDaemon, serve: Serve) -> None:
    """Local servers are given `x` or `none`; words that hold it stay whole for the daemon and in the session file."""
    settings = {**model(serve(turns=[{"content": "Yes."}, {"content": "No."}]).url), "api_key": "s", "session": "short"}
    assert [do(prompt=prompt, **settings).out for prompt in ("Is this so?", "Still?")] == ["Yes.\n", "No.\n"]
    assert [body["harness"] for body in daemon.bodies(START)] == ["reference", "reference"]


class StringTool:
    """A tool whose result is not an object."""

    name = "words"
    description = "Some words."
    input_schema: ClassVar = {"type": "object"}
    run_before_generation = False

    def execute(self, arguments: Mapping[str, Any], context: ToolContext) -> str:  # noqa: ARG002 - the interface names them
        """Bring a string."""
        return "some words"


def test_results_of_any_json_are_told_as_they_happen(do: Do, serve: Serve) -> None:
    """The format stream-json shows a string as it is."""
    served = serve(turns=[{"content": [{"type": "tool_call", "name": "words", "arguments": {}}]}, {"content": "Good."}])
    done = do(prompt="Words?", output_format="stream-json", tools=(f"{__name__}:StringTool",), **model(served.url))
    results = [line for line in map(json.loads, done.out.splitlines()) if line["type"] == "tool_result"]
    assert (done.status, [line["content"] for line in results]) == (0, ["some words"])


def test_two_tools_of_one_name_are_2(do: Do, serve: Serve) -> None:
    """The name is told, and what to do."""
    done = do(prompt="Words?", tools=(f"{__name__}:StringTool",) * 2, **model(serve(turns=[]).url))
    assert (done.status, done.told[0][0]) == (2, "two tools have the same name: words")


class ClosesBadly(ScriptedProvider):
    """A provider that answers, and crashes when it is closed."""

    def __init__(self, settings: ProviderSettings) -> None:  # noqa: ARG002 - what a factory is given
        super().__init__([CompletionResult(content="Hi.")])

    async def aclose(self) -> None:
        """Crash."""
        raise RuntimeError("the socket is gone")


def test_a_provider_that_crashes_at_its_close_has_answered(do: Do) -> None:
    """The task is done; a note tells of the crash."""
    done = do(prompt="Hello.", provider=f"{__name__}:ClosesBadly", model="m")
    assert (done.status, done.summary["error"]) == (0, None)
    assert "the provider crashed when it was closed: RuntimeError: the socket is gone" in done.err


def test_a_summary_whose_name_is_too_long_is_refused_before_anything_is_done(
    do: Do, tmp_path: Path, daemon: RecordingDaemon
) -> None:
    """The longest name that a file can have is written; one more letter is refused at the start."""
    refused = do(prompt="Hello.", summary=tmp_path / ("s" * 256), **model("http://127.0.0.1:9"))
    assert (refused.status, daemon.requests) == (2, [])
    assert "the name is too long for a file" in refused.told[0][0]
    longest = tmp_path / ("s" * 255)
    assert do(prompt="Hello.", summary=longest, provider=f"{__name__}:ClosesBadly", model="m").status == 0
    assert json.loads(longest.read_text())["status"] == "done"


def test_a_device_is_never_replaced_by_the_summary(do: Do, tmp_path: Path, daemon: RecordingDaemon) -> None:
    """What is there and not a file, such as /dev/null, is refused before anything is done."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    done = do(prompt="Hello.", summary=pipe, **model("http://127.0.0.1:9"))
    assert (done.status, pipe.is_fifo(), daemon.requests) == (2, True, [])
    assert f"--summary {pipe}: cannot be written" in done.told[0][0]
