"""A headless task: whatever becomes of it, the daemon sees the session end and the summary says what happened."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

import pytest

from signet_reference_harness.run.session_file import read_session
from tests.reference_harness.llm_server.served import Serve
from tests.reference_harness.recording_daemon import END, PROMPT, RECALL, START, Answer, RecordingDaemon
from tests.support.small_files import NOTHING_COMPILED

from .conftest import WHOLE_TURN, Do, model


def own_words(message: dict[str, Any]) -> str:
    """What a message says without the reminders beside it."""
    return str(message["content"]).partition("<system-reminder")[0].strip()


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


@pytest.mark.parametrize("form", ["text", "json", "stream-json"])
def test_no_control_character_of_the_model_reaches_a_pipe(do: Do, serve: Serve, form: str) -> None:
    """Whoever reads the pipe may show it: text is escaped as in a terminal, and JSON as JSON is."""
    said = "a\x1b[31m\x7f\u202e\r\nb\tc"
    done = do(prompt="Hello.", output_format=form, **model(serve(turns=[{"content": said}]).url))
    assert all(c.isprintable() or c in "\n\t" for c in done.out)
    if form == "text":
        assert done.out == "a\\x1b[31m\\x7f\\u202e\nb\tc\n"
    else:
        whole = [json.loads(line) for line in done.out.splitlines()]
        assert whole[-1]["reply"] == said


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


def test_an_answer_is_compared_from_where_its_session_was(do: Do, serve: Serve) -> None:
    """Both answers of a session that is continued follow the turns before; neither sees the other."""
    served = serve(turns=[{"content": "Hi."}, {"content": "Blue."}, {"content": "No idea."}])
    do(prompt="Hello.", session="s1", **model(served.url))
    do(prompt="Which runner?", session="s1", compare_memory=True, **model(served.url))
    said = [[message["text"] for message in request["asked"]["messages"][-3:]] for request in served.requests()[1:]]
    assert said == [["Hello.", "Hi.", "Which runner?"]] * 2


def test_a_task_speaks_to_the_daemon_of_its_agent(
    do: Do, daemon: RecordingDaemon, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a routing table names the agent, its daemon is spoken to and the usual one is not."""
    other = RecordingDaemon()
    monkeypatch.setenv("SIGNET_ROUTES", f"atlas={other.origin}")
    done = do(prompt="Hello.", **model(serve(turns=[{"content": "Hi."}]).url))
    other.stop()
    assert (done.status, other.paths(), daemon.requests) == (0, WHOLE_TURN, [])


def test_a_bypassed_task_is_done_without_memory(
    do: Do, daemon: RecordingDaemon, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGNET_BYPASS asks for it: no daemon is called."""
    monkeypatch.setenv("SIGNET_BYPASS", "1")
    done = do(prompt="Hello.", **model(serve(turns=[{"content": "Hi."}]).url))
    assert (done.status, done.out, daemon.requests) == (0, "Hi.\n", [])


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
