"""`signet-conformance face`: compares a face of the kit with recordings of the real program.

Examples:
  signet-conformance run claude-code --harness real --report real
  signet-conformance face check claude-code real
  signet-conformance face update claude-code real --output claude-code-2.1.json

A difference is a defect of the face, never of the connector. Exit status of
check: 0 no difference, 1 a difference, 2 wrong usage, 3 nothing to compare.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from signet_conformance.cli.commands import epilog_of
from signet_conformance.cli.output import report_stream
from signet_conformance.cli.recordings import read_recording, trace_files
from signet_conformance.drivers.played_face import play_steps
from signet_conformance.errors import NothingTestedError, UsageError, counted, printable
from signet_conformance.reports.terminal import Paragraph, print_drawn
from signet_conformance.targets import drift
from signet_conformance.targets.face import HostFace, face_of_harness
from signet_conformance.targets.model_drift import is_played, model_drifts, turns_compared
from signet_conformance.trace import Trace

DRIFTED = 1


@click.group("face", help="Compare a face of the kit with what the real program did.", epilog=epilog_of(__doc__))
def command() -> None:
    """The faces."""


@command.command("check", help="List where the face NAME differs from the program. RECORDING: of --harness real.")
@click.argument("name")
@click.argument("recordings", nargs=-1, required=True, metavar="RECORDING...")
def check(name: str, recordings: tuple[str, ...]) -> int:
    """Print the differences, and exit with 1 if there are any."""
    face, release, traces, played_runs = _read_recordings(name, recordings)
    at_model = dict.fromkeys(each.words for each in model_drifts(traces, played_runs))
    differences = [*_differences(face, traces), *at_model]
    observed = "events of a plugin" if face.data.tells_plugins else "runs of hooks"
    lines = [f"{face.name} beside {face.data.harness} {release}: {len(drift.hooks_observed(traces))} {observed}"]
    if unobserved := drift.not_compared(face.data, traces):
        lines.append(f"not compared, because no run shows them: {', '.join(unobserved)}")
    if unplayed := drift.unplayed(face.data, traces):
        lines.append(f"not compared, because the face does not play them: {', '.join(unplayed)}")
    if compared := turns_compared(traces, played_runs):
        lines.append(f"requests to the model compared in {counted(compared, 'turn')}")
    elif any(trace.model is not None for trace in traces):
        lacks = (
            "no scenario was performed in both; add --every-scenario to the real run"
            if played_runs
            else "name the recordings of a played run of the scenarios, too"
        )
        lines.append(f"requests to the model not compared: {lacks}")
    paragraphs = [Paragraph(printable(line, 600), 0, 2) for line in lines]
    paragraphs += [Paragraph(f"drift: {printable(line, 600)}", 0, 2) for line in differences]
    print_drawn(paragraphs)
    print(counted(len(differences), "difference") if differences else "no drift")
    return DRIFTED if differences else 0


@command.command("update", help="Rewrite the face NAME with the members that each RECORDING shows.")
@click.argument("name")
@click.argument("recordings", nargs=-1, required=True, metavar="RECORDING...")
@click.option("--output", "-o", required=True, metavar="FILE", help="Where it is written.")
@click.option("--force", is_flag=True, help="Let it replace a file.")
def update(name: str, recordings: tuple[str, ...], output: str, force: bool) -> int:
    """Write the face, and print where it still differs."""
    face, release, traces, _ = _read_recordings(name, recordings)
    data = json.loads(face.path.read_bytes())
    if not face.data.tells_plugins:
        document = drift.update_face(data, traces, release)
    else:
        document = drift.update_plugin_face(data, traces, [play_steps(face, trace) for trace in traces], release)
    with report_stream(output, force) as stream:
        stream.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    remaining = _differences(HostFace(Path(output).absolute(), type(face.data).model_validate(document)), traces)
    by_hand = (f"to change by hand: {printable(line, 600)}" for line in remaining)
    print(f"wrote {printable(output, 400)}", *by_hand, sep="\n")
    return 0


def _differences(face: HostFace, traces: Sequence[Trace]) -> Sequence[str]:
    """The differences between the face and the program, each once."""
    if not face.data.tells_plugins:
        differences = drift.drifts(face.data, traces)
    else:
        differences = drift.plugin_drifts(face.data, traces, [play_steps(face, trace) for trace in traces])
    return list(dict.fromkeys(each.words for each in differences))


def _read_recordings(name: str, recordings: Sequence[str]) -> tuple[HostFace, str, Sequence[Trace], Sequence[Trace]]:
    """The face, the program's release, the recordings of the program, and those of played runs."""
    files = trace_files(recordings)
    if files.complaints:
        raise files.complaints[0]
    all_traces = [read_recording(file) for file in files.files]
    traces = [trace for trace in all_traces if not is_played(trace)]
    launched = drift.recorded_release(traces)
    if launched is None or not drift.hooks_observed(traces):
        why = "no program is named" if launched is None else f"{launched[0]} ran no hook of the connector's"
        raise NothingTestedError(
            f"{why} in {len(traces)} recordings: there is nothing to compare",
            where=", ".join(map(str, recordings)),
            remedy="signet-conformance run TARGET --harness real --report DIR; not every program tells its plugins",
        )
    host, release = launched
    face = face_of_harness(name, release)
    if face.data.harness != host:
        raise UsageError(
            f"{face.name} plays {face.data.harness}, and these are recordings of {printable(host, 60)}",
            where=Path(recordings[0]),
            remedy=f"signet-conformance face check {printable(host, 60)} {printable(recordings[0], 200)}",
        )
    played_runs = [trace for trace in all_traces if is_played(trace)]
    played = drift.recorded_release(played_runs)
    # An author of a face for this release names it by this release in the played run.
    if played is not None and played[1] not in (face.data.version, release):
        raise UsageError(
            f"{host} {printable(release, 60)} is compared with {face.name}, and the played runs are of "
            f"{printable(' '.join(played), 100)}",
            where=", ".join(map(str, recordings)),
            remedy=f"signet-conformance run TARGET --face {face.path.stem} --report played",
        )
    return face, release, traces, played_runs
