"""What happens to temporary folders whose owner was killed, and to everything else that lies beside them."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from signet_conformance.children import watchdog
from signet_conformance.children.temporary import OWNER, kept_folder, let_go, remove_abandoned, temporary_folder
from signet_conformance.children.watchdog import WATCHDOG_VARIABLE

PREFIX = "signet-test-"
OWNS = """
import sys, time
from pathlib import Path
from signet_conformance.children.temporary import temporary_folder
with temporary_folder(sys.argv[1], Path(sys.argv[2])) as folder:
    (folder / "worker").mkdir()
    (folder / "worker" / "trace.jsonl").write_text("{}")
    print(folder, flush=True)
    sys.stdin.read()
"""

KEEPS = "from signet_conformance.children.temporary import kept_folder; print(kept_folder('signet-kept-'))"


@contextmanager
def owner(place: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A process that owns a temporary folder below `place`, without a watchdog."""
    process = subprocess.Popen(
        [sys.executable, "-c", OWNS, PREFIX, str(place)], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env={**os.environ, WATCHDOG_VARIABLE: "watched over by nobody"},
    )  # fmt: skip
    with process:
        assert process.stdout is not None
        yield process, Path(process.stdout.readline().strip())
        process.kill()


@pytest.fixture(name="abandoned")
def make_abandoned(tmp_path: Path) -> Path:
    """A folder that a killed process left."""
    with owner(tmp_path) as (process, folder):
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert (folder / "worker" / "trace.jsonl").is_file()
    return folder


def test_it_is_private_and_goes_with_its_block(tmp_path: Path) -> None:
    """Nobody else may look into it, and nothing is left of it."""
    with temporary_folder(PREFIX, tmp_path) as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "a").mkdir()
    assert list(tmp_path.iterdir()) == []


def test_the_watchdog_knows_it_before_it_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is killed right after making it leaves nothing either."""
    told: list[tuple[Path, bool]] = []
    monkeypatch.setattr(watchdog, "watch_folder", lambda folder: told.append((folder, folder.exists())))
    with temporary_folder(PREFIX, tmp_path) as folder:
        assert told == [(folder, False)]


def test_what_was_closed_in_it_goes_too(tmp_path: Path) -> None:
    """A connector may leave folders behind that nobody may write into or look into."""
    with temporary_folder(PREFIX, tmp_path) as folder:
        (folder / "a" / "b").mkdir(parents=True)
        (folder / "a" / "b" / "c").touch()
        (folder / "a" / "b").chmod(0o500)
        (folder / "a").chmod(0)
    assert list(tmp_path.iterdir()) == []


def test_the_next_removes_what_a_killed_process_left(abandoned: Path, tmp_path: Path) -> None:
    """With all that lies in it."""
    remove_abandoned(PREFIX, tmp_path)
    assert not abandoned.exists()


def test_the_next_folder_at_the_same_place_does_so(abandoned: Path) -> None:
    """Nobody needs to ask for it."""
    code = OWNS.replace("sys.stdin.read()", "")
    subprocess.run([sys.executable, "-c", code, PREFIX, str(abandoned.parent)], check=True, stdout=subprocess.DEVNULL)
    assert list(abandoned.parent.iterdir()) == []


def test_a_folder_whose_owner_lives_stays(tmp_path: Path) -> None:
    """However many others come and go."""
    with owner(tmp_path) as (_, folder):
        remove_abandoned(PREFIX, tmp_path)
        assert (folder / "worker" / "trace.jsonl").is_file()


def test_what_a_link_leads_to_stays(abandoned: Path, tmp_path: Path) -> None:
    """Neither a link inside is followed, nor one that has the name of a folder, nor one in place of the owner's."""
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("mine")
    (precious / OWNER).touch()
    (abandoned / "link").symlink_to(precious)
    (abandoned / "worker" / "link").symlink_to(precious)
    (tmp_path / f"{PREFIX}link").symlink_to(precious)
    odd = tmp_path / f"{PREFIX}odd"
    odd.mkdir()
    (odd / OWNER).symlink_to(precious / OWNER)
    remove_abandoned(PREFIX, tmp_path)
    assert not abandoned.exists()
    assert (precious / "file").read_text() == "mine"
    assert odd.is_dir()


def test_what_was_not_made_here_stays(abandoned: Path, tmp_path: Path) -> None:
    """Of another name, or without an owner's file, or with a pipe for one."""
    kept = [tmp_path / "other", tmp_path / f"{PREFIX}without", tmp_path / f"{PREFIX}pipe", tmp_path / f"{PREFIX}file"]
    for folder in kept[:3]:
        folder.mkdir()
    (kept[0] / OWNER).touch()
    os.mkfifo(kept[2] / OWNER)
    kept[3].touch()
    remove_abandoned(PREFIX, tmp_path)
    assert not abandoned.exists()
    assert all(path.exists() for path in kept)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("given", [".", OWNER])
def test_what_belongs_to_another_user_stays(abandoned: Path, given: str, tmp_path: Path) -> None:
    """Even where we could remove it."""
    os.chown(abandoned / given, 12345, 12345)
    remove_abandoned(PREFIX, tmp_path)
    assert (abandoned / "worker" / "trace.jsonl").is_file()


def test_a_full_disk_is_named(tmp_path: Path) -> None:
    """Where no temporary folder can be written, a run says so, and where it looked for one."""
    line = [sys.executable, "-m", "signet_conformance.cli", "run", "reference"]
    done = subprocess.run(
        line, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)),
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("error: no temporary folder can be written: ")
    assert done.stderr.endswith("\ntry: free some space, or set TMPDIR to another folder\n")


def test_a_kept_folder_outlives_its_owner_only_when_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a killed owner without a watchdog left goes with the next one of its prefix; let go, or held, it stays."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    environment = {**_in(tmp_path), WATCHDOG_VARIABLE: "another-run"}
    killed = subprocess.run([sys.executable, "-c", KEEPS], capture_output=True, text=True, check=True, env=environment)
    assert Path(killed.stdout.strip()).is_dir()
    left, held = kept_folder("signet-kept-"), kept_folder("signet-kept-")
    let_go(left)
    kept_folder("signet-kept-")
    assert not Path(killed.stdout.strip()).exists()
    assert list(left.iterdir()) == []
    assert held.is_dir()


def test_a_kept_folder_goes_with_an_owner_who_does_not_let_it_go(tmp_path: Path) -> None:
    """Its watchdog removes it, before the next one could."""
    environment = {name: value for name, value in _in(tmp_path).items() if name != WATCHDOG_VARIABLE}
    killed = subprocess.run([sys.executable, "-c", KEEPS], capture_output=True, text=True, check=True, env=environment)
    assert not Path(killed.stdout.strip()).exists()


def _in(folder: Path) -> dict[str, str]:
    return {**os.environ, "TMPDIR": str(folder)}
