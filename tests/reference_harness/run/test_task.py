"""A headless task: whatever becomes of it, the daemon sees the session end and the summary says what happened."""

from __future__ import annotations

import json
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, ClassVar

import pytest

from signet_reference_harness.providers import CompletionResult
from signet_reference_harness.providers.scripted import ScriptedProvider
from signet_reference_harness.providers.settings import ProviderSettings
from signet_reference_harness.run.session_file import read_session
from signet_reference_harness.tools import ToolContext
from tests.reference_harness.llm_server.served import Serve
from tests.reference_harness.recording_daemon import END, PROMPT, RECALL, START, Answer, RecordingDaemon
from tests.support.small_files import NOTHING_COMPILED

from .conftest import WHOLE_TURN, Do, model

KEY = "sk-planted-7c1f"


def own_words(message: dict[str, Any]) -> str:
    """What a message says without the reminders beside it."""
    return str(message["content"]).partition("<system-reminder")[0].strip()


def agent_file(folder: Path, text: str) -> Path:
    """The agent's own file, with that text."""
    path = folder / "workspace" / "agent.yaml"
    path.parent.mkdir()
    path.write_text(text)
    return path


def test_a_task_is_a_session_from_start_to_end(do: Do, daemon: RecordingDaemon, serve: Serve) -> None:
    """Start, prompt, model, end; the reply stands on standard output, the summary says where all of it is."""
    done = do(prompt="Hello.", **model(serve(turns=[{"content": "Hi there."}]).url))
    assert (done.status, done.out, done.err, done.told) == (0, "Hi there.\n", "", [])
    assert daemon.paths() == WHOLE_TURN
    summary = done.summary
    assert (summary["status"], summary["outcome"], summary["rounds"]) == ("done", "end_turn", 1)
    assert {body["agentId"] for path in (START, PROMPT, END) for body in daemon.bodies(path)} == {"atlas"}
    assert daemon.bodies(START)[0]["sessionKey"] == summary["session"]
    assert read_session(Path(summary["session_file"])).identity.key == summary["session"]


def test_a_named_session_is_gone_on_with(do: Do, daemon: RecordingDaemon, serve: Serve) -> None:
    """The second task resumes: the model sees the turn before, and the daemon the whole transcript."""
    served = serve(turns=[{"content": "Blue."}, {"content": "I said blue."}])
    do(prompt="Which colour?", session="nightly", **model(served.url))
    done = do(prompt="What did you say?", session="nightly", **model(served.url))
    assert done.out == "I said blue.\n"
    assert [body.get("source") for body in daemon.bodies(START)] == ["startup", "resume"]
    messages = served.requests()[-1]["body"]["messages"]
    told = [own_words(message) for message in messages if message["role"] in ("user", "assistant")]
    assert told[-3:] == ["Which colour?", "Blue.", "What did you say?"]
    assert "Which colour?" in daemon.bodies(END)[-1]["transcript"]


def test_the_session_used_last_is_continued(do: Do, daemon: RecordingDaemon, serve: Serve, tmp_path: Path) -> None:
    """--continue needs no name; another project has sessions of its own, and two names are one too many."""
    served = serve(turns=[{"content": "Blue."}, {"content": "I said blue."}])
    do(prompt="Which colour?", **model(served.url))
    assert do(prompt="What did you say?", goes_on=True, **model(served.url)).out == "I said blue.\n"
    assert len({body["sessionKey"] for body in daemon.bodies(START)}) == 1
    assert "Which colour?" in json.dumps(served.requests()[-1]["body"])
    other = do(prompt="And here?", goes_on=True, cwd=tmp_path, **model(served.url))
    assert (other.status, "has no session in" in other.told[0][0]) == (2, True)
    assert do(prompt="Hi.", goes_on=True, session="s", **model(served.url)).status == 2


def test_a_run_that_does_not_exist_names_those_that_do(do: Do, serve: Serve) -> None:
    """A person who mistypes an id sees the others."""
    do(prompt="Hello.", run_id="nightly-7", **model(serve(turns=[{"content": "Hi."}]).url))
    done = do(resume="nightly-8", cwd=None, **model("http://127.0.0.1:9"))
    assert (done.status, done.told[0][1]) == (2, "name one of nightly-7")


def test_the_tools_that_run_are_named_beside_the_text(do: Do, serve: Serve, project: Path) -> None:
    """On standard error, where the reply is not; not with --quiet."""
    (project / "a.md").write_text("old")
    look = {"content": [{"type": "tool_call", "name": "file_read", "arguments": {"path": "a.md"}}]}
    served = serve(turns=[look, {"content": "Done."}] * 2)
    done = do(prompt="Go.", **model(served.url))
    assert (done.out, done.err) == ("Done.\n", 'tool: file_read {"path": "a.md"}\n')
    assert do(prompt="Go.", quiet=True, **model(served.url)).err == ""


def test_a_tool_that_is_refused_is_told_to_the_person(do: Do, serve: Serve, project: Path) -> None:
    """As it is told to the model: nobody takes the call for a deed, and the option that allows it is named."""
    arguments = {"path": "a.md", "content": "new"}
    write = {"content": [{"type": "tool_call", "name": "file_write", "arguments": arguments}]}
    done = do(prompt="Go.", **model(serve(turns=[write, {"content": "Done."}]).url))
    called, refused = done.err.splitlines()
    assert called.startswith("tool: file_write {")
    assert refused.startswith("tool: file_write failed: ")
    assert "--tools file_write" in refused
    assert not (project / "a.md").exists()


def test_a_file_of_the_agent_that_is_cut_is_told(do: Do, serve: Serve, project: Path) -> None:
    """The person reads how much of it the model does not get."""
    (project / "AGENTS.md").write_text("x" * 30_000)
    done = do(prompt="Go.", output_format="stream-json", **model(serve(turns=[{"content": "Done."}]).url))
    told = "AGENTS.md is cut: the model reads 24576 bytes of it, and 5424 are left out."
    assert done.err == f"note: {told}\n"
    assert [event["text"] for event in map(json.loads, done.out.splitlines()) if event["type"] == "notice"] == [told]


@pytest.mark.parametrize("turn", [{"content": "Done."}, {"content": "Half.", "raw_stop": {"ollama-chat": "load"}}])
def test_what_is_said_beside_a_reply_follows_it_on_a_line_of_its_own(
    serve: Serve, project: Path, turn: dict[str, Any]
) -> None:
    """In a terminal both streams are one: notes and errors come after the reply's last line."""
    (project / "AGENTS.md").write_text("x" * 30_000)
    options = [f"--{name.replace('_', '-')}={value}" for name, value in model(serve(turns=[turn]).url).items()]
    command = [sys.executable, "-m", "signet_reference_harness.cli", "run", "Go.", *options]
    done = subprocess.run(
        command, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    reply, *beside = done.stdout.splitlines()
    assert reply == turn["content"]
    assert beside[0].startswith("note: AGENTS.md is cut")
    assert (len(beside) > 1) == (done.returncode == 1)


def test_a_session_is_named_with_or_without_its_prefix(do: Do, daemon: RecordingDaemon, serve: Serve) -> None:
    """The daemon takes `session:nightly` for `nightly`, and so does the task: it resumes."""
    served = serve(turns=[{"content": "Blue."}, {"content": "I said blue."}])
    done = [do(prompt="Which colour?", session="session:nightly", **model(served.url)) for _ in range(2)]
    assert [(each.status, each.summary["session"]) for each in done] == [(0, "nightly")] * 2
    assert [body.get("source") for body in daemon.bodies(START)] == ["startup", "resume"]


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


def test_tool_rounds_are_told_as_they_happen(do: Do, serve: Serve) -> None:
    """The format stream-json has a line for each event of the run; the last one holds the summary."""
    call = {"type": "tool_call", "name": "memory_search", "arguments": {"query": "cache"}}
    served = serve(turns=[{"content": [call]}, {"content": "Nothing."}])
    done = do(prompt="Cache?", output_format="stream-json", **model(served.url))
    lines = [json.loads(line) for line in done.out.splitlines()]
    types = [line["type"] for line in lines if line["type"] != "text"]
    assert types == ["run.started", "tool_call", "tool_result", "run.finished"]
    assert (lines[-1]["reply"], lines[-1]["summary"]) == ("Nothing.", done.summary)
    assert done.summary["rounds"] == 2


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
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
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
        (Answer(text="<html>Sign in</html>"), "is no daemon", "SIGNET_DAEMON_URL"),
        (Answer(text="<html>Not found</html>", status=404), "is no daemon", "SIGNET_DAEMON_URL"),
        (Answer([]), "is no daemon", "SIGNET_DAEMON_URL"),
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


def test_what_memory_missed_is_told_though_no_notes_are_wanted(do: Do, daemon: RecordingDaemon, serve: Serve) -> None:
    """The summary counts, standard error says it in a line, and each note is an event."""
    daemon.always[PROMPT] = Answer({"error": "no"}, 500)
    daemon.always[END] = Answer({"error": "no"}, 403)
    served = serve(turns=[{"content": "Hi."}])
    done = do(prompt="Hello.", quiet=True, output_format="stream-json", **model(served.url))
    assert done.summary["memory"] == {"started": True, "refused": 1, "failed": 1}
    assert done.err == "memory: started; calls refused: 1, failed: 1\n"
    notes = [event["text"] for event in map(json.loads, done.out.splitlines()) if event["type"] == "notice"]
    assert [note.partition(":")[0] for note in notes] == ["user-prompt-submit", "session-end"]


ROW = {"id": "m-7f50a7c4", "content": "Kestrel builds run on the blue runner.", "score": 1.07}


def test_what_memory_did_is_explained(do: Do, daemon: RecordingDaemon, serve: Serve) -> None:
    """Which rows the model was given, and which words of its answer rest on them: for a person, and as an event."""
    meta = {"dedupe": {"suppressed": 2}}
    daemon.always[RECALL] = Answer({"results": [ROW], "method": "keyword", "meta": meta})
    served = serve(turns=[{"content": "They use the blue one of Kestrel."}])
    done = do(prompt="Which runner?", explain=True, output_format="stream-json", **model(served.url))
    assert done.err.splitlines() == [
        "memory: 1 row (9 tokens), 1 used; 2 shown before",
        "m-7f50a7 1.07  Kestrel builds run on the blue runner.  [memory_search; in the answer: blue, Kestrel]",
        "memory_search: found by keyword, 2 left out, as they were shown before",
    ]
    (event,) = (each for each in map(json.loads, done.out.splitlines()) if each["type"] == "memory")
    assert (event["used"], event["effect"]["rows"][0]["words"]) == (1, ["blue", "Kestrel"])


def test_an_answer_is_compared_with_one_without_memory(do: Do, daemon: RecordingDaemon, serve: Serve) -> None:
    """The second answer comes from a session of its own that the daemon never hears of."""
    daemon.always[RECALL] = Answer({"results": [ROW]})
    served = serve(turns=[{"content": "Blue."}, {"content": "No idea."}])
    done = do(prompt="Which runner?", compare_memory=True, **model(served.url))
    assert done.out == "Blue.\n\nwithout memory:\nNo idea.\n"
    with_memory, without = (json.dumps(request["body"]) for request in served.requests())
    assert ("Kestrel" in with_memory, "Kestrel" in without, "memory_store" in without) == (True, False, False)
    assert daemon.paths() == WHOLE_TURN


def test_a_task_speaks_to_the_daemon_of_its_agent(
    do: Do, daemon: RecordingDaemon, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a routing table names the agent, its daemon is spoken to and the usual one is not."""
    other = RecordingDaemon()
    monkeypatch.setenv("SIGNET_ROUTES", f"atlas={other.origin}")
    done = do(prompt="Hello.", **model(serve(turns=[{"content": "Hi."}]).url))
    other.stop()
    assert (done.status, other.paths(), daemon.requests) == (0, WHOLE_TURN, [])


def test_an_agent_without_a_daemon_is_2(do: Do, daemon: RecordingDaemon, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent that the table does not name never falls to the default daemon."""
    monkeypatch.setenv("SIGNET_ROUTES", f"nova={daemon.origin}")
    done = do(prompt="Hello.", **model("http://127.0.0.1:9"))
    assert (done.status, daemon.requests) == (2, [])
    assert "'atlas'" in done.told[0][0]


def test_a_bypassed_task_is_done_without_memory(
    do: Do, daemon: RecordingDaemon, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGNET_BYPASS asks for it: no daemon is called."""
    monkeypatch.setenv("SIGNET_BYPASS", "1")
    done = do(prompt="Hello.", **model(serve(turns=[{"content": "Hi."}]).url))
    assert (done.status, done.out, daemon.requests) == (0, "Hi.\n", [])


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

    def execute(self, arguments: Mapping[str, Any], context: ToolContext) -> str:  # noqa: ARG002
        """Bring a string."""
        return "some words"


def test_results_of_any_json_are_told_as_they_happen(do: Do, serve: Serve) -> None:
    """The format stream-json shows a string as it is."""
    served = serve(turns=[{"content": [{"type": "tool_call", "name": "words", "arguments": {}}]}, {"content": "Good."}])
    done = do(prompt="Words?", output_format="stream-json", tools=(f"{__name__}:StringTool",), **model(served.url))
    results = [line for line in map(json.loads, done.out.splitlines()) if line["type"] == "tool_result"]
    assert (done.status, [line["content"] for line in results]) == (0, ["some words"])


WRITE = {"content": [{"type": "tool_call", "name": "file_write", "arguments": {"path": "a.md", "content": "new"}}]}
STORE = {"content": [{"type": "tool_call", "name": "memory_store", "arguments": {"content": "The port is 1."}}]}


@pytest.mark.parametrize(
    ("options", "turn", "refusal"),
    [
        ({}, WRITE, "by --tools file_write"),
        ({"allowed": ("memory_*,file_write",)}, WRITE, ""),
        ({}, STORE, ""),
        ({"read_only": True, "allowed": ("file_write",)}, WRITE, "only reads (--read-only)"),
        ({"read_only": True}, STORE, "only reads (--read-only)"),
    ],
)
def test_what_was_not_allowed_is_refused_and_the_model_is_told(
    do: Do, serve: Serve, project: Path, options: dict[str, Any], turn: dict[str, Any], refusal: str
) -> None:
    """A file is overwritten only where the command line says so."""
    (project / "a.md").write_text("old")
    served = serve(turns=[turn, {"content": "Done."}])
    assert do(prompt="Go.", **options, **model(served.url)).status == 0
    result = served.requests()[-1]["body"]["messages"][-1]
    assert result["role"] == "tool"
    assert (refusal in result["content"]) if refusal else ("error" not in result["content"])
    assert (project / "a.md").read_text() == ("new" if turn is WRITE and not refusal else "old")


def test_a_tool_that_does_not_exist_cannot_be_allowed(do: Do, serve: Serve) -> None:
    """A name that is mistyped is told before anything is done, with the nearest one."""
    done = do(prompt="Go.", allowed=("file_wrote",), **model(serve(turns=[]).url))
    assert (done.status, done.told) == (2, [("--tools file_wrote: there is no such tool", "name file_write")])


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


def run_in(
    project: Path, url: str, prompt: str, stdout: int | IO[bytes], **more: Any
) -> tuple[int, str, dict[str, Any]]:
    """A task in a process of its own: exit status, what standard error says, and the summary."""
    summary = project / "told.json"
    command = [sys.executable, "-m", "signet_reference_harness.cli", "run", prompt, "--provider", "ollama"]
    command += ["--model", "scripted", "--base-url", url, "--summary", str(summary)]
    done = subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, cwd=project, text=True, check=False, **more)
    return done.returncode, done.stderr, json.loads(summary.read_text())


def test_a_reader_that_leaves_does_not_stop_the_task(project: Path, daemon: RecordingDaemon, serve: Serve) -> None:
    """As `| head -1` does: the rest of the output goes nowhere, the task is done, and nothing is complained about."""
    read, written = os.pipe()
    os.close(read)
    with os.fdopen(written, "wb") as pipe:
        status, told, summary = run_in(project, serve(turns=[{"content": "One two."}]).url, "Count.", pipe)
    assert (status, told, summary["status"], daemon.paths()) == (0, "", "done", WHOLE_TURN)


def test_a_full_disk_below_the_output_is_1(project: Path, daemon: RecordingDaemon, serve: Serve) -> None:
    """The reply is lost there, so the task has failed; the session ends all the same."""
    with Path("/dev/full").open("wb") as full:
        status, told, summary = run_in(project, serve(turns=[{"content": "One two."}]).url, "Count.", full)
    assert (status, summary["status"], daemon.paths()) == (1, "failed", WHOLE_TURN)
    assert told.startswith("error: standard output: cannot be written: No space left on device\n")


def test_a_session_file_that_cannot_grow_ends_the_session_too(
    project: Path, daemon: RecordingDaemon, serve: Serve
) -> None:
    """The daemon sees the end of what it saw begin."""

    def small_files_only() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2_048, 2_048))

    url = serve(turns=[{"content": "Read."}]).url
    limited = {"preexec_fn": small_files_only, "env": {**os.environ, **NOTHING_COMPILED}}
    status, told, _summary = run_in(project, url, "a" * 1_200, subprocess.DEVNULL, **limited)
    assert (status, daemon.paths()) == (2, WHOLE_TURN)
    assert "the session cannot be written: File too large" in told


def test_the_prompt_comes_from_standard_input(serve: Serve, project: Path) -> None:
    """A pipe is a prompt, byte order mark and all."""
    served = serve(turns=[{"content": "Read."}])
    command = [sys.executable, "-m", "signet_reference_harness.cli", "run", "--stdin", "--provider", "ollama"]
    command += ["--model", "scripted", "--base-url", served.url]
    done = subprocess.run(command, input="\ufeffGrüße\n".encode(), cwd=project, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b"Read.\n")
    assert own_words(served.requests()[0]["body"]["messages"][-1]) == "Grüße"


def test_a_prompt_is_read_as_utf_8_whatever_the_locale(project: Path, serve: Serve, daemon: RecordingDaemon) -> None:
    """An argument in another locale is the text whose bytes were typed."""
    served = serve(turns=[{"content": "Read."}])
    command = [sys.executable, "-m", "signet_reference_harness.cli", "run", "Grüße", "--provider", "ollama"]
    command += ["--model", "scripted", "--base-url", served.url]
    locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(command, env={**os.environ, **locale}, cwd=project, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert daemon.bodies(PROMPT)[0]["userMessage"] == "Grüße"
