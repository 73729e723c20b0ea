"""The agent's identity files: which are read, from where, and how much of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from signet_reference_harness.providers import CompletionResult
from signet_reference_harness.providers.scripted import ScriptedProvider
from signet_reference_harness.session.context import LONGEST_IDENTITY, identity_files
from signet_reference_harness.session.host import SessionHost
from tests.reference_harness.recording_daemon import START, Answer, RecordingDaemon


def written(folder: Path, **files: str) -> Path:
    """A folder with these files, `.md` added to their names."""
    folder.mkdir()
    for name, text in files.items():
        (folder / f"{name}.md").write_text(text, "utf-8")
    return folder


def told(*places: Any) -> list[tuple[str, str, str]]:
    """Source, origin and text of each file that is read."""
    return [(each.data["source"], each.origin, each.text) for each in identity_files(*places)]


def test_the_workspace_goes_before_the_project(tmp_path: Path) -> None:
    """Of each name one file is read, in the fixed order; one that is blank or missing gives way to the project's."""
    workspace = written(tmp_path / "agents", USER="Robin", AGENTS="Be brief.", SOUL=" \n")
    project = written(tmp_path / "project", AGENTS="Use tabs.", SOUL="Kind.", OTHER="x")
    assert told(workspace, str(project)) == [
        ("AGENTS.md", "workspace", "Be brief."),
        ("SOUL.md", "project", "Kind."),
        ("USER.md", "workspace", "Robin"),
    ]
    assert [source for source, *_ in told(None, str(project))] == ["AGENTS.md", "SOUL.md"]
    assert told(tmp_path / "nowhere", "/no/such/project") == []


def test_a_long_file_is_cut_at_a_whole_character(tmp_path: Path) -> None:
    """The rest is named, not read."""
    project = written(tmp_path / "project", MEMORY="x" + "é" * LONGEST_IDENTITY)
    ((_, _, text),) = told(None, str(project))
    beginning, note = text.split("\n")
    assert len(beginning.encode()) == LONGEST_IDENTITY - 1
    assert note == f"[the first {LONGEST_IDENTITY} of {2 * LONGEST_IDENTITY + 1} bytes]"


def test_a_link_or_what_is_no_text_counts_as_absent(tmp_path: Path) -> None:
    """A link that leads to a secret is not followed into a prompt."""
    (tmp_path / "secret").write_text("hunter2")
    project = written(tmp_path / "project")
    (project / "USER.md").symlink_to(tmp_path / "secret")
    (project / "SOUL.md").write_bytes(b"\xff\xfe")
    assert told(None, str(project)) == []


def test_identity_begins_the_context_of_every_turn(
    daemon: RecordingDaemon, config: Any, hosted: Callable[..., Any], tmp_path: Path
) -> None:
    """It stands before what the daemon injected, is named, and stays as it was when the session began."""
    daemon.always[START] = Answer({"inject": "start context", "memories": []})
    workspace = written(tmp_path / "agents", IDENTITY="You are Atlas.")
    provider = ScriptedProvider([CompletionResult(content="a"), CompletionResult(content="b")])

    async def work(_: SessionHost) -> None:
        host = SessionHost(config, workspace=workspace)
        session = host.session_for("s1", project=str(tmp_path), agent="atlas", key="k-1")
        await session.start()
        await session.turn("one", provider)
        (workspace / "IDENTITY.md").write_text("You are somebody else.")
        await session.turn("two", provider)
        await host.aclose()

    hosted(work)
    (_, first), (_, second) = provider.seen
    assert first.system_prompt == second.system_prompt
    assert first.system_prompt.startswith('<system-reminder kind="identity" origin="workspace" source="IDENTITY.md">')
    assert first.system_prompt.index("You are Atlas.") < first.system_prompt.index("start context")
    assert first.metadata["context"][0] == {"part": "identity", "characters": 14, "source": "IDENTITY.md"}
