"""Renew the pages of docs/connectors from reports of runs.

`signet-conformance run TARGET --scenarios 0 --report FOLDER` writes a report; `nox -s connectors -- CHECKOUT` does so
for all targets. The tool writes the sections "Run", "Parity" and "Findings" of the target's page and its row in the
overview. Write the notes by hand: compare each new verdict with the connector's source and explain it there.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from signet_conformance.contract import catalogue
from signet_conformance.contract.routes import operation_table

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
RUN = re.compile(r"Driven on (?P<when>[-0-9: ]+) UTC: (?P<releases>.*?), through ")
"""The beginning of the section "Run": a renewed page names the day and the releases of the run before it."""
ROW = re.compile(r"(?m)^\| (FAIL|WARN) \| (SIG-[A-Z0-9-]+) \|")


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
    """The table of endpoints: the number of requests to each, and the requirements whose findings name them."""
    requests = Counter[str]()
    for trace in report["traces"]:
        requests.update(trace["operations"])
    touched: dict[str, set[str]] = {}
    for _, name, findings in breaches(report):
        for found in filter(_is_located, findings):
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
    about = "full: requests were seen, and no finding names one; partial: findings name some."
    return "\n".join([*lines, "", f"{about} Other operations: {beyond}." if beyond else about])


def findings_table(folder: Path, report: Mapping[str, Any]) -> str:
    """The table of breaches, each with its evidence in the first recording by name."""
    lines = ["| verdict | requirement | the sentence | what was seen | first evidence |", "|---|---|---|---|---|"]
    for verdict, name, findings in breaches(report):
        located = filter(_is_located, findings)
        first = min(located, key=lambda found: (Path(found["file"]).name, found["exchanges"][:1]), default=findings[0])
        cells = (verdict, name, catalogue()[name].title, first["message"], evidence(folder, first))
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def evidence(folder: Path, found: Mapping[str, Any]) -> str:
    """The recording of a finding and the exchange in it, or a dash if the finding is about the run as a whole."""
    if not _is_located(found):
        return DASH
    recording = Recording(folder / Path(found["file"]).name)
    request = f" {recording.request(found['exchanges'][0])}" if found["exchanges"] else ""
    return f"{recording.scenario}{request}"


def _is_located(found: Mapping[str, Any]) -> bool:
    """Whether a finding is about one recording: an operation that no scenario called (SIG-COV-001) is not."""
    return "file" in found


def releases(report: Mapping[str, Any]) -> str:
    """Name the releases that a reader needs to drive the connector again."""
    played = " and ".join(f"{program['host']} {program['release']}" for program in report["played"])
    connector = report["run"].get("connector")
    parts = (
        f"connector {connector}" if connector else "a connector that names no release",
        f"as {played} runs it" if played else "",
        f"contract {report['contract']}",
        f"kit {report['kit']}",
    )
    return ", ".join(filter(None, parts))


def run_section(report: Mapping[str, Any], page: str) -> str:
    """The section "Run": day, releases, and changes since the former page, which stay if it shows this run."""
    when = report["run"]["created"][:16].replace("T", " ")
    scripted, generated = len(report["traces"]), report.get("generated", {}).get("performed", 0)
    sessions = f" and {generated} generated sessions" if generated else ""
    driven = f"Driven on {when} UTC: {releases(report)}, through {scripted} scripted scenarios{sessions}."
    before = RUN.search(page)
    if before and before["when"] == when:
        kept = page[before.end() :].partition("\n\n")[2].partition("\n\n## ")[0]
        return f"{driven}\n\n{kept}"
    since = f"Since the page of {before['when'][:10]} ({before['releases']})" if before else "Since the page before"
    return f"{driven}\n\n{since}: {changes(page, report)}."


def changes(page: str, report: Mapping[str, Any]) -> str:
    """Say which breaches are new, gone, or of another verdict than in the table of `page`."""
    old = {name: verdict for verdict, name in ROW.findall(page)}
    new = {name: verdict for verdict, name, _ in breaches(report)}
    parts = {
        "breached now": [f"{name} ({verdict})" for name, verdict in new.items() if name not in old],
        "breached no longer": [f"{name} ({verdict})" for name, verdict in old.items() if name not in new],
        "judged differently": [
            f"{name} ({old[name]}, now {verdict})" for name, verdict in new.items() if old.get(name, verdict) != verdict
        ],
    }
    said = "; ".join(f"{what} {', '.join(names)}" for what, names in parts.items() if names)
    return said or "the same requirements are breached"


def renew(folder: Path) -> None:
    """Renew the sections of one target's page that come from a report, and its row of the overview."""
    report = json.loads((folder / "report.json").read_text("utf-8"))
    target = report["traces"][0]["target"]
    if any(program["real"] for program in report["played"]):
        sys.exit(
            f"{folder}: the program itself ran, and the pages show the played harness: drive it without --harness real"
        )
    page = PAGES / f"{target}.md"
    if not page.is_file():
        sys.exit(
            f"{folder}: {page} is missing: create it with the headings of another connector's page, then run this again"
        )
    text = page.read_text("utf-8")
    if "\n## Run\n" not in text:
        text = text.replace("\n## Parity\n", "\n## Run\n\n\n\n## Parity\n", 1)
    sections = {
        "Run": run_section(report, text),
        "Parity": parity(folder, report),
        "Findings": findings_table(folder, report),
    }
    for heading, section in sections.items():
        before, title, rest = text.partition(f"\n## {heading}\n\n")
        _, end, after = rest.partition("\n\n## ")
        text = before + title + section + end + after
    page.write_text(text, "utf-8")
    counts = Counter(verdict for verdict, _, _ in breaches(report))
    overview = PAGES / "README.md"
    day, connector = report["run"]["created"][:10], report["run"].get("connector") or DASH
    row = rf"(\| \[{target}\]\([^|]*\|[^|]*\|) .*"
    counted = rf"\g<1> {connector} | {day} | {counts['FAIL']} | {counts['WARN']} |"
    overview.write_text(re.sub(row, counted, overview.read_text("utf-8")), "utf-8")
    print(f"{page.name}: {counts['FAIL']} FAIL, {counts['WARN']} WARN")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("report", nargs="+", type=Path, help="a report folder of one target")
    for report_folder in parser.parse_args().report:
        renew(report_folder)
