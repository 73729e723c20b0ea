"""Every command that a page shows exists, with the options that it is shown with."""

from __future__ import annotations

import ast
import importlib
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from signet_conformance.cli.commands import commands
from signet_reference_harness.cli import commands as harness_commands

ROOT = Path(__file__).parents[2]
PROGRAMS = {"signet-conformance": commands, "signet-harness": harness_commands}
PAGES = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "ci/**/*.md", "examples/*.md", "conformance/npm/*.md", ".github/**/*.md")
    for path in ROOT.glob(pattern)
)


def commands_of(page: Path) -> Iterator[list[str]]:
    """Yield the words of each command of the kit's on a page, in blocks and in code spans."""
    text = page.read_text("utf-8").replace("\\\n", " ")
    blocks = re.findall(r"(?ms)^ *```[^\n]*\n(.*?)^ *```$", text)
    spans = re.findall(r"(?<!`)`([^`]+)`(?!`)", re.sub(r"(?ms)^ *```.*?^ *```$", "", text))
    lines = [line for block in blocks for line in block.split("\n")]
    for line in (*lines, *(" ".join(span.split()) for span in spans)):
        for program in PROGRAMS:
            for hit in re.finditer(rf"(?<![\w/.'-]){program} ([^|;&)`]*)", line):
                yield [program, *words(hit[1])]


def words(text: str) -> list[str]:
    """Split a command; a quote that is part of prose ends it."""
    try:
        split = shlex.split(text, comments=True)
    except ValueError:
        split = text.split()
    return split[: split.index("--")] if "--" in split else split


def problems(command: list[str]) -> Iterator[str]:
    """Yield what of a command the program does not know."""
    program, *rest = command
    at: click.Command = PROGRAMS[program]
    context = click.Context(at, info_name=program)
    while isinstance(at, click.Group) and rest and re.fullmatch(r"[a-z][a-z-]*", rest[0]):
        name, *rest = rest
        inner = at.get_command(context, name)
        if inner is None:
            yield f"{program} has no {name}"
            return
        at, context = inner, click.Context(inner, info_name=name, parent=context)
    known = options(at, context)
    if isinstance(at, click.Group):  # one of its commands is what it does without a name
        for name in at.list_commands(context):
            inner = at.get_command(context, name)
            known |= options(inner, context) if inner else set()
    for word in rest:
        if re.match(r"--?[a-z]", word):
            name = word.partition("=")[0].rstrip(".,:…")
            if name not in known:
                yield f"{' '.join(command[:3])} has no {name}"


def options(command: click.Command, context: click.Context) -> set[str]:
    return {name for option in command.get_params(context) for name in (*option.opts, *option.secondary_opts)}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_command_on_a_page_exists_with_its_options(page: Path) -> None:
    assert [problem for command in commands_of(page) for problem in problems(command)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_an_option_of_pytest_and_a_job_of_nox_exist(page: Path) -> None:
    text = page.read_text("utf-8")
    options = json.loads((ROOT / "conformance/signet_conformance/pytest_plugin/options.json").read_bytes())
    named = set(re.findall(r"(?<![\w-])--signet-[a-z][a-z-]*", text))
    assert named - {option["name"] for option in options} == set()
    jobs = {job for line in re.findall(r"nox (?:-f \S+ )?-s ([a-z_ ]+)", text) for job in line.split()[:1]}
    assert {job for job in jobs if f"def {job}(session" not in (ROOT / "noxfile.py").read_text("utf-8")} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_what_an_example_in_python_imports_exists(page: Path) -> None:
    blocks = re.findall(r"(?ms)^```python\n(.*?)^```$", page.read_text("utf-8"))
    imports = [node for block in blocks for node in ast.walk(ast.parse(block)) if isinstance(node, ast.ImportFrom)]
    own = [node for node in imports if node.module is not None and node.module.startswith("signet_")]
    named = [(str(node.module), alias.name) for node in own for alias in node.names]
    assert [each for each in named if not hasattr(importlib.import_module(each[0]), each[1])] == []
