"""Facts about what tells a run from others: read from CI's variables or git's own files, without a program."""

from __future__ import annotations

from pathlib import Path

import pytest

from signet_conformance.outcome.identity import Identity, checked_out

COMMIT, OTHER = "a" * 40, "b" * 40


def repository(folder: Path, head: str) -> Path:
    """A folder of git's, with what its HEAD says."""
    (folder / ".git" / "refs" / "heads" / "topic").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text(head)
    return folder


@pytest.mark.parametrize("where", ["loose", "packed"])
def test_a_branch_leads_to_its_commit(tmp_path: Path, where: str) -> None:
    """The reference is a file of its own, or a line among others; a folder below is enough to start from."""
    folder = repository(tmp_path, "ref: refs/heads/topic/x\n")
    if where == "loose":
        (folder / ".git" / "refs" / "heads" / "topic" / "x").write_text(f"{COMMIT}\n")
    else:
        packed = f"# pack-refs\n{OTHER} refs/heads/main\n{COMMIT} refs/heads/topic/x\n"
        (folder / ".git" / "packed-refs").write_text(packed)
    below = folder / "src"
    below.mkdir()
    assert checked_out(below, {}) == (COMMIT, "topic/x")


def test_a_worktree_leads_to_the_repository(tmp_path: Path) -> None:
    """Its .git is a file that names a folder, whose references are shared."""
    main = repository(tmp_path / "main", "ref: refs/heads/main\n")
    (main / ".git" / "refs" / "heads" / "other").write_text(COMMIT)
    own = main / ".git" / "worktrees" / "w"
    own.mkdir(parents=True)
    (own / "HEAD").write_text("ref: refs/heads/other\n")
    (own / "commondir").write_text("../..\n")
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / ".git").write_text(f"gitdir: {own}\n")
    assert checked_out(tmp_path / "w", {}) == (COMMIT, "other")


@pytest.mark.parametrize(
    ("head", "known"),
    [(COMMIT, (COMMIT, None)), ("", (None, None)), ("ref: refs/heads/../../x", (None, None)), ("\0", (None, None))],
)
def test_what_is_no_branch_is_a_commit_or_nothing(
    tmp_path: Path, head: str, known: tuple[str | None, str | None]
) -> None:
    """A detached head has no branch; anything else is not known."""
    assert checked_out(repository(tmp_path, head), {}) == known


def test_ci_knows_better(tmp_path: Path) -> None:
    """A CI system that names the commit of the change is believed before the merge that it checked out."""
    folder = repository(tmp_path, OTHER)
    named = {"GITHUB_SHA": COMMIT, "GITHUB_HEAD_REF": "", "GITHUB_REF_NAME": "12/merge"}
    assert checked_out(folder, named) == (COMMIT, "12/merge")
    assert checked_out(folder, {"GITHUB_SHA": "$(rm)"}) == (OTHER, None)


def test_an_identity_is_a_phrase() -> None:
    """What nobody knows is left out."""
    assert Identity().words() == ""
    known = Identity("2026-11-21T20:17:00Z", COMMIT, "main", 1, "2.0.0")
    assert known.words() == f"recorded 2026-11-21T20:17:00Z, commit {'a' * 12} (main), connector 2.0.0, seed 1"
