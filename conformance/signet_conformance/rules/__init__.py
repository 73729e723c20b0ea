"""The built-in rules: requirement id to the function that checks it, as the requirement's entry names it.

A rule is a generator over a :class:`~signet_conformance.facts.Recording` that yields a plain PASS for
a subject that conforms and a finding for one that does not, or that cannot be decided. A rule that
yields nothing had no subject.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module

from signet_conformance.contract import Requirement, daemon_requirements, harness_requirements, requirements
from signet_conformance.errors import ContractError, UsageError, printable
from signet_conformance.rules import coverage
from signet_conformance.rules.fields import check_fields
from signet_conformance.rules.outcome import Rule, RunRule

_OVER_A_RUN: Mapping[str, RunRule] = {"SIG-COV-001": coverage.observed_operations_are_the_declared_ones}
"""The rules that all traces of a run decide together, beside the rules over each trace."""

_added: dict[str, Rule] = {}


@cache
def builtin_rules() -> Mapping[str, Rule]:
    """The rule of every requirement on the connector, by id, in the catalogue's order."""
    return _rules_of(requirements())


@cache
def daemon_rules() -> Mapping[str, Rule]:
    """The rule of every requirement on the daemon's answers, by id, in the catalogue's order."""
    return _rules_of(daemon_requirements())


@cache
def harness_rules() -> Mapping[str, Rule]:
    """The rule of every requirement on the harness, by id, in the catalogue's order."""
    return _rules_of(harness_requirements())


def _rules_of(entries: Mapping[str, Requirement]) -> Mapping[str, Rule]:
    return {name: _find(entry.rule, name) if entry.rule else check_fields(name) for name, entry in entries.items()}


def _find(rule: str, requirement: str) -> Rule:
    """The function that an entry names. Raises ContractError if the kit has no such function."""
    module, _, function = rule.rpartition(".")
    try:
        found: Rule = getattr(import_module(f"{__name__}.{module}"), function)
    except (ImportError, AttributeError):
        raise ContractError(
            f"{requirement}: rules/{module.replace('.', '/')}.py has no function {printable(function, 60)}",
            where=f"schemas/requirements/{requirement.split('-')[1]}.json",
            remedy="name the rule that judges it, or give the entry a check",
        ) from None
    return found


def rule_for(requirement: str) -> Callable[[Rule], Rule]:
    """Register a user's rule for a requirement id; an id that already has a rule is refused."""

    def register(rule: Rule) -> Rule:
        if requirement in rules():
            raise UsageError(
                f"{requirement} has a rule already", remedy="choose an id of your own, such as ACME-HTTP-001"
            )
        _added[requirement] = rule
        return rule

    return register


def rules() -> Mapping[str, Rule]:
    """All rules in the catalogue's order, those that users added last."""
    return {**builtin_rules(), **_added} if _added else builtin_rules()


def run_rules() -> Mapping[str, RunRule]:
    """The rules over a whole run, by requirement id."""
    return _OVER_A_RUN
