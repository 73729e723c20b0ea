"""`signet-conformance contract`: the frozen contract versions, and what changed between two of them."""

from __future__ import annotations

import json
from typing import Any

import click

from signet_conformance.contract import contract_versions, requirements, version_document, version_key
from signet_conformance.errors import UsageError


@click.group("contract")
def command() -> None:
    """The frozen versions of the contract."""


@command.command("list")
def list_versions() -> None:
    """List the versions with the daemon each is judged by."""
    for version in contract_versions():
        frozen = version_document(version)
        click.echo(
            f"{version:<8} daemon {frozen['daemon_versions']['reference']:<10}"
            f"{len(frozen['requirements']):>3} requirements, {len(frozen['operations'])} operations"
        )


@command.command("diff")
@click.argument("old")
@click.argument("new")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def diff(old: str, new: str, as_json: bool) -> None:
    r"""What a connector's author must change from OLD to NEW.

    \b
    Example:
      signet-conformance contract diff 0.58 0.145
    """
    found = difference(old, new)
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    click.echo(f"From contract {old} to {new}")
    for title, members in (("Requirements that come into force", "added"), ("Requirements that fall away", "removed")):
        rows = found["requirements"][members]
        click.echo(f"\n{title}: {len(rows)}")
        for row in rows:
            click.echo(f"  {row['level']:<6} {row['id']}  {row['title']}")
    changes = found["changes"]
    click.echo(f"\nOperations and fields: {len(changes)}")
    place = None
    for change in changes:
        if change["operation"] != place:
            place = change["operation"]
            click.echo(f"  {place or 'every operation'}")
        note = f"  {change['note']}" if change.get("note") else ""
        click.echo(f"    {change['change']:<8} {change['field'] or 'the operation itself'}{note}")


def difference(old: str, new: str) -> dict[str, Any]:
    """The requirements and changes that lie between two versions, each step's changes in order."""
    first, last = version_document(old), version_document(new)
    if version_key(old) >= version_key(new):
        raise UsageError(
            f"{new} is not later than {old}",
            where="contract diff",
            remedy=f"signet-conformance contract diff {new} {old}",
        )
    between = [v for v in contract_versions() if version_key(old) < version_key(v) <= version_key(new)]
    catalogue = requirements()

    def rows(ids: set[str]) -> list[dict[str, str]]:
        return [{"id": r.id, "level": r.level, "title": r.title} for r in catalogue.values() if r.id in ids]

    before, after = set(first["requirements"]), set(last["requirements"])
    return {
        "from": old,
        "to": new,
        "requirements": {"added": rows(after - before), "removed": rows(before - after)},
        "changes": [
            {**change, "since": version} for version in between for change in version_document(version)["changes"]
        ],
    }
