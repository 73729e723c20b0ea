"""A badge that says what a full run showed: as SVG, or as the JSON that badge services read."""

from __future__ import annotations

import json
from html import escape

from signet_conformance.errors import UsageError, printable
from signet_conformance.finding import Verdict
from signet_conformance.reports.matrix.document import Column, surface

_COLOURS = {"brightgreen": "#3c1", "green": "#781", "red": "#c43"}
_CHARACTER, _MARGIN = 6.6, 12


def badge(column: Column, connector_version: str) -> tuple[str, str, str]:
    """Label, message and colour. Raises UsageError when the report is not that of a full run."""
    missing = column.full_set
    if missing is not None:
        raise UsageError(
            f"makes no badge: {missing}",
            where=printable(column.report, 400),
            remedy="pytest --signet-conformance --target NAME --signet-report DIR, without -k; then DIR/report.json",
        )
    failed = sum(verdict is Verdict.FAIL for verdict in column.verdicts.values())
    rows, of = len(column.rows), len(surface())
    colour = "red" if failed else "brightgreen" if rows == of else "green"
    said = f"{failed} broken" if failed else "conforming"
    name = f"{printable(column.name, 40)} {printable(connector_version, 30)}"
    return f"Signet {column.contract}", f"{said}, {rows}/{of} | {name} | kit {column.kit}", colour


def as_json(column: Column, connector_version: str) -> str:
    """The badge as a badge service's endpoint answers."""
    label, message, colour = badge(column, connector_version)
    return json.dumps({"schemaVersion": 1, "label": label, "message": message, "color": colour}) + "\n"


def as_svg(column: Column, connector_version: str) -> str:
    """The badge as a picture of its own: no network, no script, readable aloud."""
    label, message, colour = badge(column, connector_version)
    left, right = (round(len(text) * _CHARACTER + _MARGIN) for text in (label, message))
    title, label, message = escape(f"{label}: {message}"), escape(label), escape(message)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" aria-label="{title}">\n'
        f"  <title>{title}</title>\n"
        f'  <rect width="{left}" height="20" fill="#444"/>\n'
        f'  <rect x="{left}" width="{right}" height="20" fill="{_COLOURS[colour]}"/>\n'
        '  <g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">\n'
        f'    <text x="{left / 2:g}" y="14">{label}</text>\n'
        f'    <text x="{left + right / 2:g}" y="14">{message}</text>\n'
        "  </g>\n</svg>\n"
    )
