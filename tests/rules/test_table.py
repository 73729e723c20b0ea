"""The table of rules: complete, and each rule says the law that it checks."""

from __future__ import annotations

import pytest

from signet_conformance.contract import catalogue, requirements
from signet_conformance.rules import DAEMON_RULES, builtin_rules, run_rules
from signet_conformance.rules.model import MODEL_RULES

RULES = {**builtin_rules(), **DAEMON_RULES, **MODEL_RULES}
TABLES = {"connector": "rules/__init__.py", "daemon": "rules/__init__.py", "harness": "rules/model/__init__.py"}


def entry_file(requirement: str) -> str:
    """Where the entry of a requirement stands."""
    return f"schemas/requirements/{requirement.split('-')[1]}.json"


@pytest.mark.parametrize("requirement", catalogue())
def test_every_requirement_has_a_rule(requirement: str) -> None:
    """An entry has a check, or a rule that is entered in the table of its side."""
    table = TABLES[catalogue()[requirement].side]
    assert requirement in RULES, (
        f"{requirement} has no rule: enter one in conformance/signet_conformance/{table},"
        f" or give its entry in {entry_file(requirement)} a check"
    )


@pytest.mark.parametrize("requirement", [*RULES, *run_rules()])
def test_every_rule_has_an_entry(requirement: str) -> None:
    """A rule of the table checks a requirement of the catalogue."""
    assert requirement in catalogue(), f"{requirement} has a rule and no entry: write one in {entry_file(requirement)}"


def test_a_rule_over_the_run_is_written_for_what_only_a_run_shows() -> None:
    """The requirements that need a run are those with a rule over the run."""
    of_a_run = [name for name, entry in requirements().items() if entry.needs == "run"]
    assert of_a_run == list(run_rules()), "needs in schemas/requirements and _OVER_A_RUN in rules/__init__.py differ"


@pytest.mark.parametrize("requirement", RULES)
def test_a_rule_says_its_sentence(requirement: str) -> None:
    """A rule's docstring is one sentence in plain words, and no id stands for it."""
    rule = RULES[requirement]
    said = (rule.__doc__ or "").split("\n")[0]
    assert said.endswith("."), f"{rule.__name__} does not say its sentence"
    assert "SIG-" not in said
