"""The releases of a program: as its registry's client tells them, and the one in which something changed."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.errors import NothingTestedError
from signet_conformance.targets.program import find_program_profile
from signet_conformance.targets.program_releases import bisect, published_releases, releases_of
from tests.support.command_line import Invoke, invoke

__all__ = ["invoke"]

Npm = Callable[..., None]


@pytest.fixture
def npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Npm:
    """Puts a client in front of the registry's own that says what it is given, ends with a status, installs nothing."""

    def put(said: Any, status: int = 0) -> None:
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        (folder / "said").write_text(said if isinstance(said, str) else json.dumps(said))
        client = folder / "npm"
        client.write_text(
            f'#!/bin/sh\n[ $1 = view ] || exit 9\ncat "{folder}/said" >&{2 if status else 1}\nexit {status}\n'
        )
        client.chmod(client.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")

    return put


@pytest.mark.parametrize(
    ("said", "releases"),
    [
        (["0.9.0", "0.10.0", "0.10.0-beta.1", "0.54.2"], ["0.9.0", "0.10.0", "0.54.2"]),
        ("1.0.0", ["1.0.0"]),
    ],
)
def test_published_releases_are_in_order(npm: Npm, said: Any, releases: list[str]) -> None:
    """Oldest first by their numbers, without pre-releases; a package of one release is told as a text."""
    npm(json.dumps(said))
    assert published_releases(find_program_profile("pi").profile) == releases


@pytest.mark.parametrize(("said", "status"), [("no network", 1), ("no JSON", 0), ("[]", 0)])
def test_a_registry_that_does_not_answer_is_told(npm: Npm, said: str, status: int) -> None:
    """What the client said stands in the complaint, and the list says why it lacks the published ones."""
    npm(said, status)
    with pytest.raises(NothingTestedError, match="no network" if status else "named no release"):
        published_releases(find_program_profile("pi").profile)
    learnt = releases_of(find_program_profile("pi"))
    assert (learnt.published, learnt.newer) == (None, [])
    assert "the registry did not answer" in learnt.why


def test_what_is_known_and_proven_stands_beside(npm: Npm, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Faces and profiles tell what is known; what is published after the newest proven release is not tried yet."""
    monkeypatch.setenv("SIGNET_CONFORMANCE_PROGRAMS", str(tmp_path))
    proven = next(iter(find_program_profile("pi").profile.checked)).release
    npm([proven, "999.0.0"])
    learnt = releases_of(find_program_profile("pi"))
    assert learnt.known[proven].startswith("face pi-")
    assert next(iter(learnt.proven)) == proven
    assert (learnt.newer, learnt.installed) == (["999.0.0"], [])


def test_the_command_lists_them(npm: Npm, invoke: Invoke) -> None:
    """As text with a line each, and as JSON; an end that is not a release is refused."""
    npm(["0.1.0", "999.0.0"])
    assert "not tried 999.0.0" in invoke("hosts", "pi").stdout
    assert json.loads(invoke("hosts", "pi", "--json").stdout)["pi"]["published"] == ["0.1.0", "999.0.0"]
    refused = invoke("hosts", "--bisect", "0.1.0", "0.2.0", "--target", "pi")
    assert refused.exit_code == 2
    assert "not an older and a newer release" in refused.stderr
    assert "needs --target" in invoke("hosts", "--bisect", "0.1.0", "0.2.0").stderr


def test_a_release_that_cannot_be_driven_is_named_with_its_reason(
    npm: Npm, invoke: Invoke, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The words are those of the run; where an end has no verdicts nothing is compared."""
    monkeypatch.setenv("SIGNET_CONFORMANCE_PROGRAMS", str(tmp_path / "programs"))
    npm(["0.1.0", "0.2.0"])
    settings = tmp_path / "signet-conformance.toml"
    settings.write_text('[targets.pi]\nmodule = "pi.mjs"\n')
    settings.with_name("pi.mjs").touch()
    done = invoke("hosts", "--bisect", "0.1.0", "0.2.0", "--target", "pi")
    assert done.exit_code == 3
    told = " ".join(done.stdout.split())
    assert "0.1.0: could not be driven: error: --install-harness: NOT-APPLICABLE: pi cannot be installed" in told
    assert "nothing can be compared" in done.stderr


RELEASES = [f"1.{number}" for number in range(32)]


@pytest.mark.parametrize("change", [1, 5, 16, 31])
def test_the_release_of_a_change_is_found(change: int) -> None:
    """Few releases are driven, and the two on either side of the change are named."""
    learnt = bisect(RELEASES, lambda release: RELEASES.index(release) >= change)
    assert (learnt.last, learnt.first) == (RELEASES[change - 1], RELEASES[change])
    assert len(learnt.tried) <= 7


def test_releases_that_cannot_be_driven_are_passed_over() -> None:
    """What lies between the last and the first and was not driven is named; without a change nothing is."""
    gone = {"1.15", "1.16", "1.17"}
    learnt = bisect(RELEASES, lambda r: None if r in gone else RELEASES.index(r) >= 16)
    assert (learnt.last, learnt.first, sorted(learnt.untested)) == ("1.14", "1.18", sorted(gone))
    assert bisect(RELEASES, lambda _: "same").first is None


def test_an_end_that_cannot_be_driven_ends_the_search() -> None:
    """Without both ends there is nothing to compare."""
    with pytest.raises(NothingTestedError, match=r"1\.0 cannot be driven here"):
        bisect(RELEASES, lambda r: None if r == "1.0" else 1)
