"""The tools on the files of the project."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from signet_reference_harness.session.host import SessionHost
from signet_reference_harness.tools import DEFINITIONS, ToolResult
from signet_reference_harness.tools.files import FILE_TOOLS, MOST_READ
from signet_reference_harness.tools.registry import ResultFolder

Use = Callable[..., ToolResult]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a long text and a picture."""
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("Port = 1")
    (root / "src" / "main.py").write_text("import os\nPORT = 50051\n")
    (root / "long.txt").write_text("é" * 60_000)
    (root / "picture.png").write_bytes(b"\x89PNG\0PORT")
    return root


@pytest.fixture
def use(config: Any, hosted: Any, project: Path) -> Use:
    """Runs one tool in a session of that project."""

    def run(name: str, results: Path | None = None, **arguments: Any) -> ToolResult:
        async def work(_: SessionHost) -> ToolResult:
            host = SessionHost(config, FILE_TOOLS)
            session = host.session_for("s1", project=str(project), agent="atlas", key="key-1")
            session.results = ResultFolder(results)
            result = await session.use_tool(name, arguments)
            await host.client.aclose()
            return result

        result: ToolResult = hosted(work)
        return result

    return run


def test_a_long_file_is_read_on_by_offset(use: Use, project: Path) -> None:
    """The pieces, each of whole characters, add up to the file."""
    text, offset = "", 0
    while offset is not None:
        content = use("file_read", path="long.txt", offset=offset).content
        assert len(content["content"].encode()) <= MOST_READ
        text, offset = text + content["content"], content.get("next_offset")
    assert text == (project / "long.txt").read_text("utf-8")


def test_the_largest_limit_is_what_one_answer_holds() -> None:
    """The definition allows no limit above the bytes that file_read answers with at most."""
    assert DEFINITIONS["file_read"].input_schema["properties"]["limit"]["maximum"] == MOST_READ


@pytest.mark.parametrize(
    ("name", "arguments", "error"),
    [
        ("file_read", {"path": "../x"}, "holds '..'"),
        ("file_read", {"path": "/etc/passwd"}, "is outside of"),
        ("file_read", {"path": "picture.png"}, "not a text file"),
        ("file_read", {"path": "nothing"}, "no such file"),
        ("file_read", {"path": "long.txt", "offset": -1}, "/offset"),
        ("file_write", {"path": "a"}, "required property"),
        ("file_write", {"path": "a", "content": "\ud800"}, "lone surrogate"),
        ("file_list", {"path": "long.txt"}, "not a directory"),
        ("file_search", {"text": ""}, "/text"),
    ],
)
def test_what_cannot_be_done_is_said(use: Use, name: str, arguments: dict[str, Any], error: str) -> None:
    """Each refusal names what is wrong."""
    result = use(name, **arguments)
    assert not result.ok
    assert error in result.error


def test_files_are_written_listed_and_found(use: Use, project: Path) -> None:
    """What was written is there, in the list and in a search; binary files and .git are not searched."""
    assert use("file_write", path="docs/new.md", content="The port is 50051.\n").content["created"] is True
    assert (project / "docs" / "new.md").read_text() == "The port is 50051.\n"
    names = [(row["name"], row["kind"]) for row in use("file_list").content["entries"]]
    assert ("docs", "folder") in names
    assert use("file_search", text="port", ignore_case=True).content["hits"] == [
        {"path": "docs/new.md", "line": 1, "text": "The port is 50051."},
        {"path": "src/main.py", "line": 1, "text": "import os"},
        {"path": "src/main.py", "line": 2, "text": "PORT = 50051"},
    ]
    assert use("file_search", text="PORT", glob="*.md").content == {"hits": []}


def test_a_result_in_the_session_s_own_folder_can_be_read(use: Use, tmp_path: Path) -> None:
    """The path of a result that was too long is read though it is outside of the project; nothing beside it is."""
    file = ResultFolder(tmp_path / "s1.files").keep("made", b"the whole")
    (tmp_path / "s1.files" / "out").symlink_to(tmp_path)
    assert use("file_read", tmp_path / "s1.files", path=str(file)).content["content"] == "the whole"
    assert not use("file_read", tmp_path / "s1.files", path=f"{file.parent}/out/project/src/main.py").ok
    assert not use("file_write", tmp_path / "s1.files", path=str(file), content="x").ok
