"""Files beneath one folder: nothing leads out of it."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from signet_reference_harness.errors import ConfinementError
from signet_reference_harness.tools.files import ConfinedFolder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project beside a secret, with a file, and with links that lead out of it."""
    (tmp_path / "secret.txt").write_text("hunter2")
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    (root / "src" / "main.py").write_text("print('hello')\n")
    (root / "out").symlink_to(tmp_path)
    (root / "leak.txt").symlink_to(tmp_path / "secret.txt")
    (root / "inner.txt").symlink_to("src/main.py")
    os.mkfifo(root / "pipe")
    return root


def test_files_are_read_in_pieces(project: Path) -> None:
    """A read gives what was asked for, and the size of the whole; the root may be written before the path."""
    folder = ConfinedFolder(project)
    assert folder.read_bytes("src/main.py", offset=1, most=4) == (b"rint", 15)
    assert folder.read_bytes(f"{project}/./src//main.py") == (b"print('hello')\n", 15)


@pytest.mark.parametrize(
    "path",
    [
        "../secret.txt",
        "src/../../secret.txt",
        "/etc/passwd",
        "out/secret.txt",
        "out",
        "leak.txt",
        "inner.txt",
        "pipe",
        "src",
        ".",
        "",
        "src/main.py/x",
        "missing",
        "a\0b",
        "x" * 5000,
    ],
)
def test_what_leads_out_or_is_no_file_is_not_read(project: Path, path: str) -> None:
    """Links, `..`, other absolute paths, pipes and folders are refused with a reason."""
    with pytest.raises(ConfinementError) as refused:
        ConfinedFolder(project).read_bytes(path)
    assert refused.value.message


def test_a_link_is_called_a_link(project: Path) -> None:
    """The reason is not left to the system's own words, which differ."""
    with pytest.raises(ConfinementError, match=r"'leak\.txt' is a symbolic link"):
        ConfinedFolder(project).read_bytes("leak.txt")
    with pytest.raises(ConfinementError, match="leads through a symbolic link, 'out'"):
        ConfinedFolder(project).read_bytes("out/secret.txt")


@pytest.mark.parametrize("path", ["../new.txt", "out/new.txt", "/tmp/signet-new.txt", "pipe", "src", "leak.txt", "."])
def test_nothing_is_written_elsewhere(project: Path, path: str) -> None:
    """A write through a link, over a folder or a pipe, or beside the root, is refused, and nothing changed."""
    before = sorted(str(each) for each in project.parent.rglob("*"))
    with pytest.raises(ConfinementError):
        ConfinedFolder(project).write(path, b"x")
    assert sorted(str(each) for each in project.parent.rglob("*")) == before
    assert (project.parent / "secret.txt").read_text() == "hunter2"


def test_a_write_makes_folders_and_replaces_whole_files(project: Path) -> None:
    """It says whether the file is new, keeps the mode of an old one, and leaves no draft behind."""
    folder = ConfinedFolder(project)
    (project / "src" / "main.py").chmod(0o755)
    assert folder.write("docs/a/b.md", b"new") is True
    assert folder.write("src/main.py", b"old") is False
    assert (project / "src" / "main.py").stat().st_mode & 0o777 == 0o755
    assert [entry.name for entry in folder.entries("src")] == ["main.py"]


def test_a_linked_file_of_another_place_is_not_changed(project: Path) -> None:
    """A hard link to a file outside is replaced by a new file, not written through."""
    os.link(project.parent / "secret.txt", project / "hard.txt")
    ConfinedFolder(project).write("hard.txt", b"mine")
    assert (project.parent / "secret.txt").read_text() == "hunter2"


def test_a_folder_is_listed_without_following_links(project: Path) -> None:
    """Each entry has its kind; a walk goes into folders only."""
    folder = ConfinedFolder(project)
    kinds = {entry.name: entry.kind for entry in folder.entries()}
    assert kinds == {"src": "folder", "out": "link", "leak.txt": "link", "inner.txt": "link", "pipe": "other"}
    assert [path for path, _ in folder.walk()] == ["src/main.py"]


def test_a_missing_root_is_an_error_of_its_own(tmp_path: Path) -> None:
    """The message names the root."""
    with pytest.raises(ConfinementError, match="nowhere cannot be opened"):
        ConfinedFolder(tmp_path / "nowhere").read_bytes("a")


def test_a_race_cannot_lead_out(project: Path) -> None:
    """While a folder is swapped for a link to the outside and back, no read ever brings what lies there."""
    (project / "src" / "secret.txt").write_text("harmless")
    over = threading.Event()

    def swap() -> None:
        while not over.is_set():
            (project / "src").rename(project / "aside")
            (project / "src").symlink_to(project.parent)
            (project / "src").unlink()
            (project / "aside").rename(project / "src")

    swapping = threading.Thread(target=swap)
    swapping.start()
    seen = set()
    folder = ConfinedFolder(project)
    for _ in range(3_000):
        try:
            seen.add(folder.read_bytes("src/secret.txt")[0])
        except ConfinementError:
            continue
    over.set()
    swapping.join()
    assert seen <= {b"harmless"}
