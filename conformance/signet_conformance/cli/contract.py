"""`signet-conformance contract`: the frozen versions, the changes between two, and which one a daemon serves."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import RenderableType
from rich.text import Text

from signet_conformance.contract import contract_versions, requirements, schemas_folder, version_document, version_key
from signet_conformance.errors import ContractError, UsageError, first_of, printable
from signet_conformance.reports.terminal import STRONG, Paragraph, grid, print_drawn

if TYPE_CHECKING:
    from signet_conformance.probing import OtherAnswer, ProbedAnswers

_DIFF = "contract diff"
_CONFIDENCE = {
    "high": "is confirmed by the answers of a real daemon.",
    "medium": "is read from source and documentation: no such daemon was available to run.",
    "low": "is read from documentation and some source files: take it as a preview, not as a promise.",
}
"""Ends of a sentence that begins with a version, by its confidence."""


@click.group("contract")
def command() -> None:
    """The frozen versions of the contract."""


@command.command("list")
def list_versions() -> None:
    """List the versions with the daemon each is judged by."""
    rows = []
    for version in contract_versions():
        frozen = version_document(version)
        counts = f"{len(frozen['requirements']):>3} requirements, {len(frozen['operations'])} operations"
        rows.append((version, f"daemon {frozen['daemon_versions']['reference']}", counts))
    print_drawn([grid(rows)])


def _example(words: str) -> str:
    return f"\b\nExample:\n  signet-conformance {words}"


@command.command("openapi", epilog=_example("contract openapi 0.145 > signet-0.145.json"))
@click.argument("version", default=lambda: contract_versions()[-1])
def openapi_document(version: str) -> None:
    """Print VERSION (default: the newest) as an OpenAPI 3.1 document."""
    # Imported here: no other command of the group makes one.
    from signet_conformance.contract.openapi import openapi

    _load_version(version, "contract openapi")
    click.echo(json.dumps(openapi(version), indent=1))


@command.command("schema", epilog=_example("contract schema scenario > scenario.schema.json"))
@click.argument("name", required=False)
def document_schema(name: str | None) -> None:
    """Print the JSON Schema of a document. Without NAME, list those that people write or programs exchange."""
    files = {
        path.name.removesuffix(".schema.json").removeprefix("signet-").removesuffix("-1"): path
        for path in sorted(schemas_folder().glob("*/signet-*.schema.json"))
    }
    if name is None:
        click.echo("\n".join(f"{known:<16} {path.parent.name}/{path.name}" for known, path in files.items()))
        return
    if name not in files:
        raise UsageError(
            f"no schema is called {printable(name, 40)!r}",
            where="contract schema",
            remedy=f"one of {', '.join(get_close_matches(name, files) or files)}",
        )
    click.echo(files[name].read_text(encoding="utf-8"), nl=False)


@command.command("diff", epilog=_example("contract diff 0.58 0.145"))
@click.argument("old")
@click.argument("new")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def diff(old: str, new: str, as_json: bool) -> None:
    """List what a connector's author must change from OLD to NEW."""
    comparison = difference(old, new)
    if as_json:
        click.echo(json.dumps(comparison, indent=2))
    else:
        print_drawn(_describe_changes(comparison))


_DAEMON = click.option(
    "--daemon",
    required=True,
    metavar="URL_OR_COMMAND",
    help="A command that starts a daemon with the workspace of SIGNET_PATH and the port of SIGNET_PORT, or an address.",
)
_WRITES = click.option("--allow-writes", is_flag=True, help="Let the probes write into a running daemon.")


def _send_probes(daemon: str, versions: Sequence[str], *, allow_writes: bool) -> ProbedAnswers:
    from signet_conformance.probing import learn
    from signet_conformance.running.daemon import demand_consent

    def tell(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    demand_consent(daemon, tell, allowed=allow_writes, option="--allow-writes")
    return learn(daemon, versions, tell)


@command.command("learn", epilog=_example("contract learn --daemon 'node daemon.js' --draft draft-0.238"))
@_DAEMON
@_WRITES
@click.option("--draft", metavar="DIR", help="Write the answers and a draft of the next version into this new folder.")
def learn_version(*, daemon: str, allow_writes: bool, draft: str | None) -> int:
    """Find out which version a daemon serves best. Send it recorded requests, and say where its answers differ."""
    if draft is not None and Path(draft).exists():
        raise UsageError("is there already", where=draft, remedy="name a folder that does not exist")
    answers = _send_probes(daemon, contract_versions(), allow_writes=allow_writes)
    print_drawn(_describe_answers(answers))
    if draft is not None:
        from signet_conformance.probing import write_draft

        for path in write_draft(answers, Path(draft)):
            click.echo(f"wrote {printable(str(path), 400)}")
    return 0


@command.command("prove", epilog=_example("contract prove 0.145 --daemon 'node daemon.js'"))
@click.argument("version")
@_DAEMON
@_WRITES
def prove(version: str, *, daemon: str, allow_writes: bool) -> int:
    """Check whether a daemon answers as VERSION does. Exit status: 0 if it answers every probe so, else 1."""
    _load_version(version, "contract prove")
    answers = _send_probes(daemon, [version], allow_writes=allow_writes)
    others = list(answers.other_answers(version))
    print_drawn(_describe_others(others, version, len(answers.rows)))
    return 1 if others else 0


def _describe_answers(answers: ProbedAnswers) -> Iterator[RenderableType]:
    release = printable(answers.reported or "without a version", 40)
    yield Text(f"daemon {release} serves contract {answers.best} best", STRONG)
    yield grid(
        (f"  {version}", f"{agreeing:>4} of {len(answers.rows)} answers alike")
        for version, agreeing in answers.agreeing.items()
    )
    yield Text()
    yield from _describe_others(list(answers.other_answers(answers.best)), answers.best, len(answers.rows))


def _describe_others(others: Sequence[OtherAnswer], version: str, probes: int) -> Iterator[RenderableType]:
    from signet_conformance.probing import requirements_on

    if not others:
        yield Text(f"the daemon answers all {probes} probes as contract {version} does")
        return
    yield Text(f"{len(others)} of {probes} probes get another answer than in contract {version}")
    for operation in sorted({each.operation or "" for each in others}):
        yield Text(f"\n  {operation or 'outside the contract'}", STRONG)
        if rules := requirements_on(operation):
            yield Paragraph(f"rules that rest on it: {', '.join(rules)}", 4)
        alike: dict[str, list[str]] = {}
        for each in others:
            if (each.operation or "") == operation:
                alike.setdefault(printable(each.differences[0], 300), []).append(each.probe)
        for text, probes_alike in alike.items():
            yield Paragraph(f"{first_of(probes_alike, 1)}: {text}", 4, 6)


def _describe_changes(comparison: Mapping[str, Any]) -> Iterator[RenderableType]:
    yield Text(f"From contract {comparison['from']} to {comparison['to']}", STRONG)
    yield from (Paragraph(f"{version} {_CONFIDENCE[level]}") for version, level in comparison["confidence"].items())
    for title, members in (
        ("Requirements that come into force", "added"),
        ("Requirements no longer in force", "removed"),
    ):
        rows = comparison["requirements"][members]
        if rows:
            yield Text(f"\n{title}: {len(rows)}")
        for row in rows:
            yield Paragraph(f"{row['level']:<6} {row['id']}  {row['title']}", 2, 9)
    if not any(comparison["requirements"].values()):
        yield Text("\nBoth have the same requirements in force.")
    changes = comparison["changes"]
    yield Text(f"\nOperations and fields: {len(changes)}")
    by_operation: dict[str | None, list[Mapping[str, Any]]] = {}
    for change in changes:
        by_operation.setdefault(change["operation"], []).append(change)
    several = len({change["since"] for change in changes}) > 1
    # Changes that concern no single operation come last.
    for operation in sorted(by_operation, key=lambda operation: operation is None):
        yield Text(f"  {operation or 'in general'}")
        for change in by_operation[operation]:
            since = f" ({change['since']})" if several else ""
            subject = change["field"] or ("" if operation is None or change["change"] == "changed" else "the operation")
            words = [word for word in (f"{subject}{since}".strip(), change.get("note")) if word]
            yield Paragraph(f"{change['change']:<8} {'  '.join(words)}", 4, 13)


def _load_version(name: str, where: str) -> Mapping[str, Any]:
    try:
        document: Mapping[str, Any] = version_document(name)
    except ContractError as failure:
        raise ContractError(failure.message, where=where, remedy=failure.remedy) from None
    return document


def difference(old: str, new: str) -> dict[str, Any]:
    """The requirements added and removed between two versions, and the changes of each version on the way, in order."""
    first, last = _load_version(old, _DIFF), _load_version(new, _DIFF)
    if old == new:
        others = " or ".join(version for version in contract_versions() if version != new)
        raise UsageError(f"{new} is compared with itself", where=_DIFF, remedy=f"compare it with {others}")
    if version_key(old) >= version_key(new):
        raise UsageError(
            f"{new} is not later than {old}", where=_DIFF, remedy=f"signet-conformance {_DIFF} {new} {old}"
        )
    between = [v for v in contract_versions() if version_key(old) < version_key(v) <= version_key(new)]
    catalogue = requirements()

    def rows(ids: set[str]) -> list[dict[str, str]]:
        return [{"id": r.id, "level": r.level, "title": r.title} for r in catalogue.values() if r.id in ids]

    before, after = set(first["requirements"]), set(last["requirements"])
    return {
        "from": old,
        "to": new,
        "confidence": {version: version_document(version)["confidence"] for version in between},
        "requirements": {"added": rows(after - before), "removed": rows(before - after)},
        "changes": [
            {**change, "since": version} for version in between for change in version_document(version)["changes"]
        ],
    }
