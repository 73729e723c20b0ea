"""The table of commands, and what every command shares: lazy loading and error messages."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn, TextIO

import click

from signet_conformance import __version__
from signet_conformance.errors import (
    EXIT_INTERRUPTED,
    MORE_FILES,
    KitError,
    SignetConformanceError,
    UsageError,
    printable,
)

TRACEBACK_VARIABLE = "SIGNET_CONFORMANCE_TRACEBACK"
BROKEN_PIPE_STATUS = 141
"""Exit status that a shell reports for a program ended by a closed pipe: 128 and the number of SIGPIPE."""
_USER_ERRORS = {
    errno.EACCES, errno.ENOENT, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR, errno.ENOSPC,
    errno.EDQUOT, errno.EMFILE, errno.ENFILE,
}  # fmt: skip
"""Errors of a path, a disk or a limit: the user can fix them, and the kit has no defect."""
PROGRAM = "signet-conformance"
_NO_COMMAND: Any = getattr(click.exceptions, "NoArgsIsHelpError", ())
"""What click 8.2 and later raise for a group that is called without a command; none before."""

_TABLE = json.loads(Path(__file__).with_suffix(".json").read_bytes())
COMMANDS: Mapping[str, str] = _TABLE["commands"]
"""Command name to its line in the overview. Its module is loaded when it runs: `check` must start fast."""
SECTIONS: Mapping[str, Sequence[str]] = _TABLE["sections"]
"""Heading of the overview to the commands below it."""
WHICH = """Which command: diff compares what two recordings send; compare, what is new,
fixed or still broken between two runs; trend, many runs over time; matrix,
which requirements many connectors meet."""
"""The text below the help of these four commands."""


def epilog_of(doc: str | None, *more: str) -> str:
    """The text below a command's options: the docstring of its module from the examples on, `more` after these.

    click keeps the line ends of a paragraph with an indented line, and fits any other to the terminal.
    """
    _, _, rest = (doc or "").partition("\n\nExamples:\n")
    examples, *others = map(_as_click_shows, f"Examples:\n{rest}".strip().split("\n\n"))
    return "\n\n".join((examples, *more, *others)) + "\n"


def _as_click_shows(paragraph: str) -> str:
    return f"\b\n{paragraph}" if "\n " in paragraph else paragraph


def command_named(name: str) -> click.Command:
    """Import the module of a command in the table, and return the command."""
    command: click.Command = import_module(f"signet_conformance.cli.{name.replace('-', '_')}").command
    return command


class CommandTable(click.Group):
    """Finds a command in the module of its name, and turns every failure into a message and an exit status."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  the base class names it
        """The names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  the base class names it
        """The command of a name, or None."""
        return command_named(cmd_name) if cmd_name in COMMANDS else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the first word names; an unknown one is answered with the nearest."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            near = get_close_matches(args[0], COMMANDS, 1)
            raise UsageError(
                f"unknown command {printable(args[0], 60)!r}",
                remedy=f"signet-conformance {near[0]} --help" if near else "signet-conformance --help",
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  the base class names it
        """Write the table; no command's module is loaded for that."""
        widest = max(map(len, COMMANDS))
        for heading, names in SECTIONS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(widest), COMMANDS[name]) for name in names])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; end quietly if the reader of stdout leaves early."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            _discard(sys.stdout)
            return BROKEN_PIPE_STATUS
        return result

    def main(self, args: Sequence[str] | None = None, **extra: Any) -> NoReturn:  # type: ignore[override]  # never standalone
        """Run a command line and exit with its status."""
        run = super().main
        words = sys.argv[1:] if args is None else args
        named = f"{PROGRAM} {words[0]}" if words and words[0] in COMMANDS else PROGRAM
        sys.exit(guarded(lambda: run(args, **{**extra, "prog_name": PROGRAM, "standalone_mode": False}), named))


def refuse_empty(_context: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """Raise UsageError for an empty value, which an unset variable of a shell leaves: it would be read as `.`."""
    if value == "" or (isinstance(value, tuple) and "" in value):
        where = parameter.human_readable_name if isinstance(parameter, click.Argument) else parameter.opts[0]
        raise UsageError("is empty", where=where, remedy="give it a value, or leave it out")
    return value


def guarded(run: Callable[[], Any], command: str = PROGRAM) -> int:
    """Return the exit status of `run()`. Report a failure on stderr, with the help of `command`; return its status."""
    try:
        result = run()
    except SignetConformanceError as failure:
        tell(failure)
        return failure.exit_status
    except _NO_COMMAND as help_shown:
        # The message is the group's help, which `tell` would put behind `error:`.
        _write(help_shown.format_message())
        return UsageError.exit_status
    except click.UsageError as misuse:
        # click gives no context for a misspelt option of the program; a hidden command's help is its group's.
        context = misuse.ctx if misuse.ctx is None or not misuse.ctx.command.hidden else misuse.ctx.parent
        path = command if context is None else context.command_path
        tell(UsageError(misuse.format_message(), remedy=f"{path} --help"))
        return UsageError.exit_status
    except click.ClickException as failure:
        tell(UsageError(failure.format_message()))
        return UsageError.exit_status
    except (KeyboardInterrupt, click.Abort) as ended:
        # To click an EOFError is an interruption too, and Python raises it for a module's file that was cut off.
        if not isinstance(ended.__cause__, EOFError):
            _write("interrupted")
            return EXIT_INTERRUPTED
        crash: Exception = ended.__cause__
    except OSError as failure:
        nameless = failure.errno == errno.ENOENT and failure.filename is None
        if nameless and _has_no_folder():
            tell(UsageError("the current folder no longer exists", remedy="change to one that does, such as: cd ~"))
            return UsageError.exit_status
        if failure.errno not in _USER_ERRORS or nameless:
            crash = failure
        elif os.environ.get(TRACEBACK_VARIABLE):
            raise
        else:
            _tell_refusal(failure)
            return UsageError.exit_status
    except MemoryError:
        tell(KitError("there is not enough memory for it", remedy="judge fewer recordings at once, or --workers 1"))
        return KitError.exit_status
    except Exception as failure:  # noqa: BLE001 - it is reported
        crash = failure
    else:
        return result if isinstance(result, int) else 0
    if os.environ.get(TRACEBACK_VARIABLE):
        raise crash
    _tell_crash(crash)
    return KitError.exit_status


def _has_no_folder() -> bool:
    """Whether the folder in which the program runs was deleted."""
    try:
        Path.cwd()
    except FileNotFoundError:
        return True
    return False


def _discard(stream: TextIO) -> None:
    """Discard the buffer of a stream, because the interpreter flushes it again at its end and would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _tell_refusal(failure: OSError) -> None:
    if failure.errno in (errno.EMFILE, errno.ENFILE):
        tell(UsageError(f"no file can be opened: {failure.strerror}", remedy=MORE_FILES))
        return
    if failure.filename is None:
        with contextlib.suppress(OSError):
            _discard(sys.stdout)
        tell(UsageError(f"cannot be written: {failure.strerror}", remedy="make room there, or write it elsewhere"))
        return
    where = os.fsdecode(failure.filename) if isinstance(failure.filename, bytes) else str(failure.filename)
    tell(UsageError(f"cannot be used: {failure.strerror}", where=where, remedy="check the path and its permissions"))


def _tell_crash(crash: Exception) -> None:
    summary = printable(f"{type(crash).__name__}: {crash}", 300)
    _write(
        f"error: the kit failed: {summary}; please report it\n"
        f"try: the same command with {TRACEBACK_VARIABLE}=1 in the environment shows the traceback"
    )


def tell(failure: SignetConformanceError, stream: TextIO | None = None) -> None:
    """Write `error: WHERE: MESSAGE` and `try: REMEDY` to stderr, without control characters."""
    where = f"{failure.where}: " if failure.where else ""
    remedy = f"\ntry: {_lines(failure.remedy)}" if failure.remedy else ""
    _write(f"error: {where}{_lines(failure.message)}{remedy}", stream)


def _write(text: str, stream: TextIO | None = None) -> None:
    """Write a message to stderr. If it cannot be written, the exit status still shows the failure."""
    out = stream or sys.stderr
    try:
        print(text, file=out, flush=True)
    except OSError:
        with contextlib.suppress(OSError):
            _discard(out)


def _lines(text: str) -> str:
    return "\n".join(printable(line, 2000) for line in text.split("\n"))


EXAMPLES = """\b
Examples:
  signet-conformance record --upstream http://127.0.0.1:3850 --out run.jsonl
  signet-conformance check run.jsonl
  signet-conformance explain SIG-AGENT-002

\b
Exit status: 0 conforming, 1 a requirement is breached, 2 wrong usage or
unreadable input, 3 nothing was tested, 4 not everything could be judged.
"""


@click.group(
    cls=CommandTable,
    help="Prove that a connector speaks Signet's daemon contract: record its traffic, check it, see what broke.",
    epilog=EXAMPLES,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, message="%(prog)s %(version)s")
def commands() -> None:
    """The group itself does nothing."""


def main() -> NoReturn:
    """Run `signet-conformance` with the arguments of this process and exit."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            # The caller closed it (`>&-`): output is dropped, and the exit status is that of the command.
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115 - open to the end
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character gets its escape, not a crash.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        commands.main()
    except SystemExit as leaving:
        if isinstance(leaving.code, int) and sys.gettrace() is None and not _has_exit_work():
            _end_watchdog()
            # Freeing the millions of objects of a large trace would only keep the user waiting.
            os._exit(leaving.code)
        raise


def _end_watchdog() -> None:
    """Wait for the watchdog of a command that started processes; others have not even imported it."""
    watchdog = sys.modules.get("signet_conformance.children.watchdog")
    if watchdog is not None:
        watchdog.end()


def _has_exit_work() -> bool:
    """Whether something must happen while the interpreter ends: threads to join, streams that cannot be flushed."""
    if threading.active_count() > 1:
        return True
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        return True
    return False
