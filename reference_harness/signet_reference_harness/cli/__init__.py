"""The command `signet-harness`: the table of its commands, lazily loaded, and the report of a failure."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import version
from inspect import getdoc
from typing import Any, Final, NoReturn

import click

from signet_reference_harness.errors import HarnessError, printable

PROGRAM: Final = "signet-harness"
TRACEBACK_VARIABLE: Final = "SIGNET_HARNESS_TRACEBACK"
USAGE: Final = 2
CRASHED: Final = 1
INTERRUPTED: Final = 130
_NO_COMMAND: Any = getattr(click.exceptions, "NoArgsIsHelpError", ())
"""The error of click 8.2 and later for a group that is called without a command; earlier ones raise nothing."""

COMMANDS: Final = {
    "run": ("sessions", "Do one task without a person: prompt in, reply and summary out."),
    "chat": ("sessions", "Talk with an agent in a terminal."),
    "setup": ("setup", "Find the daemon, keys and local models, and propose settings."),
    "adapter": ("servers", "Serve the lifecycle of a harness over HTTP, for one in any language."),
    "bench": ("bench", "Measure memory quality: suites, baselines, comparisons."),
    "llm": ("servers", "Serve a scripted model to programs that expect a vendor's."),
}
"""By command name: the module in which it has this name, and its line in the overview."""


class DocumentedCommand(click.Command):
    """A command whose help ends with the docstring of its function, from the second paragraph on, as it is written."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        _, *paragraphs = (getdoc(self.callback) or "").split("\n\n")
        self.epilog = "\n\n".join(f"\b\n{paragraph}" for paragraph in paragraphs)


class LazyGroup(click.Group):
    """Loads a command's module only when it is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  the base class names it
        """The names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  the base class names it
        """The command of a name, or None."""
        if cmd_name not in COMMANDS:
            return None
        command = getattr(import_module(f"{__name__}.{COMMANDS[cmd_name][0]}"), cmd_name)
        return command if isinstance(command, click.Command) else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the first word names; the refusal of an unknown one names the nearest."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            near = get_close_matches(args[0], COMMANDS, 1)
            remedy = f"{PROGRAM} {near[0]} --help" if near else f"{PROGRAM} --help"
            raise HarnessError(f"unknown command {args[0][:60]!r}", remedy=remedy)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  the base class names it
        """Write the table; no command's module is loaded for that."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in COMMANDS.items()])


@click.group(
    cls=LazyGroup,
    help="The reference harness: an agent's turn on the Signet daemon, and a scripted model to try it with.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(version("signet-conformance"), message="%(prog)s %(version)s")
def commands() -> None:
    """Do nothing: its commands do the work."""


def main() -> NoReturn:
    """Run `signet-harness` with the arguments of this process and exit with its status."""
    status = guarded(lambda: commands.main(prog_name=PROGRAM, standalone_mode=False))
    try:
        if sys.stdout is not None:  # None if the caller closed it (`>&-`)
            sys.stdout.flush()
    except OSError:
        # The terminal was closed. Without this, the interpreter would exit with a status of its own.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(status)


def guarded(run: Callable[[], Any]) -> int:
    """Run `run()` and return the exit status. A failure is reported on standard error."""
    try:
        result = run()
    except HarnessError as failure:
        return report_failure(failure.message, failure.remedy)
    except _NO_COMMAND as no_command:
        # Without a command, only the help is printed.
        print(no_command.format_message(), file=sys.stderr)
        return USAGE
    except click.UsageError as misuse:
        path = misuse.ctx.command_path if misuse.ctx is not None else PROGRAM
        return report_failure(misuse.format_message(), f"{path} --help")
    except click.ClickException as failure:
        return report_failure(failure.format_message(), None)
    except (KeyboardInterrupt, click.Abort) as ended:
        # click also turns EOFError into Abort, but Python raises EOFError for a module's file that was cut off.
        if not isinstance(ended.__cause__, EOFError):
            return INTERRUPTED
        crash: Exception = ended.__cause__
    except Exception as failure:  # noqa: BLE001 - it is reported
        if isinstance(failure, OSError) and failure.filename is not None:
            # Such as a name that is too long, which the first access reports.
            return report_failure(f"{failure.filename}: {failure.strerror}", "check the path and its permissions")
        crash = failure
    else:
        return result if isinstance(result, int) else 0
    if os.environ.get(TRACEBACK_VARIABLE):
        raise crash
    summary = f"{type(crash).__name__}: {crash}"[:300]
    report_failure(f"the harness failed: {summary}; please report it", f"{TRACEBACK_VARIABLE}=1 shows the traceback")
    return CRASHED


def report_failure(message: str, remedy: str | None = None) -> int:
    """Report a failure on standard error, and return the exit status of wrong usage."""
    print(f"error: {printable(message)}", file=sys.stderr)
    if remedy:
        print(f"try: {printable(remedy)}", file=sys.stderr)
    return USAGE
