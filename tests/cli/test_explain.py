"""Facts about `signet-conformance explain`."""

from __future__ import annotations

import json

import click
import pytest

from signet_conformance.cli.explain import command
from signet_conformance.cli.shared_options import requirement_names
from signet_conformance.contract import requirements
from tests.support.command_line import Invoke


@pytest.mark.parametrize("name", requirements())
def test_every_requirement_has_a_page(invoke: Invoke, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page has the sentence, the reason, the fix, and a recording that breaches it."""
    monkeypatch.setenv("COLUMNS", "120")
    done = invoke("explain", name)
    requirement = requirements()[name]
    page = " ".join(done.stdout.split())
    assert done.exit_code == 0
    texts = (requirement.title, requirement.why, requirement.fix, requirement.source, requirement.subject)
    for text in (*texts, requirement.verdict):
        assert " ".join(text.split()) in page
    assert "A recording that breaches it: {" in page
    assert max(map(len, done.stdout.splitlines()[:12])) <= 120


def test_a_page_of_the_documentation_is_named(invoke: Invoke) -> None:
    """The text names the page of the documentation about the requirement."""
    assert "page      requirements/SIG-END-005 of the documentation" in invoke("explain", "SIG-END-005").stdout


def test_without_an_id_all_are_listed(invoke: Invoke) -> None:
    """The list has every id with its sentence."""
    done = invoke("explain")
    listed = [line.split()[0] for line in done.stdout.splitlines() if line.startswith("SIG-")]
    assert listed == list(requirements())


def test_the_case_of_an_id_does_not_matter(invoke: Invoke) -> None:
    """An id may be written in small letters."""
    assert invoke("explain", "sig-end-005").stdout.startswith("SIG-END-005 SHOULD")


def test_several_are_explained_one_after_the_other(invoke: Invoke) -> None:
    """Each named ID has its page, in the given order, and its entry in JSON."""
    named = ("SIG-HTTP-001", "SIG-AGENT-001")
    pages = invoke("explain", *named).stdout
    assert [line.split()[0] for line in pages.splitlines() if line.startswith("SIG-")] == list(named)
    assert [entry["id"] for entry in json.loads(invoke("explain", *named, "--json").stdout)] == list(named)


def test_json_is_the_catalogue_entry(invoke: Invoke) -> None:
    """--json writes the catalogue's entry, or the list of all entries."""
    assert json.loads(invoke("explain", "SIG-END-005", "--json").stdout)["id"] == "SIG-END-005"
    assert len(json.loads(invoke("explain", "--json").stdout)) == len(requirements())


def test_an_unknown_id_is_answered_with_the_nearest(invoke: Invoke) -> None:
    """An unknown id ends with 2 and names similar ids."""
    done = invoke("explain", "SIG-AGNT-002")
    assert done.exit_code == 2
    assert "did you mean SIG-AGENT-002" in done.stderr
    assert "try: signet-conformance explain SIG-AGENT-002" in done.stderr


@pytest.mark.parametrize(
    ("words", "ids"),
    [
        (["agent-002"], ["SIG-AGENT-002"]),
        (["SIG-NOTE"], ["SIG-NOTE-001"]),
        (["sess", "SIG-SESS-001"], [name for name in requirements() if name.startswith("SIG-SESS-")]),
    ],
)
def test_a_short_name_and_a_family_are_accepted(invoke: Invoke, words: list[str], ids: list[str]) -> None:
    """The prefix may be left out, and a family means its requirements, each once."""
    entries = json.loads(invoke("explain", *words, "--json").stdout)
    assert [entry["id"] for entry in (entries if isinstance(entries, list) else [entries])] == ids


def test_a_shell_completes_ids_and_families() -> None:
    """Completions begin with the typed word, the family before its requirements."""
    offered = requirement_names(click.Context(command), command.params[0], "sig-sess")
    assert offered == ["SIG-SESS", *(name for name in requirements() if name.startswith("SIG-SESS-"))]


@pytest.mark.parametrize(
    ("word", "family"), [("compaction", "SIG-CMP"), ("Recall", "SIG-REC"), ("loading", "SIG-LOAD")]
)
def test_an_area_by_its_name_is_its_family(invoke: Invoke, word: str, family: str) -> None:
    """The name of an area selects its family."""
    said = json.loads(invoke("explain", word, "--json").stdout)
    assert {entry["id"].rpartition("-")[0] for entry in said} == {family}
