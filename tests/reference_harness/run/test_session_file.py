"""A session on disk: read back as it was written, torn by a crash, held by one process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from signet_reference_harness.errors import ConfigError
from signet_reference_harness.identity import SessionIdentity
from signet_reference_harness.messages import Message, Reminder, Thinking, ToolCall
from signet_reference_harness.run.session_file import SessionFile, read_session

IDENTITY = SessionIdentity("nightly", "atlas", "/workspace/acme")
PROMPT = Message(
    "user",
    "Hello.",
    reminders=(Reminder(kind="context", origin="daemon", text="You met.", data={"n": 1}),),
)
CALLING = Message(
    "assistant",
    "",
    tool_calls=(ToolCall("c1", "memory_search", {"query": "cache"}),),
    thinking=(Thinking("hm", "anthropic", {"signature": "s"}),),
)
TURN = [PROMPT, CALLING, Message("tool", "{}", tool_call_id="c1"), Message("assistant", "Hi.")]


def written(folder: Path, *replies: str) -> Path:
    """A session file with a turn for each reply; an empty reply is one that nobody gave."""
    file = SessionFile.open(folder, IDENTITY)
    for reply in replies:
        file.note_turn("Hello.")
        file.note_outcome("end_turn" if reply else "error", reply, TURN if reply else [])
    file.close()
    return file.path


def replies(path: Path) -> list[str]:
    """The replies in a session file, in order."""
    return [text for role, text in read_session(path).turns if role == "assistant"]


def test_messages_come_back_as_they_were(tmp_path: Path) -> None:
    """Role, content, calls, thinking and reminders of every message survive."""
    stored = read_session(written(tmp_path, "Hi."))
    assert stored.identity == IDENTITY
    assert stored.conversation.messages == tuple(TURN)
    assert stored.turns == (("user", "Hello."), ("assistant", "Hi."))
    assert stored.conversation.last_reply == "Hi."


def test_the_first_line_names_format_and_version(tmp_path: Path) -> None:
    """Whoever finds the file learns from its first line what it is."""
    header = json.loads(written(tmp_path).read_text().splitlines()[0])
    assert (header["kind"], header["format"], header["session"]) == ("header", "signet-session/1", "nightly")


def test_a_session_is_gone_on_with(tmp_path: Path) -> None:
    """A second process appends: what stood there stands."""
    before = written(tmp_path, "Hi.").read_bytes()
    path = written(tmp_path, "Again.")
    assert path.read_bytes().startswith(before)
    assert replies(path) == ["Hi.", "Again."]


def test_a_turn_without_an_answer_is_not_part_of_the_conversation(tmp_path: Path) -> None:
    """The model failed: the file tells it, the conversation goes on from before."""
    assert replies(written(tmp_path, "Hi.", "")) == ["Hi."]


def test_a_compaction_takes_the_place_of_the_messages_above(tmp_path: Path) -> None:
    """The summary is kept, the messages before it are not given to the model again, the transcript is whole."""
    path = written(tmp_path, "Hi.")
    file = SessionFile.open(tmp_path, IDENTITY)
    file.note_compaction("They said hello.")
    file.close()
    read = read_session(path).conversation
    assert (read.summary, read.messages, len(read.turns)) == ("They said hello.", (), 2)


def test_a_digest_knows_nothing_of_what_was_cleared_before_a_restart(tmp_path: Path) -> None:
    """The list that takes the place of a summary begins after the clear, in the next process too."""
    file = SessionFile.open(tmp_path, IDENTITY)
    for prompt in ("before", "after"):
        file.note_clear()
        file.note_turn(prompt)
        file.note_outcome("end_turn", "Hi.", [Message("user", prompt), Message("assistant", "Hi.")])
    file.close()
    read = read_session(file.path).conversation
    assert ("after" in read.digest(), "before" in read.digest()) == (True, False)
    assert ("user", "before") in read.turns


def test_a_turn_of_an_earlier_process_is_not_undone(tmp_path: Path) -> None:
    """Undone is what was said since the session was taken up; its file says of older turns that they were undone."""
    file = SessionFile.open(tmp_path, IDENTITY)
    for prompt in ("first", "second"):
        file.note_turn(prompt)
        file.note_outcome("end_turn", "Hi.", [Message("user", prompt), Message("assistant", "Hi.")])
    file.note_undo()
    file.close()
    read = read_session(file.path).conversation
    assert [message.content for message in read.messages] == ["first", "Hi."]
    assert read.undo() is None


@pytest.mark.parametrize("cut", range(1, 50, 7))
def test_a_torn_last_line_costs_that_line_alone(tmp_path: Path, cut: int) -> None:
    """A crash in the middle of a line: the turns before are there, and the file can be gone on with."""
    path = written(tmp_path, "Hi.", "Lost.")
    path.write_bytes(path.read_bytes()[:-cut])
    assert read_session(path).torn is (cut > 1)
    written(tmp_path, "Later.")
    assert replies(path) == ["Hi."] + ["Lost."] * (cut == 1) + ["Later."]
    assert not read_session(path).torn


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"[]\n",
        b'{"kind":"header","format":"signet-session/2"}\n',
        b'{"kind":"header","format":"signet-session/1","session":3,"agent":"a","project":"/p"}\n{}\n',
        b"\xff\n{}\n",
        b'{"kind":"x"}\n{}\n',
    ],
)
def test_another_file_is_refused_by_name(tmp_path: Path, damage: bytes) -> None:
    """What is not a session file of this version says so, with the file."""
    path = tmp_path / "nightly.jsonl"
    path.write_bytes(damage)
    with pytest.raises(ConfigError, match=r"nightly\.jsonl"):
        read_session(path)


def test_damage_before_the_last_line_names_the_line(tmp_path: Path) -> None:
    """Nothing is guessed about a conversation with a hole."""
    path = written(tmp_path, "Hi.")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b"nonsense\n" + b"".join(lines[1:]))
    with pytest.raises(ConfigError, match=r"nightly\.jsonl:2: is not a line"):
        read_session(path)


def test_a_session_is_open_in_one_process_at_a_time(tmp_path: Path) -> None:
    """Two tasks in one session would write each other's turns into it."""
    first = SessionFile.open(tmp_path, IDENTITY)
    with pytest.raises(ConfigError, match="another process works in this session"):
        SessionFile.open(tmp_path, IDENTITY)
    first.close()
    SessionFile.open(tmp_path, IDENTITY).close()


def test_a_session_that_went_on_since_it_was_read_is_not_written_to(tmp_path: Path) -> None:
    """A process that read it before another one's turn would lose that turn."""
    file = SessionFile.open(tmp_path, IDENTITY, size=0)
    read = read_session(file.path)
    file.note_turn("What else?")
    file.close()
    with pytest.raises(ConfigError, match="another process has just worked in this session"):
        SessionFile.open(tmp_path, IDENTITY, size=read.size)
    SessionFile.open(tmp_path, IDENTITY, size=read_session(file.path).size).close()


@pytest.mark.parametrize("name", ["../up", "a/b", "", ".hidden", "x" * 129, "a\nb"])
def test_a_key_that_cannot_name_a_file_is_refused(tmp_path: Path, name: str) -> None:
    """No session file stands outside its folder."""
    from signet_reference_harness.run.session_file import path_of

    with pytest.raises(ConfigError, match="cannot name a file"):
        path_of(tmp_path, name)


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    """A session file is never somebody else's file."""
    (tmp_path / "nightly.jsonl").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="cannot be written"):
        SessionFile.open(tmp_path, IDENTITY)


def test_what_is_scrubbed_never_reaches_the_disk(tmp_path: Path) -> None:
    """The key of a provider that a tool has read is not kept."""
    file = SessionFile.open(tmp_path, IDENTITY, lambda text: text.replace("sk-planted", "[key]"))
    file.note_turn("use sk-planted")
    file.note_outcome("end_turn", "sk-planted", [Message("user", "sk-planted"), Message("assistant", "sk-planted")])
    file.close()
    assert b"sk-planted" not in file.path.read_bytes()
