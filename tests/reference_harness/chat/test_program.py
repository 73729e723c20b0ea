"""A chat as a person has it: on a real pseudo-terminal, and in a pipe."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.reference_harness.llm_server.served import Serve, Served
from tests.reference_harness.recording_daemon import END, PROMPT, RECALL, START, Answer, RecordingDaemon

from .conftest import COMMAND, Chat, Pipe, provider

READ_NOTES = {"type": "tool_call", "name": "file_read", "arguments": {"path": "notes.md"}}
MEANT_FOR_A_TERMINAL = "\x1b]0;owned\x07\x1b[2J\u202egreen"


def test_a_chat_streams_stops_and_is_steered(chat: Chat, daemon: RecordingDaemon, serve: Serve, project: Path) -> None:
    """Words show before the answer is whole; Ctrl-C stops it and not the chat; what is typed meanwhile steers."""
    (project / "notes.md").write_text("two\nlines\n")
    slow = {"content": "One two three four.", "chunk_delay_ms": 60_000}
    looking = {"content": [{"type": "text", "text": "I look."}, READ_NOTES], "delay_ms": 1_500}
    served = serve(turns=[slow, looking, {"content": f"二つ **done** {MEANT_FOR_A_TERMINAL}"}])
    with chat() as terminal:
        terminal.type("Count, please.\r")
        terminal.wait_for(lambda shown: "One" in shown and "working" in shown)
        assert "four" not in terminal.shown
        terminal.type("\x03")
        terminal.wait_for("the answer was stopped")
        terminal.type("\x03")
        terminal.wait_for("/quit leaves the chat")
        terminal.type("Read it.\r")
        terminal.wait_for("working")
        terminal.type("In Japanese.\r")
        terminal.wait_for("+ In Japanese.")
        shown = terminal.wait_for(lambda text: "二つ done" in text and "working" not in text)
        assert shown.index("● file_read path: notes.md") < shown.index("> In Japanese.") < shown.index("二つ done")
        terminal.type("\x04")
        assert terminal.wait() == 0
    assert "\\x1b]0;owned\\x07\\x1b[2J\\u202egreen" in terminal.everything
    assert b"\x1b]0;owned" not in terminal.raw
    messages = served.requests()[-1]["body"]["messages"]
    assert [message["role"] for message in messages[-2:]] == ["tool", "user"]
    assert messages[-1]["content"] == "In Japanese."
    assert [body["userMessage"] for body in daemon.bodies(PROMPT)] == ["Count, please.", "Read it."]
    assert "In Japanese." in daemon.bodies(END)[0]["transcript"]
    assert len(daemon.bodies(END)) == 1


def test_a_file_is_written_only_when_the_person_says_so(chat: Chat, serve: Serve, project: Path) -> None:
    """What changes is shown; other words than the choices are said to the model, and an answer may hold for long."""
    (project / "notes.md").write_text("one\ntwo\n")
    written = {
        "content": [{**READ_NOTES, "name": "file_write", "arguments": {"path": "notes.md", "content": "one\n2\n"}}]
    }
    served = serve(turns=[written, written, written, {"content": "So be it."}])
    with chat() as terminal:
        terminal.type("Write.\r")
        terminal.wait_for(lambda shown: "-two" in shown and "+2" in shown and "May the model use file_write?" in shown)
        assert (project / "notes.md").read_text() == "one\ntwo\n"
        terminal.type("Not here.\r")
        terminal.wait_for("says: Not here.")
        terminal.wait_for(lambda shown: shown.count("-two") == 2)
        terminal.type("s\r")
        terminal.wait_for(lambda shown: "So be it." in shown and "working" not in shown)
        terminal.type("\x04")
        assert terminal.wait() == 0
    assert (project / "notes.md").read_text() == "one\n2\n"
    told = [each["content"] for each in served.requests()[-1]["body"]["messages"] if each["role"] == "tool"]
    assert ["does not allow it, and says: Not here." in told[0], "created" in told[1], "created" in told[2]] == [
        True
    ] * 3


def test_why_shows_what_memory_did_to_the_last_answer(pipe: Pipe, daemon: RecordingDaemon, serve: Serve) -> None:
    """One line under the answer, and each row with its id, score and the words that rest on it."""
    row = {"id": "m-7f50a7c4", "content": "Kestrel builds run on the blue runner.", "score": 1.07}
    daemon.always[RECALL] = Answer({"results": [row]})
    serve(turns=[{"content": "The blue one of Kestrel."}])
    done = pipe("/why\nWhich runner?\n/why\n")
    assert done.stderr == "There is no answer yet.\nmemory: 1 row (9 tokens), 1 used\n"
    assert "[memory_search; in the answer: blue, Kestrel]" in done.stdout


def test_a_turn_is_taken_back_or_asked_again(pipe: Pipe, daemon: RecordingDaemon, serve: Serve) -> None:
    """The model sees nothing of it any more, in a later process either; the daemon's transcript keeps it."""
    served = serve(turns=[{"content": "One."}, {"content": "Two."}, {"content": "Three."}, {"content": "Four."}])
    done = pipe("/retry\nFirst?\n/retry\nSecond?\n/undo\n/undo\n/undo\n", "--session", "s")
    assert done.stdout == "One.\nTwo.\nThree.\n"
    assert done.stderr.count("knows nothing of the last turn") == 2
    assert "There is no turn to take back" in done.stderr
    assert "First?" in daemon.bodies(END)[0]["transcript"]
    pipe("Third?\n", "--session", "s")
    asked = [[each["content"] for each in request["body"]["messages"]] for request in served.requests()]
    assert [[text for text in texts if "reminder" not in text] for texts in asked] == [
        ["First?"],
        ["First?"],
        ["First?", "Two.", "Second?"],
        ["Third?"],
    ]


def test_the_model_and_its_tokens_are_told_and_changed(
    pipe: Pipe, serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """/model asks another one from then on; /cost shows each one's price, and the context as it is after a summary."""
    (tmp_path / "agent.yaml").write_text("runtime: {prices: {scripted: {input: 3, output: 15}}}")
    monkeypatch.setenv("SIGNET_PATH", str(tmp_path))
    usage = {"input_tokens": 9_000, "output_tokens": 10}
    served = serve(
        turns=[{"content": "One.", "usage": usage}, {"content": "A summary.", "usage": usage}, {"content": "Two."}]
    )
    done = pipe("/model\nFirst?\n/compact\n/cost\n/model qwen9\nSecond?\n/cost\n")
    assert "scripted answers; /model NAME" in done.stderr
    assert "qwen9 answers from here on." in done.stderr
    assert [request["body"]["model"] for request in served.requests()] == ["scripted", "scripted", "qwen9"]
    assert "scripted\t18000 tokens in, 20 out; $0.0543\n" in done.stdout
    assert "out; agent.yaml names no price of it in runtime.prices\n" in done.stdout
    assert done.stderr.index("continues from this summary:\nA summary.\n") < done.stderr.index("qwen9 answers")
    context = next(line for line in done.stdout.splitlines() if line.startswith("context"))
    assert int(context.split()[1]) < 100


def test_a_pasted_block_is_folded_and_sent_whole(chat: Chat, serve: Serve) -> None:
    """What a model reads is the block; the line and the conversation on screen show its size. A short one is shown."""
    served = serve(turns=[{"content": "Read."}])
    block = "".join(f"row {number}\r" for number in range(40))
    with chat() as terminal:
        terminal.type(f"Sum \x1b[200~up\x1b[201~: \x1b[200~{block}\x1b[201~")
        terminal.wait_for("> Sum up: [pasted 1: 41 lines, 270 characters]")
        terminal.type("\r")
        shown = terminal.wait_for(lambda text: "Read." in text and "working" not in text)
        assert "row 7" not in shown
        terminal.type("\x04")
        assert terminal.wait() == 0
    [request] = served.requests()
    assert request["body"]["messages"][-1]["content"] == f"Sum up: {block}".replace("\r", "\n")


def test_a_pipe_cannot_be_asked(pipe: Pipe, serve: Serve, project: Path) -> None:
    """Its next line is a turn, and allows nothing; --tools does."""
    new = {"content": [{**READ_NOTES, "name": "file_write", "arguments": {"path": "new.md", "content": "x"}}]}
    serve(turns=[new, {"content": "I may not."}, {"content": "Still not."}, new, {"content": "Done."}])
    assert pipe("Write.\no\n").stdout == "I may not.\nStill not.\n"
    assert not (project / "new.md").exists()
    assert pipe("Write.\n", "--tools", "file_write").returncode == 0
    assert (project / "new.md").read_text() == "x"


def test_an_earlier_session_is_gone_on_with_in_a_window_of_any_width(
    chat: Chat, pipe: Pipe, daemon: RecordingDaemon, serve: Serve
) -> None:
    """/resume lists it and shows how it ended; the session of before is ended; no row is wider than the window."""
    serve(turns=[{"content": "Blue, 青い空です。"}, {"content": "As I said: 青い空 " + "ひろい" * 20}])
    done = pipe("Which colour?\n")
    assert (done.stdout, done.stderr, done.returncode) == ("Blue, 青い空です。\n", "", 0)
    with chat(columns=30, rows=20) as terminal:
        terminal.type("/resume\r")
        terminal.wait_for("Which colour?")
        terminal.type("/resume 1\r")
        terminal.wait_for("Blue, 青い空です。")
        terminal.resize(60, 20)
        terminal.type("And now?\r")
        terminal.wait_for(lambda shown: "As I said" in shown and "working" not in shown)
        terminal.send_signal(signal.SIGTERM)
        assert terminal.wait() == 143
    earlier, fresh, resumed = daemon.bodies(START)
    assert resumed["sessionKey"] == earlier["sessionKey"]
    assert (resumed["source"], fresh["source"]) == ("resume", "startup")
    ends = [(body["sessionKey"], body["reason"]) for body in daemon.bodies(END)]
    assert ends[1:] == [(fresh["sessionKey"], "session_switch"), (earlier["sessionKey"], "session_shutdown")]
    assert "Which colour?" in daemon.bodies(END)[-1]["transcript"]


def test_a_window_that_is_closed_ends_the_session(chat: Chat, daemon: RecordingDaemon, serve: Serve) -> None:
    """An answer that is being made is stopped, what arrived is handed over, and the status is that of SIGHUP."""
    serve(turns=[{"content": "One two three.", "chunk_delay_ms": 60_000}])
    with chat() as terminal:
        terminal.type("Count.\r")
        terminal.wait_for(lambda shown: "One" in shown)
        terminal.hang_up()
        assert terminal.process.wait(60) == 129
    assert "One" in daemon.bodies(END)[0]["transcript"]


def test_a_chat_that_waits_for_a_line_ends_on_a_signal(
    project: Path, daemon: RecordingDaemon, scripted_model: Served
) -> None:
    """The pipe stays open; the session is ended, nothing is complained of, and the status is that of the signal."""
    environ = {**os.environ, **provider(scripted_model.url)}
    pipe = subprocess.PIPE
    with subprocess.Popen(COMMAND, cwd=project, env=environ, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as held:
        assert held.stdin is not None
        assert held.stdout is not None
        held.stdin.write("/help\n")
        held.stdin.flush()
        assert held.stdout.readline() == "Commands\n"
        held.terminate()
        assert held.wait(60) == 143
        assert held.stderr is not None
        assert "Fatal" not in held.stderr.read()
    assert daemon.paths() == ["session-start", "session-end"]


def test_a_pipe_without_a_turn_is_a_session_without_one(pipe: Pipe, daemon: RecordingDaemon, serve: Serve) -> None:
    """Blank lines are no turns, nothing after /quit is read, and no model is asked."""
    served = serve(turns=[])
    done = pipe("\n\n/quit\nnever read\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert daemon.paths() == ["session-start", "session-end"]
    assert served.requests() == []


def test_a_session_that_another_chat_is_in_is_refused_at_once(chat: Chat, pipe: Pipe, serve: Serve) -> None:
    """The second chat does not wait for the end of the first."""
    serve(turns=[])
    with chat("--session", "s-41c7") as terminal:
        second = pipe("", "--session", "s-41c7")
        terminal.type("\x04")
        assert terminal.wait() == 0
    assert second.returncode == 2
    assert "another process works in this session" in second.stderr


def test_an_end_that_was_lost_and_then_taken_is_owed_no_more(
    pipe: Pipe, daemon: RecordingDaemon, serve: Serve, tmp_path: Path
) -> None:
    """It is repeated once; the next chat does not send it again."""
    serve(turns=[])
    daemon.answers[END] = [Answer(fault="reset")]
    for _ in range(2):
        assert pipe("", "--state-dir", str(tmp_path / "state")).returncode == 0
    assert daemon.paths() == ["session-start", "session-end", "session-end", "session-start", "session-end"]
