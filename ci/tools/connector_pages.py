"""Renew the tables of docs/connectors from reports: `connector_pages.py REPORT_FOLDER...`.

Each folder is what `signet-conformance run TARGET --scenarios 0 --report FOLDER` leaves. The tool writes the tables
"Parity" and "Findings" of the target's page and its counts in the overview. Notes are written by hand: read each new
verdict beside the connector's source and explain it there.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from signet_conformance.contract import catalogue, operation_table

PAGES = Path(__file__).parents[2] / "docs" / "connectors"
ENDPOINTS = {
    "GET /health": "health",
    "session-start": "session-start",
    "user-prompt-submit": "user-prompt-submit",
    "session-end": "session-end",
    "pre-compaction": "pre-compaction",
    "compaction-complete": "compaction-complete",
    "memory/recall": "memory-recall",
    "hooks/remember": "hooks-remember",
    "GET memory/:id": "memory-get",
    "memory/modify (batch)": "memory-modify",
    "memory/forget (batch)": "memory-forget",
    "secrets/exec": "secrets-exec",
}
"""The contract's twelve endpoints as a page names them, with their operations."""
DASH = "\N{EN DASH}"
KIND_OF_BREACH = ("FAIL", "WARN")


class Recording:
    """The lines of one recording by their numbers."""

    def __init__(self, path: Path) -> None:
        self.scenario = path.stem
        lines = map(json.loads, filter(None, path.read_text("utf-8").split("\n")))
        self.lines = {line["seq"]: line for line in lines if "seq" in line}

    def request(self, number: int) -> str:
        """An exchange as `POST hooks/session-start`, with the step in which it was sent."""
        request = self.lines[number]["request"]
        steps = [line["data"] for seq, line in self.lines.items() if seq < number and line.get("name") == "step"]
        path = request["path"].removeprefix("/api/")
        path = re.sub(r"^(memory)/[0-9a-f-]{8,}$", r"\1/:id", path)
        step = f", step {steps[-1]['index']} {steps[-1]['step']}" if steps else ""
        return f"#{number} {request['method']} {path}{step}"


def breaches(report: Mapping[str, Any]) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
    """Yield verdict, requirement and findings of each breach, FAIL before WARN, in the order of the catalogue."""
    for verdict in KIND_OF_BREACH:
        for name in catalogue():
            row = report["together"].get(name, {})
            if row.get("verdict") == verdict:
                yield (
                    verdict,
                    name,
                    [found for found in row["findings"] if found["kind"] == "breach"] or row["findings"],
                )


def parity(folder: Path, report: Mapping[str, Any]) -> str:
    """The table of endpoints: how many requests there were, and the requirements whose findings name one."""
    requests = Counter[str]()
    for trace in report["traces"]:
        requests.update(trace["operations"])
    touched: dict[str, set[str]] = {}
    for _, name, findings in breaches(report):
        for found in findings:
            recording = Recording(folder / Path(found["file"]).name)
            for number in found["exchanges"]:
                request = recording.lines[number]["request"]
                route = operation_table().find(request["method"], request["path"])
                if route is not None and route.operation is not None:
                    touched.setdefault(route.operation, set()).add(name)
    order = list(catalogue())
    lines = ["| endpoint | driven live | requests | touched by |", "|---|---|---|---|"]
    for title, operation in ENDPOINTS.items():
        named = sorted(touched.get(operation, ()), key=order.index)
        seen = "never" if not requests[operation] else "partial" if named else "full"
        lines.append(f"| {title} | {seen} | {requests[operation]} | {', '.join(named) or DASH} |")
    beyond = ", ".join(sorted(set(requests) - set(ENDPOINTS.values())))
    about = "full: seen, and no finding names a request of it; partial: findings do."
    return "\n".join([*lines, "", f"{about} Beyond these: {beyond}." if beyond else about])


def findings_table(folder: Path, report: Mapping[str, Any]) -> str:
    """The table of breaches, each with its first evidence by the name of its recording."""
    lines = ["| verdict | requirement | the sentence | what was seen | first evidence |", "|---|---|---|---|---|"]
    for verdict, name, findings in breaches(report):
        first = min(findings, key=lambda found: (Path(found["file"]).name, found["exchanges"][:1]))
        recording = Recording(folder / Path(first["file"]).name)
        request = f" {recording.request(first['exchanges'][0])}" if first["exchanges"] else ""
        cells = (verdict, name, catalogue()[name].title, first["message"], f"{recording.scenario}{request}")
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def renew(folder: Path) -> None:
    """Write the tables of one target's page and its row of the overview."""
    report = json.loads((folder / "report.json").read_text("utf-8"))
    target = report["traces"][0]["target"]
    page = PAGES / f"{target}.md"
    text = page.read_text("utf-8")
    for heading, table in (("Parity", parity(folder, report)), ("Findings", findings_table(folder, report))):
        text = re.sub(rf"(?s)(\n## {heading}\n\n).*?(?=\n\n## )", lambda found, table=table: found[1] + table, text)
    page.write_text(text, "utf-8")
    counts = Counter(verdict for verdict, _, _ in breaches(report))
    overview = PAGES / "README.md"
    row = rf"(\| \[{target}\]\(.*?\| )\d+ \| \d+ \|"
    counted = rf"\g<1>{counts['FAIL']} | {counts['WARN']} |"
    overview.write_text(re.sub(row, counted, overview.read_text("utf-8")), "utf-8")
    print(f"{page.name}: {counts['FAIL']} FAIL, {counts['WARN']} WARN")


if __name__ == "__main__":
    if len(sys.argv) == 1:
        sys.exit(__doc__)
    for name in sys.argv[1:]:
        renew(Path(name))
