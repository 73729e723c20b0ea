"""The kinds of breach in the entries of requirements: each is found by a rule, which fills the places in its texts."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib import import_module
from pkgutil import walk_packages
from string import Formatter

import pytest

from signet_conformance import rules as rules_room
from signet_conformance.contract import Breach, catalogue
from signet_conformance.rules.outcome import breach_of

DESCRIBED = {(name, kind): breach for name, entry in catalogue().items() for kind, breach in entry.breaches.items()}
OPTIONS = {name for name, told in inspect.signature(breach_of).parameters.items() if told.kind is told.KEYWORD_ONLY}

FINDERS = {"breach_of": 0, "lost_state": 1, "_silence_after": 1}
"""The functions that make a finding of a breach, to the place of the requirement among their arguments."""
OF_STEPS = "SIG-MEM-006"
"""The requirement whose breaches the method of a tool's step makes, which gives the number of the step."""
FINDERS_OF_STEPS = ("step.breach", "self.breach")


def texts_in(node: ast.expr, scope: ast.AST, module: ast.Module) -> Iterator[str]:
    """The texts that an expression may be: constants, each side of a choice, and what its name is assigned.

    A name is that of the function or class in which the expression is, or of the module.
    """
    if isinstance(node, ast.Constant):
        yield str(node.value)
    elif isinstance(node, ast.IfExp):
        yield from (*texts_in(node.body, scope, module), *texts_in(node.orelse, scope, module))
    elif isinstance(node, ast.Name):
        for name, value in (*assigned_by(ast.walk(scope)), *assigned_by(module.body)):
            if name == node.id:
                yield from texts_in(value, scope, module)


def assigned_by(statements: Iterable[ast.AST]) -> Iterator[tuple[str, ast.expr]]:
    """The names that are assigned by some statements, each with its value."""
    for statement in statements:
        if isinstance(statement, ast.Assign):
            target, value = statement.targets[0], statement.value
            pairs = [(target, value)]
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                pairs = [*zip(target.elts, value.elts, strict=True)]
            yield from ((ast.unparse(each), given) for each, given in pairs)


@cache
def found() -> Sequence[tuple[str, str, frozenset[str]]]:
    """The requirement, the kind and the facts of each breach that the code of a rule finds."""
    breaches = []
    for each in walk_packages(rules_room.__path__, f"{rules_room.__name__}."):
        module = ast.parse(inspect.getsource(import_module(each.name)))
        for scope, call in ((top, node) for top in module.body for node in ast.walk(top)):
            name = ast.unparse(call.func) if isinstance(call, ast.Call) else ""
            if not isinstance(call, ast.Call) or name not in (*FINDERS, *FINDERS_OF_STEPS):
                continue
            facts = frozenset(str(keyword.arg) for keyword in call.keywords) - OPTIONS
            if name in FINDERS_OF_STEPS:
                breaches += [(OF_STEPS, text, facts | {"step"}) for text in texts_in(call.args[0], scope, module)]
                continue
            requirement, kind = call.args[FINDERS[name] : FINDERS[name] + 2]
            for identifier in texts_in(requirement, scope, module):
                breaches += [(identifier, text, facts) for text in texts_in(kind, scope, module)]
    return breaches


def places(breach: Breach) -> set[str]:
    """The facts that the texts of a breach have places for, but the call and its route."""
    texts = (breach.message, breach.pointer, breach.expected, breach.received, breach.fold)
    fields = [field for text in texts if isinstance(text, str) for _, field, _, _ in Formatter().parse(text) if field]
    return {field.partition(".")[0].partition("[")[0] for field in fields} - {"call", "route"}


def test_a_rule_finds_each_breach_that_an_entry_describes() -> None:
    """No entry has a breach that no rule finds, and no rule finds one that its entry does not describe."""
    assert {(requirement, kind) for requirement, kind, _ in found()} == DESCRIBED.keys()


@pytest.mark.parametrize("requirement", sorted({requirement for requirement, _ in DESCRIBED}))
def test_a_rule_fills_the_places_in_the_texts(requirement: str) -> None:
    """The facts that a rule gives are those that the texts have places for."""
    given: dict[frozenset[str], set[str]] = {}
    for name, kind, facts in found():
        if name == requirement:
            assert places(DESCRIBED[name, kind]) <= facts, kind
            given.setdefault(facts, set()).update(places(DESCRIBED[name, kind]))
    assert {facts: facts - told for facts, told in given.items() if facts - told} == {}
