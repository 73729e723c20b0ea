"""Facts about kinds of breach: each rule tells its own apart, by codes that no run changes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import signet_conformance.rules
from signet_conformance.finding import Finding, Verdict

ROOM = Path(signet_conformance.rules.__file__).parent
BREACHES = {"fail", "warn"}


def breaches_without_a_kind(tree: ast.AST) -> Iterator[tuple[str, list[str]]]:
    """Of each rule the pointers of its breaches that name no kind."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            calls = [
                {word.arg: ast.unparse(word.value) for word in call.keywords}
                for call in ast.walk(function)
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in BREACHES
            ]
            yield function.name, [words.get("pointer", "") for words in calls if "fold" not in words]


@pytest.mark.parametrize("module", sorted(ROOM.rglob("*.py")), ids=lambda module: module.stem)
def test_breaches_of_one_rule_at_one_place_have_kinds(module: Path) -> None:
    """Without a code of its own a breach is known by its pointer: a second one there would be taken for it."""
    for name, pointers in breaches_without_a_kind(ast.parse(module.read_text(encoding="utf-8"))):
        assert len(set(pointers)) == len(pointers), name


@pytest.mark.parametrize(
    ("fold", "pointer", "kind"),
    [
        ("twice", "/request/path", "twice"),
        ("", "/request/body/json/patches/3/id", "/request/body/json/patches/*/id"),
        ("", "", "breach"),
        ("401", "", "401"),
        ("GET /api/x/5d1f0c62-6f0e-4a7b-9a53-2f6f3d1f7a10", "", "GET /api/x/*"),
        ("POST /api/x/deadbeef01/run", "", "POST /api/x/*/run"),
        ("lost PreCompact", "", "lost PreCompact"),
        ("GET /api/x/1700000000000", "", "GET /api/x/*"),
        ("memory-recall as default", "", "memory-recall as default"),
    ],
)
def test_a_kind_holds_no_id(fold: str, pointer: str, kind: str) -> None:
    """Neither that of a session or memory, nor a time, nor the place in a list."""
    assert Finding(Verdict.FAIL, (1,), "whatever", pointer, fold=fold).kind == kind
