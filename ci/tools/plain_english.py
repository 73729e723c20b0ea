"""Measure how much of the prose uses turns of phrase that must be read twice: `plain_english.py [--list] [--check]`.

The patterns, what to write in place of each, and the bounds are in `plain_english.json`. The unit is a docstring in
the code, a text of four words or more that the program or a requirement says, and a paragraph, list item or table row
in the documentation. `--check` ends with 1 if a share is over its bound.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
CODE = (
    "conformance/signet_conformance",
    "recording_proxy/signet_recording_proxy",
    "reference_harness/signet_reference_harness",
)
DOCS = ("*.md", "docs/**/*.md", "ci/action/*.md", "conformance/npm/*.md", "examples/*.md", "schemas/*.md")
REQUIREMENTS = "schemas/requirements/*.json"
READ = ("title", "subject", "verdict", "undecided", "why", "fix")
"""Members of a requirement that users read."""
FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


class Passage(NamedTuple):
    """One piece of prose and the line on which it begins."""

    path: Path
    line: int
    text: str


def docstrings(path: Path) -> Iterator[Passage]:
    """Yield each string that stands alone as a statement: docstrings, and those below an attribute."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else ():
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                value = statement.value.value
                if isinstance(value, str):
                    yield Passage(path, statement.lineno, " ".join(value.split()))


def messages(path: Path) -> Iterator[Passage]:
    """Yield the texts of four words or more in the code that are no docstrings: what the program may say."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    apart = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            apart.update(node.values)
            parts = (part.value if isinstance(part, ast.Constant) else "X" for part in node.values)
            text = " ".join("".join(map(str, parts)).split())
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in apart:
            text = " ".join(node.value.split())
        else:
            continue
        if text.count(" ") > 2:
            yield Passage(path, node.lineno, text)


def requirements(path: Path) -> Iterator[Passage]:
    """Yield what users read of each requirement of an area; the line is the number of the entry."""
    for number, entry in enumerate(json.loads(path.read_text(encoding="utf-8"))["requirements"], 1):
        yield from (Passage(path, number, entry[name]) for name in READ if entry.get(name))


def paragraphs(path: Path) -> Iterator[Passage]:
    """Yield the paragraphs, list items and table rows of a Markdown page, without its code blocks."""
    text = FENCED.sub(lambda block: "\n" * block[0].count("\n"), path.read_text(encoding="utf-8"))
    begin, lines = 0, list[str]()
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if lines and (not line.strip() or re.match(r"\s*([-*|]|\d+\.) ?", line)):
            yield Passage(path, begin, " ".join(" ".join(lines).split()))
            lines = []
        if line.strip():
            begin = begin if lines else number
            lines.append(line)


def main(arguments: list[str] | None = None) -> int:
    """Print the share of each kind of prose that a pattern matches, and the passages with `--list`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="print each passage that a pattern matches")
    parser.add_argument("--check", action="store_true", help="end with 1 where a share is over its bound")
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout to read")
    options = parser.parse_args(arguments)
    settings = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
    patterns = [(re.compile(entry["pattern"]), entry["say"]) for entry in settings["patterns"]]
    sources = [path for room in CODE for path in sorted((options.root / room).rglob("*.py"))]
    prose = {
        "code": [found for path in sources for found in docstrings(path)],
        "messages": [
            *(found for path in sources for found in messages(path)),
            *(found for path in sorted(options.root.glob(REQUIREMENTS)) for found in requirements(path)),
        ],
        "docs": [found for glob in DOCS for path in sorted(options.root.glob(glob)) for found in paragraphs(path)],
    }
    over = False
    for kind, passages in prose.items():
        matched = [(passage, say) for passage in passages for pattern, say in patterns if pattern.search(passage.text)]
        count = len({passage for passage, _ in matched})
        share, bound = 100 * count / max(1, len(passages)), settings["bounds_percent"][kind]
        over |= share > bound
        print(f"{kind}: {count} of {len(passages)} passages, {share:.1f} %; the bound is {bound} %")
        if options.list:
            for passage, say in matched:
                print(f"{passage.path.relative_to(options.root)}:{passage.line}: {passage.text[:160]}  ->  {say}")
    if over and options.check:
        print("Write the new passages in plain words; `ci/tools/plain_english.py --list` shows them.", file=sys.stderr)
    return int(over and options.check)


if __name__ == "__main__":
    sys.exit(main())
