"""`signet-conformance report-bug`: the smallest recording that shows a verdict, made safe to hand on.

Examples:
  signet-conformance report-bug signet-report -k SIG-AGENT-002
  signet-conformance report-bug signet-report --out bug.zip --yes

Secrets, the home folder and the user's name are removed once more. What people and
models said stays in it: it is shown first, and nothing is written before you agree.
"""

from __future__ import annotations

import io
import json
import platform
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from signet_conformance import __version__
from signet_conformance.cli.commands import epilog_of
from signet_conformance.cli.report_files import report_path
from signet_conformance.cli.shared_options import matching
from signet_conformance.errors import UsageError, counted, os_errors, printable
from signet_conformance.files import create_file
from signet_conformance.files.json_values import texts_within
from signet_conformance.finding import BREACHES
from signet_conformance.outcome.known_failures import user_name
from signet_conformance.reports.report_document import Report, ReportTrace, read_report
from signet_conformance.targets.settings import FILE as SETTINGS
from signet_conformance.trace.recordings import open_recording

_MOST_TEXTS = 30
_LONG_TEXT = 40
_MOST_BYTES = 64 * 1024 * 1024


@click.command(
    "report-bug",
    help="Pack the smallest recording of a run's REPORT that shows a verdict, with versions, seed and settings.",
    epilog=epilog_of(__doc__),
)
@click.argument("report", metavar="REPORT")
@click.option("-k", "--only", metavar="REQUIREMENT", help="The verdict to show (default: the worst).")
@click.option("--out", default="signet-bug.zip", metavar="FILE", show_default=True, help="A new file.")
@click.option("--settings", metavar="FILE", help=f"The settings to pack (default: {SETTINGS} of this folder, if any).")
@click.option("--yes", is_flag=True, help="Write without asking.")
def command(*, report: str, only: str | None, out: str, settings: str | None, yes: bool) -> int:
    """Show what would be packed, ask, and write it."""
    if Path(out).exists():
        raise UsageError("is there already", where=out, remedy="name a new file with --out")
    file = report_path(report)
    document = read_report(file)
    requirement = _requirement(document, only)
    verdict = document.together[requirement].verdict
    trace, recording = _smallest(document, Path(file).parent, requirement)
    parts = _parts(document, trace, requirement, recording, settings)
    for line in _describe_parts(parts, requirement, verdict.value):
        print(line)
    if not yes and not _agrees(out):
        print("nothing was written")
        return 0
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as writer:
        for name, text in parts.items():
            writer.writestr(name, text)
    with os_errors("cannot be written", where=out, remedy="name a new file with --out"):
        create_file(Path(out), [archive.getvalue()])
    print(f"wrote {printable(out, 400)}; add it to the issue")
    return 0


def _agrees(out: str) -> bool:
    if not sys.stdin.isatty():
        raise UsageError(
            "cannot ask before writing: standard input is not a terminal",
            where=out,
            remedy="read what is listed above, then add --yes",
        )
    return click.confirm(f"Write {printable(out, 400)}?")


def _requirement(report: Report, only: str | None) -> str:
    if only is not None:
        return matching(only, list(report.together))[0]
    for verdict in BREACHES:
        for name, row in report.together.items():
            if row.verdict == verdict:
                return name
    raise UsageError("the report has no breach", where="REPORT", remedy="name a requirement with -k")


def _smallest(report: Report, folder: Path, requirement: str) -> tuple[ReportTrace, Path]:
    """Of the traces with the run's verdict on the requirement, the one with the smallest recording."""
    wanted = report.together[requirement].verdict
    candidates = []
    for trace in report.traces:
        recording = folder / Path(trace.file).name
        row = trace.verdicts.get(requirement)
        if row is not None and row.verdict == wanted and recording.is_file():
            candidates.append((recording.stat().st_size, trace.file, trace, recording))
    if not candidates:
        raise UsageError(
            f"no recording beside the report shows {requirement} as {wanted.value}",
            where=folder,
            remedy="drive it again with --report DIR, which keeps the recordings",
        )
    return min(candidates, key=lambda each: each[:2])[2:]


def _parts(
    report: Report, trace: ReportTrace, requirement: str, recording: Path, settings: str | None
) -> Mapping[str, str]:
    from signet_recording_proxy.redaction.redactor import Redactor

    redactor = Redactor({})
    with open_recording(str(recording), beyond=_MOST_BYTES) as opened:
        lines = opened.stream.read(_MOST_BYTES).decode("utf-8", "replace").split("\n")
    run = report.run
    about = {
        "kit": report.kit,
        "this kit": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "contract": report.contract,
        "requirement": requirement,
        "verdict": trace.verdicts[requirement].model_dump(mode="json", exclude_none=True),
        "scenario": trace.scenario,
        "target": trace.target,
        "seed": None if run is None else run.seed,
        "connector": None if run is None else run.connector,
    }
    parts = {
        "about.json": _escape_surrogates(json.dumps(redactor.document(about), indent=2, ensure_ascii=False)) + "\n",
        "recording.jsonl": "".join(f"{_clean(line, redactor)}\n" for line in lines if line.strip()),
    }
    file = Path(settings or SETTINGS)
    if settings is not None and not file.is_file():
        raise UsageError("is no file", where=settings, remedy="name the settings, or leave it out")
    if file.is_file():
        parts["settings.toml"] = redactor.text(file.read_text("utf-8", "replace"))
    return {name: _anonymous(text) for name, text in parts.items()}


def _clean(line: str, redactor: Any) -> str:
    try:
        value = json.loads(line)
    except ValueError:
        return str(redactor.text(line))
    return _escape_surrogates(json.dumps(redactor.document(value), ensure_ascii=False))


def _escape_surrogates(text: str) -> str:
    """JSON with each lone surrogate escaped, because no file can hold one as it is."""
    return text.encode("utf-8", "backslashreplace").decode()


def _anonymous(text: str) -> str:
    """`text` without the home folder and the name of the user who runs this."""
    home = str(Path.home())
    text = text.replace(home, "~") if len(home) > 1 else text
    user = user_name()
    return text.replace(f"/{user}/", "/user/") if len(user) > 2 else text


def _describe_parts(parts: Mapping[str, str], requirement: str, verdict: str) -> Iterator[str]:
    yield f"{verdict} {requirement}"
    for name, text in parts.items():
        yield f"  {name:<16} {len(text.encode()):>9,} bytes, {counted(text.count(chr(10)), 'line')}"
    for name, text in parts.items():
        if name != "recording.jsonl":
            yield f"\n{name}:"
            yield from (f"  {printable(line, 200)}" for line in text.splitlines())
    texts = list(dict.fromkeys(_texts(parts["recording.jsonl"])))
    yield f"\nrecording.jsonl holds {counted(len(texts), 'longer text')}:"
    yield from (f"  {printable(text, 100)}" for text in texts[:_MOST_TEXTS])
    if len(texts) > _MOST_TEXTS:
        yield f"  and {len(texts) - _MOST_TEXTS} more"


def _texts(recording: str) -> Iterator[str]:
    for line in recording.split("\n")[:-1]:
        try:
            value = json.loads(line)
        except ValueError:
            yield line
        else:
            yield from (text for text in texts_within(value, names=False) if len(text) >= _LONG_TEXT)
