"""The rules: one for each requirement, by the name in its entry, and each says the law that it checks."""

from __future__ import annotations

import inspect
from importlib import import_module
from pkgutil import walk_packages

import msgspec
import pytest

from signet_conformance import rules as rules_room
from signet_conformance.contract import Requirement, catalogue, requirements
from signet_conformance.errors import ContractError
from signet_conformance.rules import builtin_rules, daemon_rules, harness_rules, run_rules

RULES = {**builtin_rules(), **daemon_rules(), **harness_rules()}


def test_every_requirement_has_a_rule() -> None:
    """Each entry has a check, or names a function of the kit."""
    assert list(RULES) == list(catalogue())


def test_an_entry_that_names_no_function_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A misspelt rule is told with the entry, the module and the name."""
    monkeypatch.setattr(rules_room, "requirements", lambda: {"SIG-HTTP-001": misspelt})
    misspelt: Requirement = msgspec.structs.replace(requirements()["SIG-HTTP-001"], rule="transport.body_is_objekt")
    with pytest.raises(ContractError, match=r"SIG-HTTP-001: rules/transport.py has no function body_is_objekt"):
        builtin_rules.__wrapped__()


def test_every_rule_has_an_entry() -> None:
    """A public function of the room that takes a recording and yields outcomes is named by an entry."""
    known = {*RULES.values(), *run_rules().values()}
    modules = [import_module(each.name) for each in walk_packages(rules_room.__path__, f"{rules_room.__name__}.")]
    unnamed = [
        f"{module.__name__}.{name}"
        for module in modules
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__ and not name.startswith("_") and function not in known
        if function.__annotations__ == {"recording": "Recording", "return": "Iterator[Outcome]"}
    ]
    assert not unnamed, "name it as `rule` in the entry of its requirement"


def test_a_rule_over_the_run_is_written_for_what_only_a_run_shows() -> None:
    """The requirements that need a run are those with a rule over the run."""
    of_a_run = [name for name, entry in requirements().items() if entry.needs == "run"]
    assert of_a_run == list(run_rules()), "needs in schemas/requirements and _OVER_A_RUN in rules/__init__.py differ"


def test_a_rule_says_its_sentence() -> None:
    """A rule's docstring is one sentence in plain words, and no id stands for it."""
    said = {rule.__name__: (rule.__doc__ or "").split("\n")[0] for rule in RULES.values()}
    assert {name: text for name, text in said.items() if not text.endswith(".") or "SIG-" in text} == {}
