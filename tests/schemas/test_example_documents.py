"""The example documents: each is valid or invalid as it claims, and for the reason it gives."""

from __future__ import annotations

import json
import pkgutil
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.errors import UsageError
from signet_conformance.files.documents import demand

SCHEMAS = Path(__file__).resolve().parents[2] / "schemas"
FORMATS = {
    "requirements": "requirements.schema.json",
    "trace": "trace/signet-trace-1.schema.json",
    "report": "report/signet-report-1.schema.json",
    "diff": "diff/signet-diff-1.schema.json",
    "target": "target/signet-target-1.schema.json",
    "face": "face/signet-face-1.schema.json",
    "program": "program/signet-program-1.schema.json",
    "matrix": "matrix/signet-matrix-1.schema.json",
    "baseline": "baseline/signet-baseline-1.schema.json",
    "flaky": "baseline/signet-flaky-1.schema.json",
    "audit": "baseline/signet-audit-1.schema.json",
    "selftest": "selftest/signet-selftest-1.schema.json",
    "scenario": "scenario/signet-scenario.schema.json",
    "scenarios": "scenario/signet-scenarios.schema.json",
    "settings": "settings/signet-settings.schema.json",
    "harness-routes": "harness/signet-harness-routes-1.schema.json",
    "reminder": "harness/signet-reminder-1.schema.json",
    "run-event": "harness/signet-run-event-1.schema.json",
}
MODELS = {
    "baseline": "signet_conformance.outcome.baseline_documents:Baseline",
    "flaky": "signet_conformance.outcome.baseline_documents:FlakyList",
    "audit": "signet_conformance.outcome.baseline_documents:AuditLine",
    "matrix": "signet_conformance.reports.matrix:Matrix",
    "report": "signet_conformance.reports.report_document:Report",
    "scenario": "signet_conformance.scenarios.scenario:ScenarioDocument",
    "scenarios": "signet_conformance.scenarios.scenario:ScenarioList",
    "selftest": "signet_conformance.reports.html.kill_matrix:KillMatrix",
    "target": "signet_conformance.targets.profile:Profile",
    "face": "signet_conformance.targets.face_document:FaceDocument",
    "program": "signet_conformance.targets.program_document:ProgramDocument",
    "settings": "signet_conformance.targets.profile:SettingsFile",
}
GROUPS = sorted({str(p.parent.relative_to(SCHEMAS / "examples")) for p in (SCHEMAS / "examples").rglob("*.json")})


@pytest.mark.parametrize("group", GROUPS)
def test_documents_are_valid_and_invalid_as_claimed(schema: Any, group: str) -> None:
    """Valid documents pass; invalid ones break the place (JSON pointer) or the keyword that they name."""
    checked = schema(FORMATS.get(group) or f"operations/{group}.schema.json")
    for path in sorted((SCHEMAS / "examples" / group).glob("*.json")):
        example = json.loads(path.read_text("utf-8"))
        assert example["description"].endswith("."), path.name
        if path.name.startswith("valid-"):
            assert set(example) == {"description", "document"}, path.name
            checked.demand(example["document"], path.name)
        else:
            assert path.name.startswith("invalid-"), path.name
            complaints = checked.complaints(example["document"])
            broken = {error.validator for error in complaints}
            broken |= {"".join(f"/{part}" for part in error.absolute_path) for error in complaints}
            assert example["breaks"] in broken, f"{path.name}: {sorted(map(str, broken))}"


@pytest.mark.parametrize("group", MODELS)
def test_a_model_reads_what_its_schema_admits(group: str) -> None:
    """The model of a document takes its valid examples and refuses the others with a place and a remedy."""
    model = pkgutil.resolve_name(MODELS[group])
    assert FORMATS[group] == model.schema_file
    for path in sorted((SCHEMAS / "examples" / group).glob("*.json")):
        document = json.loads(path.read_text("utf-8"))["document"]
        if path.name.startswith("valid-"):
            demand(model, document, path.name)
        else:
            with pytest.raises(UsageError) as caught:
                demand(model, document, path.name)
            assert caught.value.remedy, path.name


def test_every_schema_of_an_operation_has_both_kinds(load: Any) -> None:
    """Each request and each answer comes with a valid and an invalid document, and so do the formats."""
    wanted = {f"{name}/{side}" for name in load("operations.json")["operations"] for side in ("request", "response")}
    wanted |= set(FORMATS)
    assert set(GROUPS) == wanted
    for group in GROUPS:
        kinds = {path.name.partition("-")[0] for path in (SCHEMAS / "examples" / group).glob("*.json")}
        assert kinds == {"valid", "invalid"}, group
