"""Every job of this repository by one name: `nox -s lint types tests wheel bench`.

Sessions make an environment of their own. `nox --no-venv` runs them in the one at hand, which needs the
`dev` extra.
"""

from __future__ import annotations

from pathlib import Path

import nox

nox.options.sessions = ["lint", "types", "tests"]
nox.options.default_venv_backend = "venv"

CODE = ("conformance", "recording_proxy", "reference_harness", "tests", "ci", "noxfile.py")


@nox.session
def lint(session: nox.Session) -> None:
    """Style, spelling, workflows, change fragments, import borders and the frozen schemas."""
    session.install("-e", ".[dev]")
    session.run("ruff", "check", *CODE)
    session.run("ruff", "format", "--check", *CODE)
    session.run("codespell")
    session.run("actionlint", *(str(path) for path in Path(".github/workflows").glob("*.yml")))
    session.run("towncrier", "build", "--draft", "--version", "next", silent=True)
    session.run("lint-imports")
    session.run("python", "ci/tools/freeze_schemas.py", "--check")


@nox.session
def types(session: nox.Session) -> None:
    """Types, strictly."""
    session.install("-e", ".[dev]")
    session.run("mypy")


@nox.session(python=["3.11", "3.12", "3.13"])
def tests(session: nox.Session) -> None:
    """The tests, on every Python that is supported."""
    session.install("-e", ".[dev]")
    session.run("pytest", *session.posargs)


@nox.session
def wheel(session: nox.Session) -> None:
    """The built wheel: what is in it, and whether it works where our sources are not."""
    session.install("-e", ".[dev]")
    session.run("python", "ci/tools/check_wheel.py", *session.posargs)


@nox.session(python=["3.11", "3.12", "3.13"])
def extras(session: nox.Session) -> None:
    """What the harness extra needs can be installed together, on every Python that is supported."""
    session.run("timeout", "600", "pip", "install", "--dry-run", "--ignore-installed", ".[harness]", external=True)


@nox.session
def changelog(session: nox.Session) -> None:
    """The fragments of changes/ as a section of CHANGELOG.md: `nox -s changelog -- 0.2.0`."""
    session.install("towncrier>=24.8")
    session.run("towncrier", "build", "--yes", "--version", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """The documentation as a site, in site/; a dead link fails."""
    session.install("-e", ".[docs]")
    session.run("python", "ci/tools/requirement_pages.py", "--check")
    session.run("mkdocs", "build", "--strict", *session.posargs, env={"NO_MKDOCS_2_WARNING": "1"})


@nox.session
def bench(session: nox.Session) -> None:
    """Figures and ratios; nothing here can fail on a slow machine."""
    session.install("-e", ".")
    session.run("python", "ci/tools/bench_check.py")
    session.run("python", "ci/tools/bench_recorder.py")
    session.run("python", "ci/tools/bench_sessions.py")


@nox.session
def mutation(session: nox.Session) -> None:
    """Which changes of the rules' code no test notices: some ten minutes of a processor."""
    session.install("cosmic-ray>=8.3", "-e", ".[dev]")
    session.run("python", "ci/tools/mutation.py", *session.posargs)
