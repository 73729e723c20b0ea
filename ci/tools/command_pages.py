"""Write docs/commands.md from the program: each command with its options and examples."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from signet_conformance.cli.commands import COMMANDS, commands

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"
_HEAD = """# Commands

Read this to look up a command and its options. `signet-conformance COMMAND --help` shows the same in a terminal.
The shell completes commands, targets and requirements with
`eval "$(_SIGNET_CONFORMANCE_COMPLETE=bash_source signet-conformance)"` in bash; zsh has `zsh_source`, fish has
`fish_source`.

<!-- What follows is written by ci/tools/command_pages.py from the program. -->
"""


def page() -> str:
    """The page, with a section for each command."""
    context = click.Context(commands, info_name="signet-conformance")
    names = commands.list_commands(context)
    parts = [_HEAD, "| command | what it does |", "|---|---|"]
    found = {name: command for name in names if (command := commands.get_command(context, name)) is not None}
    parts += [f"| [`{name}`](#{name}) | {_cell(COMMANDS[name])} |" for name in found]
    for name, command in found.items():
        parts += ["", *_section(command, click.Context(command, info_name=name, parent=context), 2)]
    return "\n".join(parts).rstrip("\n") + "\n"


def _section(command: click.Command, context: click.Context, depth: int) -> Iterator[str]:
    yield f"{'#' * depth} {context.command_path.removeprefix('signet-conformance ')}"
    yield ""
    yield _sentence(_help(command))
    yield ""
    yield "```text"
    yield f"{context.command_path} {' '.join(command.collect_usage_pieces(context))}"
    yield from (f"  {line}" for line in _examples(command))
    yield "```"
    options = list(_options(command, context))
    if options:
        yield ""
        yield "| option | what it does |"
        yield "|---|---|"
        yield from (f"| `{_cell(name)}` | {_cell(text)} |" for name, text in options)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None:
                yield ""
                yield from _section(inner, click.Context(inner, info_name=name, parent=context), depth + 1)


def _options(command: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if isinstance(parameter, click.Option) and "--help" not in parameter.opts and record is not None:
            yield record


def _examples(command: click.Command) -> Iterator[str]:
    lines = (command.epilog or "").replace("\b", "").replace("\\\n", "").splitlines()
    for line in lines:
        if line.strip().startswith("signet-conformance "):
            yield " ".join(line.split())


def _help(command: click.Command) -> str:
    return re.sub(r"\s+", " ", (command.help or "").replace("\b", "")).strip()


def _sentence(text: str) -> str:
    return text.replace("<", "&lt;")


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|").replace("<", "&lt;").strip()


def main(arguments: list[str] | None = None) -> int:
    """Write the page, or check it, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if the page is not current")
    check = parser.parse_args(arguments).check
    text = page()
    if PAGE.is_file() and PAGE.read_text("utf-8") == text:
        return 0
    if check:
        print(f"{PAGE.name} is not what the program says\ntry: python ci/tools/command_pages.py", file=sys.stderr)
        return 1
    PAGE.write_text(text, "utf-8")
    print(f"wrote docs/{PAGE.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
