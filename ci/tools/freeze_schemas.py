"""Renew the parts of the schemas folder that are generated from other files.

- The frozen contract versions: the requirement ids of each, and the SHA-256 of every file that it names.
- The JSON Schema of every document for which the kit has a model.
- tests/evidence/law.json: a row for each new requirement, so that a test notices if its sentence, level or first
  version changes. Compare the row with the contract.

Run the tool after you edit a schema or a model: a reviewer sees the change in the diff.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import pkgutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SCHEMAS = Path(__file__).resolve().parents[2] / "schemas"
LAW = "tests/evidence/law.json"
DOCUMENTS = (
    "signet_conformance.audit.rows:BreachRow",
    "signet_conformance.audit.rows:RecordingRow",
    "signet_conformance.audit.rows:SessionRow",
    "signet_conformance.audit.summary:Summary",
    "signet_conformance.outcome.baseline_documents:AuditLine",
    "signet_conformance.outcome.baseline_documents:Baseline",
    "signet_conformance.outcome.baseline_documents:FlakyList",
    "signet_conformance.reports.html.kill_matrix:KillMatrix",
    "signet_conformance.reports.matrix:Matrix",
    "signet_conformance.reports.report_document:Report",
    "signet_conformance.scenarios.scenario:ScenarioDocument",
    "signet_conformance.scenarios.scenario:ScenarioList",
    "signet_conformance.targets.face_document:FaceDocument",
    "signet_conformance.targets.profile:Profile",
    "signet_conformance.targets.program_document:ProgramDocument",
    "signet_conformance.targets.profile:SettingsFile",
    "signet_reference_harness.bench.answering:Answers",
    "signet_reference_harness.bench.comparing:ResultComparison",
    "signet_reference_harness.bench.pairs:Pair",
    "signet_reference_harness.bench.result:Result",
    "signet_reference_harness.bench.result:Times",
    "signet_reference_harness.bench.suite:SuiteLine",
    "signet_reference_harness.session.events:RunSummary",
    "signet_reference_harness.session.events:Event",
    "signet_reference_harness.llm_server.script:Script",
)
"""The models whose JSON Schemas are in the schemas folder."""


def frozen_entries(version: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str, str]]:
    """Yield (object, member with the file name, member with its hash) for each file of a frozen version."""
    yield version, "routes", "routes_sha256"
    for sides in version["operations"].values():
        for entry in sides.values():
            yield entry, "file", "sha256"


def connector_entries(schemas: Path) -> list[dict[str, Any]]:
    """The entries of all requirements on the connector, area by area."""
    areas = [json.loads(file.read_bytes()) for file in (schemas / "requirements").glob("*.json")]
    areas.sort(key=lambda area: area["place"])
    return [entry for area in areas if area["side"] == "connector" for entry in area["requirements"]]


def requirement_lists(version: dict[str, Any], schemas: Path) -> dict[str, list[str]]:
    """The ids in force at the version's reference daemon, and those that begin later, area by area."""
    entries = connector_entries(schemas)
    reference = _numbers(version["daemon_versions"]["reference"])
    begun = [entry["since"] is None or _numbers(entry["since"]) <= reference for entry in entries]
    return {
        "requirements": [entry["id"] for entry, is_in_force in zip(entries, begun, strict=True) if is_in_force],
        "unscored": [entry["id"] for entry, is_in_force in zip(entries, begun, strict=True) if not is_in_force],
    }


def _numbers(version: str) -> list[int]:
    return [int(part) for part in (*version.split("."), "0", "0")[:3]]


def renew(version: dict[str, Any], schemas: Path) -> Iterator[str]:
    """Bring `version` up to date with the files, and yield the differences."""
    for member, ids in requirement_lists(version, schemas).items():
        if version[member] != ids:
            moved = sorted(set(ids) ^ set(version[member]))
            yield f"{member} differs from what schemas/requirements says: {', '.join(moved) or 'the order'}"
            version[member] = ids
    for entry, name, digest in frozen_entries(version):
        actual = hashlib.sha256((schemas / entry[name]).read_bytes()).hexdigest()
        if entry[digest] != actual:
            yield f"{entry[name]} differs from its frozen hash"
            entry[digest] = actual


def extend_law(schemas: Path, law: Path, *, write: bool) -> list[str]:
    """Return the ids of requirements without a row; with `write`, add their rows. Existing rows do not change."""
    if not law.is_file():
        return []
    rows = json.loads(law.read_bytes())
    missing = [entry for entry in connector_entries(schemas) if entry["id"] not in {row["id"] for row in rows}]
    for entry in missing if write else ():
        area = entry["id"].rpartition("-")[0]
        earlier = [place for place, row in enumerate(rows, 1) if row["id"].startswith(area) and row["id"] < entry["id"]]
        row = {"id": entry["id"], "level": entry["level"], "sentence": entry["title"], "since": entry["since"] or ""}
        rows.insert(max(earlier, default=len(rows)), row)
    if missing and write:
        lines = ",\n".join(f"  {json.dumps(row, ensure_ascii=False)}" for row in rows)
        law.write_text(f"[\n{lines}\n]\n", "utf-8")
    return [entry["id"] for entry in missing]


def renew_documents(schemas: Path, *, write: bool) -> list[str]:
    """Return the schemas of documents that differ from their models; with `write`, renew them."""
    from signet_conformance.files.json_schemas import schema_text

    differing = []
    for model in map(pkgutil.resolve_name, DOCUMENTS):
        path, text = schemas / model.schema_file, schema_text(model, model.schema_file)
        if path.is_file() and path.read_text("utf-8") == text:
            continue
        differing.append(model.schema_file)
        if write:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, "utf-8")
    return differing


def main(arguments: list[str] | None = None, schemas: Path = SCHEMAS) -> int:
    """Freeze or check every version of `schemas`; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 and name the files that differ")
    check = parser.parse_args(arguments).check
    differences = 0
    for path in sorted((schemas / "versions").glob("*.json")):
        version = json.loads(path.read_text("utf-8"))
        try:
            differing = list(renew(version, schemas))
        except FileNotFoundError as missing:
            gone = Path(missing.filename).relative_to(schemas)
            print(f"{path.name}: {gone} is missing: restore it, or take it out of {path.name}", file=sys.stderr)
            return 2
        differences += len(differing)
        for difference in differing:
            print(f"{path.name}: {difference}{'' if check else ': renewed'}")
        if differing and not check:
            path.write_text(json.dumps(version, indent=2, ensure_ascii=False) + "\n", "utf-8")
    differing = renew_documents(schemas, write=not check)
    differences += len(differing)
    for name in differing:
        print(f"{name}: {'differs from its model' if check else 'renewed'}")
    for name in extend_law(schemas, schemas.parent / LAW, write=not check):
        differences += 1
        print(f"{LAW}: {name} {'has no row' if check else 'added: compare it with the contract'}")
    if check and differences:
        print("if the edit is intended: python ci/tools/freeze_schemas.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
