"""Which run a report is of: when it was recorded, and the commit that was checked out where it was judged."""

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
_COMMIT_OF = ("GITHUB_SHA", "CI_COMMIT_SHA", "BUILDKITE_COMMIT")
_BRANCH_OF = ("GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_COMMIT_REF_NAME", "BUILDKITE_BRANCH")
_MOST = 64 * 1024
"""Bytes to read of a file of git's: its first line matters."""


class Identity(Struct, frozen=True):
    """The facts that distinguish a run from others; None where a fact is unknown.

    `created` is when its first recording began, as the recorder wrote it. `connector` is the release of the connector.
    """

    created: str | None = None
    commit: str | None = None
    branch: str | None = None
    seed: int | None = None
    connector: str | None = None

    @classmethod
    def of(cls, judged: Sequence[JudgedTrace], seed: int | None, connector: str | None = None) -> Self:
        """That of the recordings of a run, judged where the process stands."""
        begun = [each.trace.header.created for each in judged if each.trace.header.created]
        commit, branch = checked_out(Path.cwd(), os.environ)
        return cls(printable(min(begun), 60) if begun else None, commit, branch, seed, connector)

    def words(self) -> str:
        """These facts as a phrase; empty without any."""
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
    """The commit and the branch: as a CI system names them, else those that are checked out at or above `folder`."""
    named = next((value for name in _COMMIT_OF if _COMMIT.fullmatch(value := environment.get(name, ""))), None)
    if named is not None:
        branch = next((environment[name] for name in _BRANCH_OF if environment.get(name)), None)
        return named, None if branch is None else printable(branch, 200)
    git = next((place / ".git" for place in (folder, *folder.parents) if os.path.lexists(place / ".git")), None)
    return (None, None) if git is None else _head(git)


def _head(git: Path) -> tuple[str | None, str | None]:
    """What git's own files say is checked out; no program is started for it."""
    if git.is_file():
        # A worktree, or a submodule: the file says where its folder is.
        git = git.parent / _beginning_of(git).removeprefix("gitdir:").strip()
    head = _beginning_of(git / "HEAD").strip()
    if _COMMIT.fullmatch(head):
        return head, None
    reference = head.removeprefix("ref:").strip()
    if not reference.startswith(_BRANCHES) or ".." in reference:
        return None, None
    shared = _beginning_of(git / "commondir").strip()
    places = [git, *([git / shared] if shared else [])]
    commit = next((text for place in places if (text := _beginning_of(place / reference).strip())), None)
    if commit is None:
        packed = (
            line.split(" ", 1)
            for place in places
            for line in _beginning_of(place / "packed-refs", 1 << 24).splitlines()
        )
        commit = next((words[0] for words in packed if words[-1] == reference), None)
    branch = printable(reference.removeprefix(_BRANCHES), 200)
    return (commit, branch) if commit is not None and _COMMIT.fullmatch(commit) else (None, branch)


def _beginning_of(path: Path, most: int = _MOST) -> str:
    try:
        with path.open("rb") as stream:
            return stream.read(most).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""
