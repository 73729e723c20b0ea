"""`signet-conformance convert`: HAR and flow files to traces, and back.

Examples:
  signet-conformance convert browser.har run.jsonl --origin http://127.0.0.1:3850
  signet-conformance convert capture.flow run.jsonl
  signet-conformance convert run.jsonl run.har

The file name decides the format: .jsonl a trace, .har HAR 1.2, .flow .flows
.mitm .dump mitmproxy; --from and --to override it. One side must be a trace.
Secrets are redacted on the way into a trace. Nothing is overwritten.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import click

from signet_conformance.cli.commands import epilog_of
from signet_conformance.cli.recordings import demand_plain, read_recording
from signet_conformance.errors import UsageError, counted, pip_install, printable
from signet_conformance.outcome.options import words as declared_words
from signet_conformance.reports.command_lines import shell_command
from signet_conformance.trace import Trace
from signet_conformance.trace.recordings import is_recording

if TYPE_CHECKING:
    from signet_recording_proxy.captures import ConversionCounts

TRACE, HAR, FLOWS = "trace", "har", "flows"
_SUFFIXES = {
    ".jsonl": TRACE, ".har": HAR, ".flow": FLOWS, ".flows": FLOWS, ".mitm": FLOWS, ".dump": FLOWS
}  # fmt: skip
_FORMATS = (TRACE, HAR, FLOWS)


@click.command(
    "convert", help="Convert a capture IN to a trace OUT, or a trace IN to a capture OUT.", epilog=epilog_of(__doc__)
)
@click.argument("source", metavar="IN")
@click.argument("target", metavar="OUT")
@click.option("--from", "source_format", type=click.Choice(_FORMATS), help="The format of IN.")
@click.option("--to", "target_format", type=click.Choice(_FORMATS), help="The format of OUT.")
@click.option(
    "--origin",
    "origins",
    multiple=True,
    metavar="URL",
    help="Keep only what was sent to this address, such as the daemon's; repeatable.",
)
def command(
    source: str, target: str, source_format: str | None, target_format: str | None, origins: tuple[str, ...]
) -> int:
    """Convert; the target must not exist."""
    source_format = source_format or _format_of(source, "--from")
    target_format = target_format or _format_of(target, "--to")
    if (source_format == TRACE) == (target_format == TRACE):
        raise UsageError(
            "one side must be a trace, the other a capture", remedy="convert to a .jsonl first, then from it"
        )
    if target_format == TRACE:
        counts, left_out = _into_trace(source, source_format, target, origins)
        print(f"{counted(counts.exchanges, 'exchange')} in {printable(target, 400)}")
        for line in _not_in_trace(counts, left_out):
            print(line)
        print("a capture declares nothing: declare what the connector does, or less can be decided")
        print(f"check it: {shell_command(['signet-conformance', 'check', target])} --agent ID --harness NAME")
    elif origins:
        raise UsageError("a trace holds the requests to one origin", where="--origin", remedy="leave it out")
    else:
        trace = read_recording(source)
        _from_trace(trace, target_format, target)
        print(f"{counted(len(trace.exchanges), 'exchange')} in {printable(target, 400)}")
        for line in _not_in_capture(trace):
            print(line)
    return 0


def _not_in_capture(trace: Trace) -> Iterator[str]:
    """Name the parts that a capture cannot hold, and the options that restore some of them."""
    declared = trace.header.declared
    if trace.marks:
        yield f"left out: {counted(len(trace.marks), 'mark')}, which say what the user did"
    words = declared_words(declared)
    if words:
        yield "left out: the recording's declarations. To judge a trace converted back, add:"
        yield f"  {shell_command(words)}"


def _not_in_trace(counts: ConversionCounts, left_out: Counter[str]) -> Iterator[str]:
    """Name the parts of a capture that are not in the trace."""
    for why, number in left_out.most_common():
        yield f"left out: {counted(number, 'request')} with {why}"
    if counts.others:
        named = ", ".join(f"{printable(name, 80)} ({count})" for name, count in counts.others.most_common(5))
        rest = ", …" if len(counts.others) > 5 else ""
        kept = ", ".join(printable(name, 80) for name in counts.origins)
        count = counted(counts.others.total(), "exchange")
        yield f"left out: {count} with other servers than {kept}: {named}{rest}"
    if counts.uncaptured:
        bodies = "1 body" if counts.uncaptured == 1 else f"{counts.uncaptured} bodies"
        yield f"unknown content: the capture does not hold {bodies}, and an unknown body decides nothing"


def _into_trace(
    source: str, source_format: str, target: str, origins: Sequence[str]
) -> tuple[ConversionCounts, Counter[str]]:
    demand_plain(source)
    # mitmproxy takes a second to import, and only its own files need it.
    from signet_recording_proxy.captures import write_trace
    from signet_recording_proxy.redaction.redactor import Redactor

    if source_format == HAR:
        from signet_recording_proxy.captures import har

        capture = har.read(source)
        captured, left_out = capture.exchanges, capture.left_out
    else:
        captured, left_out = _flows(source).read(source), Counter()
    try:
        return write_trace(target, captured, Redactor({}), origins), left_out
    except UsageError as failure:
        failure.where = failure.where or printable(source, 400)
        raise


def _from_trace(trace: Trace, target_format: str, target: str) -> None:
    from signet_recording_proxy.captures import captured_of, write_new

    if target_format == HAR:
        from signet_recording_proxy.captures import har

        write_new(target, har.write(captured_of(trace)))
    else:
        write_new(target, [_flows(target).write(captured_of(trace))])


def _flows(path: str) -> ModuleType:
    if find_spec("mitmproxy") is None:
        raise UsageError(
            "mitmproxy's flow files need mitmproxy, which is not installed", where=path, remedy=pip_install("mitmproxy")
        )
    from signet_recording_proxy.captures import flows

    return flows


def _format_of(path: str, option: str) -> str:
    # A packed recording can be read, but nothing is packed on the way out.
    packed = option == "--from" and is_recording(path)
    form = TRACE if packed else _SUFFIXES.get(Path(path).suffix.lower())
    if form is None:
        raise UsageError("the name does not say which format it is", where=path, remedy=f"add {option} har")
    return form
