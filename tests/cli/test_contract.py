"""Facts about `signet-conformance contract`."""

from __future__ import annotations

import json

import pytest

from signet_conformance.contract import contract_versions
from tests.support.command_line import Invoke, Process

FIRST, *_, LAST = contract_versions()


def test_a_narrow_terminal_is_enough(process: Process) -> None:
    """Changes are wrapped at the width of the terminal, and lose no word."""
    narrow = process("contract", "diff", FIRST, LAST, COLUMNS="60").stdout
    assert max(map(len, narrow.splitlines())) <= 60
    wide = process("contract", "diff", FIRST, LAST, COLUMNS="120").stdout
    assert narrow.split() == wide.split()
    changes = json.loads(process("contract", "diff", FIRST, LAST, "--json").stdout)["changes"]
    assert all(change["field"] is None or change["field"] in narrow for change in changes)


def test_a_difference_says_how_sure_it_is(invoke: Invoke) -> None:
    """Changes of no operation come last, and empty lists are not mentioned."""
    told = " ".join(invoke("contract", "diff", "0.205", "0.237").stdout.split())
    assert "0.237 is read from documentation and some source files" in told
    assert "Both have the same requirements in force." in told
    assert told.index("clockContext") < told.index("in general") < told.index("memories/:id/supersede")
    assert "in force" not in invoke("contract", "diff", "0.109", "0.145").stdout


def test_changes_of_several_versions_name_theirs(invoke: Invoke) -> None:
    """Each operation is listed once, each change with the version that brought it."""
    told = invoke("contract", "diff", "0.145", "0.237").stdout
    assert told.count("\n  session-end\n") == 1
    assert "request.capturedAt (0.205)" in told


@pytest.mark.parametrize("words", [(LAST, LAST), (LAST, FIRST), ("1", LAST), (FIRST, "2")])
def test_versions_that_cannot_be_compared_are_errors_of_the_command(invoke: Invoke, words: tuple[str, str]) -> None:
    """An unknown version, the same version and an earlier one are errors of `contract diff` with a remedy."""
    done = invoke("contract", "diff", *words)
    assert done.exit_code == 2
    assert done.stderr.startswith("error: contract diff: ")
    assert f"contract diff {words[0]} {words[1]}" not in done.stderr
    assert "\ntry: " in done.stderr


def test_the_command_prints_the_newest_unless_a_version_is_named(invoke: Invoke) -> None:
    newest = json.loads(invoke("contract", "openapi").stdout)
    assert newest["info"]["title"].endswith(contract_versions()[-1])


@pytest.mark.parametrize("words", [("openapi", "9.9"), ("prove", "9.9", "--daemon", "none")], ids=" ".join)
def test_an_unknown_version_is_refused_with_the_known_ones(invoke: Invoke, words: tuple[str, ...]) -> None:
    """The error names the command and the known versions, and no option."""
    refused = invoke("contract", *words)
    assert refused.exit_code == 2
    assert refused.stderr.startswith(f"error: contract {words[0]}: ")
    assert "0.145" in refused.stderr


def test_an_editor_can_be_given_the_schema_of_a_document(invoke: Invoke) -> None:
    """Each listed name prints its schema; an unknown name is refused with the nearest ones."""
    names = [line.split()[0] for line in invoke("contract", "schema").stdout.splitlines()]
    assert {"settings", "scenario", "baseline", "face", "report"} <= set(names)
    for name in names:
        assert json.loads(invoke("contract", "schema", name).stdout)["$id"].startswith("https://")
    refused = invoke("contract", "schema", "senario")
    assert refused.exit_code == 2
    assert "try: one of scenario, scenarios" in refused.stderr
