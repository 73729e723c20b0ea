"""Write docs/broken-connectors.md: the output of `run` for ten connectors of the kill matrix, each with one mistake.

The tool drives all ten connectors, or those named. The exit status is 1 if an output is too long to be read in one go,
does not begin with its mistake, or, with `--check`, differs from the page.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from pathlib import Path

from signet_conformance import targets
from signet_conformance.selftest.mutants import mutant

PAGE = Path(__file__).parents[2] / "docs" / "broken-connectors.md"
BROKEN = (
    "never-starts",
    "never-ends",
    "ends-twice",
    "prompts-without-key",
    "sends-a-native-agent-id",
    "names-no-agent",
    "authorizes-by-another-scheme",
    "gives-up-when-refused",
    "waits-for-ever",
    "throws-a-turn-away",
)
WIDTH, MOST_LINES = 80, 60
_HEAD = """# Ten broken connectors

Read this to see what typical mistakes look like. `signet-conformance run` was run on ten connectors with one mistake
each: the reference connector, broken in one place by [the self-test](self-test.md). The first block of each output
shows the mistake. An output has at most {most} lines in a terminal of {width} columns.
[Read a failure](read-a-failure.md) explains each line.

<!-- What follows is written by ci/tools/broken_connectors.py from runs of the scripted scenarios. -->
"""


def settings() -> str:
    """The settings of the ten connectors, with the declarations of the reference."""
    declared = targets.load("reference").declared.to_json()
    members = "\n".join(f"{name} = {_toml(value)}" for name, value in declared.items())
    command = '"{python}", "-P", "-m", "signet_conformance.selftest.harness", "--mutant"'
    return "\n".join(
        f'[targets.{name}]\ncommand = [{command}, "{name}"]\nprocesses = "agent"\n{members}\n' for name in BROKEN
    )


def _toml(value: object) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name} = {json.dumps(each)}" for name, each in value.items()) + "}"
    return json.dumps(value)


def output_of(name: str, folder: Path) -> Sequence[str]:
    """Drive one connector as a user would, and return the lines of the terminal."""
    command = ["-m", "signet_conformance.cli", "run", name, "--scenarios", "0", "--report", f"reports/{name}"]
    environment = {**os.environ, "COLUMNS": str(WIDTH), "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode not in (0, 1):
        sys.exit(f"{name}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return _number_ids(done.stdout.replace(f"{folder}/", "")).rstrip("\n").split("\n")


_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SHORT_KEY = re.compile(r"[0-9a-f]{8}…[0-9a-f]{4}")


def _number_ids(text: str) -> str:
    """Replace the ids, which differ in each run, by numbers of the same width."""
    text = _number_matches(text, _UUID, "{:08x}-0000-4000-8000-000000000000")
    return _number_matches(text, _SHORT_KEY, "{:08x}…0000")


def _number_matches(text: str, pattern: re.Pattern[str], template: str) -> str:
    known: dict[str, str] = {}
    for found in pattern.finditer(text):
        known.setdefault(found[0], template.format(len(known) + 1))
    return pattern.sub(lambda found: known[found[0]], text)


def lines_in_terminal(lines: Sequence[str]) -> int:
    """How many lines the output takes in a terminal, which wraps wide lines."""
    return sum(max(1, ceil(len(line) / WIDTH)) for line in lines)


def complaints(name: str, lines: Sequence[str]) -> Iterator[str]:
    """Yield the reasons why a reader does not see the mistake at once."""
    taken = lines_in_terminal(lines)
    if taken > MOST_LINES:
        yield f"{name}: {taken} lines at {WIDTH} columns, of at most {MOST_LINES}"
    first = "\n".join(lines).split("\n\n")[0]
    if mutant(name).breaks not in first:
        yield f"{name}: its first block does not name {mutant(name).breaks}"


def page(outputs: Mapping[str, Sequence[str]]) -> str:
    """The page that shows the outputs of these connectors."""
    parts = [_HEAD.format(most=MOST_LINES, width=WIDTH)]
    for name, lines in outputs.items():
        parts += [
            f"## It {mutant(name).title}",
            "",
            f"{lines_in_terminal(lines)} lines:",
            "",
            "```text",
            *lines,
            "```",
            "",
        ]
    return "\n".join(parts).rstrip("\n") + "\n"


def outputs_on(text: str) -> Mapping[str, Sequence[str]]:
    """The outputs that a page shows, by connector."""
    by_title = {mutant(name).title: name for name in BROKEN}
    shown = re.findall(r"^## It ([^\n]+)\n\n\d+ lines:\n\n```text\n(.*?)\n```$", text, re.DOTALL | re.MULTILINE)
    return {by_title[title]: lines.split("\n") for title, lines in shown if title in by_title}


def main(arguments: Sequence[str] | None = None) -> int:
    """Drive the connectors, write or check the page, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*BROKEN, []], metavar="NAME")
    parser.add_argument("--check", action="store_true", help="only compare the outputs with the page")
    options = parser.parse_args(arguments)
    before = outputs_on(PAGE.read_text("utf-8")) if PAGE.is_file() else {}
    outputs, wrong = dict(before), list[str]()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder).resolve()
        (place / "signet-conformance.toml").write_text(settings(), "utf-8")
        for name in options.names or BROKEN:
            outputs[name] = output_of(name, place)
            print(f"{name}: {lines_in_terminal(outputs[name])} lines: {outputs[name][0]}", flush=True)
            wrong += complaints(name, outputs[name])
            if options.check and outputs[name] != before.get(name):
                wrong.append(f"{name}: the page shows another output")
    if not options.check:
        PAGE.write_text(page({name: outputs[name] for name in BROKEN if name in outputs}), "utf-8")
    print(*wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
