"""Facts about `signet-conformance selftest`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from signet_conformance.cli import selftest
from signet_conformance.cli.commands import COMMANDS
from signet_conformance.cli.selftest import command
from signet_conformance.errors import UsageError


def run(*words: str) -> Result:
    """Run the command inside this process; stdout and stderr stay apart."""
    return CliRunner().invoke(command, list(words), standalone_mode=False)


def test_it_is_a_command_of_the_kit() -> None:
    """The overview lists it."""
    assert "selftest" in COMMANDS


def test_only_some_are_performed(tmp_path: Path) -> None:
    """--only names mutants or requirements; the traces can be kept; green is status 0. They need no package."""
    folder = tmp_path / "traces"
    done = run("--only", "ends-twice", "--json", "--workers", "1", "--traces", str(folder))
    assert done.return_value == 0, done.output
    document = json.loads(done.stdout)
    tried = ["ends-twice", "at-prompt-ends-twice"]  # in both bases
    assert (document["green"], [listed["id"] for listed in document["mutants"]]) == (True, tried)
    assert "ends-twice: killed by SIG-END-006 WARN" in done.stderr
    bases = ["at-prompt-0-145-plain", "reference-0-145-plain"]
    assert sorted(path.stem for path in folder.iterdir()) == sorted([*tried, *bases])


def test_a_variant_alone_is_performed() -> None:
    """--only names variants too, and the JSON says of each why it conforms."""
    done = run("--only", "shouts-its-type", "--json", "--workers", "1")
    assert done.return_value == 0, done.output
    (row,) = json.loads(done.stdout)["variants"]
    assert (row["id"], row["breached"], row["complaints"]) == ("shouts-its-type", {}, [])
    assert "shouts-its-type: not blamed" in done.stderr


def test_an_unknown_id_is_answered_with_the_nearest() -> None:
    """A word that names nothing is a usage error."""
    done = run("--only", "SIG-END-06")
    assert isinstance(done.exception, UsageError)
    assert "SIG-END-006" in str(done.exception)


def test_packages_that_are_missing_are_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra no trial begins whose bodies the recorder could not decode."""
    monkeypatch.setattr(selftest, "_CODINGS", ("no_such_coding",))
    done = run("--only", "sends-stray-bytes")
    assert isinstance(done.exception, UsageError)
    assert "not installed: no_such_coding" in str(done.exception)
    assert "[codings]" in str(done.exception)


@pytest.mark.parametrize("name", [".", "file"])
def test_a_folder_that_exists_is_left_alone(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """--traces makes a new folder or refuses."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    done = run("--only", "ends-twice", "--traces", name)
    assert isinstance(done.exception, UsageError)
    assert "name a new folder" in str(done.exception)
