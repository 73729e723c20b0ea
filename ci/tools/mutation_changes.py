"""The changes that cosmic-ray makes to a module, each with its place."""

from __future__ import annotations
import __future__

import ast
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from types import CodeType

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import MutationVisitor
from cosmic_ray.plugins import get_operator, operator_names

Position = tuple[int, int]
"""Line, from 1, and column, from 0."""


@dataclass(frozen=True)
class Change:
    """A change of one place: an operator of cosmic-ray, and the number of its occurrence in a top-level statement.

    `first` and `last` are the lines of this statement. Only the statement is parsed for each change.
    """

    module: Path
    first: int
    last: int
    operator: str
    occurrence: int
    position: Position

    @cached_property
    def statement(self) -> str:
        """The top-level statement with the change made."""
        visitor = MutationVisitor(self.occurrence, get_operator(self.operator)())
        # Parsing it again for each change would take ten times as long.
        changed = visitor.walk(pickle.loads(_pickled(self.module, self.first, self.last)))  # noqa: S301 - bytes that this process pickled itself
        if not visitor.mutation_applied:
            raise ValueError(f"{self.module}: {self.operator} has no occurrence {self.occurrence}")
        return str(changed.get_code())

    @property
    def original(self) -> str:
        """The top-level statement without the change."""
        return "".join(_lines(self.module)[self.first - 1 : self.last])

    @property
    def source(self) -> str:
        """The whole module with the change made."""
        lines = _lines(self.module)
        return "".join([*lines[: self.first - 1], self.statement, *lines[self.last :]])

    @property
    def compiled_statement(self) -> CodeType:
        """The code of the changed statement alone, with its line numbers in the module."""
        source = "\n" * (self.first - 1) + self.statement
        flags = __future__.annotations.compiler_flag
        code: CodeType = compile(source, str(self.module), "exec", flags, dont_inherit=True)
        return code

    @property
    def lines(self) -> tuple[str, str]:
        """The lines that differ, before and after the change, each group joined by blanks."""
        before, after = self.module.read_text("utf-8").splitlines(), self.source.splitlines()
        while before and after and before[-1] == after[-1]:
            before.pop()
            after.pop()
        pairs = enumerate(zip(before, after, strict=False))
        first = next((i for i, (old, new) in pairs if old != new), min(len(before), len(after)))
        old, new = (" ".join(line.strip() for line in lines[first:]) for lines in (before, after))
        return old, new


def changes_of(module: Path, before: str | None = None) -> Iterator[Change]:
    """Yield every change of a module, except those of annotations, which are never evaluated.

    With `before`, an earlier text of the module, yield only changes of top-level statements that are not in it.
    """
    known = set() if before is None else {text for _, _, text in _statements(before)}
    source = module.read_text("utf-8")
    tree = ast.parse(source)
    annotations = [
        ((note.lineno, note.col_offset), (note.end_lineno or note.lineno, note.end_col_offset or 0))
        for node in ast.walk(tree)
        for note in (getattr(node, "annotation", None), getattr(node, "returns", None))
        if isinstance(note, ast.expr)
    ]
    operators = [(name, get_operator(name)) for name in operator_names()]
    for first, last, text in _statements(source):
        if text in known:
            continue
        nodes = list(ast_nodes(get_ast(text)))
        for name, operator in operators:
            if operator.arguments():
                continue
            starts = (start for node in nodes for start, _ in operator().mutation_positions(node))
            for occurrence, (line, column) in enumerate(starts):
                position = first + line - 1, column
                if not any(low <= position < high for low, high in annotations):
                    yield Change(module, first, last, name, occurrence, position)


def _statements(source: str) -> Iterator[tuple[int, int, str]]:
    """The statements of a module's top level: first line, last line, text."""
    lines = source.splitlines(keepends=True)
    for statement in ast.parse(source).body:
        first, last = _first_line(statement), statement.end_lineno or statement.lineno
        yield first, last, "".join(lines[first - 1 : last])


@cache
def _pickled(module: Path, first: int, last: int) -> bytes:
    return pickle.dumps(get_ast("".join(_lines(module)[first - 1 : last])))


@cache
def _lines(module: Path) -> Sequence[str]:
    return module.read_text("utf-8").splitlines(keepends=True)


def _first_line(statement: ast.stmt) -> int:
    decorators: Sequence[ast.expr] = getattr(statement, "decorator_list", ())
    return min([statement.lineno, *(decorator.lineno for decorator in decorators)])


@cache
def _parsed(module: Path) -> ast.Module:
    return ast.parse(module.read_text("utf-8"))


def statement_lines(module: Path, position: Position) -> range | None:
    """The lines of the statement at a position, without the body of a loop or condition.

    None if the statement is executed only while the module is imported.
    """
    inner: ast.stmt | None = None
    in_function = False
    todo: list[tuple[ast.AST, bool]] = [(_parsed(module), False)]
    while todo:
        node, within = todo.pop()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                first = _first_line(child)
                if (first, 0) <= position < (child.end_lineno or first, child.end_col_offset or 0):
                    inner, in_function = child, within
                    todo.append((child, within or isinstance(child, ast.FunctionDef)))
            elif isinstance(child, ast.ExceptHandler | ast.match_case):
                todo.append((child, within))
    if inner is None or not in_function:
        return None
    body = getattr(inner, "body", None)
    last = (inner.end_lineno or inner.lineno) if not body else max(inner.lineno, body[0].lineno - 1)
    return range(inner.lineno, last + 1)
