"""Where a requirement is explained: the command that always works, and its page where that has an address."""

from __future__ import annotations

from functools import cache

from signet_conformance.contract import catalogue
from signet_conformance.reports.command_lines import shell_command

_DISTRIBUTION = "signet-conformance"
_LABEL = "documentation"


def explain_command(requirement: str) -> str:
    """The command that shows a requirement's page in a terminal, as it can be pasted."""
    return shell_command(["signet-conformance", "explain", requirement])


def explain_note(requirement: str) -> str:
    """That command in parentheses, to stand behind a message; nothing for a rule of somebody's own, without a page."""
    known = requirement in catalogue()
    return f" ({explain_command(requirement)})" if known else ""


def page_address(requirement: str) -> str | None:
    """The address of a requirement's page; None while the package names no documentation."""
    site = _site()
    return None if site is None else f"{site}/requirements/{requirement}/"


@cache
def _site() -> str | None:
    """What the package's own metadata gives as `Documentation`: pyproject.toml is the one place that says it."""
    # It brings the email package with it, which most runs can do without.
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        links = metadata(_DISTRIBUTION).get_all("Project-URL") or ()
    except PackageNotFoundError:
        return None
    for link in links:
        label, _, address = link.partition(",")
        if label.strip().lower() == _LABEL and address.strip().startswith("https://"):
            return str(address.strip().rstrip("/"))
    return None
