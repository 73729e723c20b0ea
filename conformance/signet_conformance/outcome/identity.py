"""Identifies the run behind a report: when it was recorded, which commit was checked out, which seed and release."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from msgspec import Struct

from signet_conformance.engine import JudgedTrace
from signet_conformance.errors import printable

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_BRANCHES = "refs/heads/"
_COMMIT_VARIABLES = ("GITHUB_SHA", "CI_COMMIT_SHA", "BUILDKITE_COMMIT")
_BRANCH_VARIABLES = ("GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_COMMIT_REF_NAME", "BUILDKITE_BRANCH")
_FIRST_LINE_BYTES = 64 * 1024
_PACKED_REFS_BYTES = 16 * 1024 * 1024


class Identity(Struct, frozen=True, omit_defaults=True):
    """The facts that distinguish a run from others; None if a fact is unknown.

    `created` is when its first recording began, as the recorder wrote it. `connector` is the connector's release.
    """

    created: str | None = None
    commit: str | None = None
    branch: str | None = None
    seed: int | None = None
    connector: str | None = None

    @classmethod
    def of(cls, judged: Sequence[JudgedTrace], seed: int | None, connector: str | None = None) -> Self:
        """The identity of a run that made these recordings. The commit is that of the current folder."""
        begun = [each.trace.header.created for each in judged if each.trace.header.created]
        commit, branch = checked_out(Path.cwd(), os.environ)
        return cls(printable(min(begun), 60) if begun else None, commit, branch, seed, connector)

    def words(self) -> str:
        """The known facts as one phrase for a report, without `branch` if `commit` is unknown."""
        commit = None if self.commit is None else f"commit {self.commit[:12]}"
        if commit is not None and self.branch is not None:
            commit += f" ({self.branch})"
        parts = [
            None if self.created is None else f"recorded {self.created}",
            commit,
            None if self.connector is None else f"connector {self.connector}",
            None if self.seed is None else f"seed {self.seed}",
        ]
        return ", ".join(filter(None, parts))


def checked_out(folder: Path, environment: Mapping[str, str]) -> tuple[str | None, str | None]:
    """The commit and the branch from a CI system's variables, else from the repository at or above `folder`."""
    values = (environment.get(name, "") for name in _COMMIT_VARIABLES)
    commit = next((value for value in values if _COMMIT.fullmatch(value)), None)
    if commit is not None:
        branch = next((environment[name] for name in _BRANCH_VARIABLES if environment.get(name)), None)
        return commit, None if branch is None else printable(branch, 200)
    git = next((place / ".git" for place in (folder, *folder.parents) if os.path.lexists(place / ".git")), None)
    return (None, None) if git is None else _head(git)


def _head(git: Path) -> tuple[str | None, str | None]:
    """The commit and the branch of HEAD, read from git's files: git itself need not be installed."""
    if git.is_file():
        # In a worktree or a submodule, `.git` is a file that names the folder.
        git = git.parent / _beginning_of(git).removeprefix("gitdir:").strip()
    head = _beginning_of(git / "HEAD").strip()
    if _COMMIT.fullmatch(head):
        return head, None
    reference = head.removeprefix("ref:").strip()
    if not reference.startswith(_BRANCHES) or ".." in reference:
        return None, None
    # A worktree keeps its branches in the folder of the repository that it belongs to.
    common = _beginning_of(git / "commondir").strip()
    folders = [git, *([git / common] if common else [])]
    commit = next((text for folder in folders if (text := _beginning_of(folder / reference).strip())), None)
    if commit is None:
        packed = (
            line.split(" ", 1)
            for folder in folders
            for line in _beginning_of(folder / "packed-refs", _PACKED_REFS_BYTES).splitlines()
        )
        commit = next((words[0] for words in packed if words[-1] == reference), None)
    branch = printable(reference.removeprefix(_BRANCHES), 200)
    return (commit, branch) if commit is not None and _COMMIT.fullmatch(commit) else (None, branch)


def _beginning_of(path: Path, max_bytes: int = _FIRST_LINE_BYTES) -> str:
    """The file's first bytes as text; empty if it cannot be read."""
    try:
        with path.open("rb") as stream:
            return stream.read(max_bytes).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""
