"""Facts about the package for npm: it packs, installs without a network, drives a connector and judges it by tests."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from signet_conformance import __version__
from tests.support.bun import packages_beside_bun
from tests.support.drives import PLAIN

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "conformance" / "npm"
HOSTS = "conformance/signet_conformance/drivers/hosts"
KIT = Path(sys.executable).with_name("signet-conformance")
README = (PACKAGE / "README.md").read_text(encoding="utf-8")
MODULES = packages_beside_bun("typescript", "json-schema-to-typescript")
"""Where the packages lie that the types are made and checked with."""

pytestmark = pytest.mark.skipif(shutil.which("npm") is None, reason="there is no npm")

CONNECTOR = """
const { SIGNET_DAEMON_URL: daemon, SIGNET_BYPASS } = process.env;
let count = 0;
async function call(hook, session, members) {
  if (SIGNET_BYPASS === "1") return {};
  const body = { harness: "mine", sessionKey: session.key, agentId: session.agent, runtimePath: "plugin", ...members };
  const headers = { "content-type": "application/json", "x-signet-runtime-path": "plugin" };
  try {
    const answer = await fetch(`${daemon}/api/hooks/${hook}`, {
      method: "POST", headers, body: JSON.stringify(body), signal: AbortSignal.timeout(1500) });
    return answer.ok ? await answer.json() : {};
  } catch { return {}; }
}
export async function open(agent, project) {
  const session = { key: `mine-${process.pid}-${count++}`, agent, project, said: [] };
  await call("session-start", session, { project });
  return session;
}
export async function prompt(session, userMessage) {
  console.log("what a connector prints is no answer");
  session.said.push(`User: ${userMessage}`);
  return (await call("user-prompt-submit", session, { project: session.project, userMessage })).inject;
}
export async function close(session) {
  await call("session-end", session, { cwd: session.project, transcript: session.said.join("\\n"), reason: "exit" });
}
"""


def run(*words: str | Path, cwd: Path, status: int = 0, **environment: str) -> str:
    """What a command prints, both streams; it has to end with this status."""
    done = subprocess.run(
        list(map(str, words)), cwd=cwd, capture_output=True, text=True, timeout=300, check=False,
        env={**os.environ, "SIGNET_CONFORMANCE": str(KIT), **environment},
    )  # fmt: skip
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def block(language: str, begins: str) -> str:
    """The block of the package's README that begins so."""
    blocks = re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)
    return next(it for it in blocks if it.startswith(begins))


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A connector's repository in which the packed package is installed, made by the words of the README."""
    folder = tmp_path_factory.mktemp("typescript")
    packed = json.loads(
        run("npm", "pack", "--json", "--pack-destination", folder, cwd=PACKAGE).partition("npm warn")[0]
    )
    (folder / "package.json").write_text('{"name": "mine", "private": true, "type": "module"}')
    run("npm", "install", "--offline", "--no-audit", "--no-fund", folder / packed[0]["filename"], cwd=folder)
    for place in ("dist", "conformance", ".git"):
        (folder / place).mkdir()
    (folder / "dist/connector.js").write_text(CONNECTOR)
    (folder / "conformance/driver.mjs").write_text(block("js", "// conformance/driver.mjs"))
    (folder / "conformance/conformance.test.mjs").write_text(block("js", "// conformance/conformance.test.mjs"))
    (folder / "signet-conformance.toml").write_text(block("toml", "# signet-conformance.toml"))
    (folder / "plain.json").write_text(json.dumps(PLAIN))
    return folder


def test_the_package_has_the_kits_version() -> None:
    """One version for both: it is what an environment of its own installs."""
    assert json.loads((PACKAGE / "package.json").read_text())["version"] == __version__


def test_its_own_tests_pass() -> None:
    """The driver's facts, by node's own runner."""
    run("node", "--test", *sorted((PACKAGE / "test").glob("*.test.mjs")), cwd=PACKAGE)


def test_the_readme_drives_a_connector(repository: Path) -> None:
    """Five lines and a table drive it, and the command from node_modules ends as the kit does."""
    words = ("run", "mine", "-k", "SIG-PROMPT-001", "--scenario", "plain.json", "--quiet")
    told = run("npx", "--no", "signet-conformance", *words, cwd=repository)
    assert "conforming" in told


def test_each_requirement_is_a_test_of_nodes_runner(repository: Path) -> None:
    """A breach fails under the name of its requirement, with its evidence; what was not tested is skipped with why."""
    test = repository / "conformance" / "conformance.test.mjs"
    whole = test.read_text()
    options = ["--scenario", "plain.json", "-k", "SIG-END-001", "-k", "SIG-CKPT-001", "-k", "SIG-PROMPT-001"]
    test.write_text(whole.replace('"mine" }', f'"mine", options: {json.dumps(options)} }}'))
    connector = repository / "dist/connector.js"
    connector.write_text(CONNECTOR.replace("userMessage })", "userMessage: '' })"))
    try:
        told = run("node", "--test", "--test-reporter=tap", "conformance/", cwd=repository, status=1)
    finally:
        test.write_text(whole)
        connector.write_text(CONNECTOR)
    assert re.search(r"^ *not ok \d+ - SIG-PROMPT-001 ", told, re.MULTILINE)
    assert "explain: npx signet-conformance explain SIG-PROMPT-001" in told
    assert re.search(r"^ *ok \d+ - SIG-END-001 ", told, re.MULTILINE)
    assert re.search(r"^ *ok \d+ - SIG-CKPT-001 .*# SKIP", told, re.MULTILINE)


def test_a_target_that_cannot_be_driven_is_one_failing_test(repository: Path, tmp_path: Path) -> None:
    """The kit's own words are the failure."""
    test = tmp_path / "gone.test.mjs"
    entry = repository / "node_modules/signet-conformance/src/conformance.mjs"
    test.write_text(
        f'import {{ conformance }} from {json.dumps(entry.as_uri())};\nawait conformance({{ target: "gone" }});\n'
    )
    told = run("node", "--test", "--test-reporter=tap", test, cwd=repository, status=1)
    assert "not ok 1 - gone can be driven" in told
    assert "gone" in told


@pytest.mark.parametrize(
    ("environment", "says"),
    [
        ({"SIGNET_CONFORMANCE": "/nowhere/kit"}, "SIGNET_CONFORMANCE: /nowhere/kit is not a program"),
        ({"SIGNET_CONFORMANCE": "", "PATH": ""}, "needs Python 3.11 or later, or uv"),
    ],
)
def test_without_a_kit_it_says_what_to_do(tmp_path: Path, environment: dict[str, str], says: str) -> None:
    """An error of two lines, the second with the way out, and no stack."""
    (tmp_path / ".git").mkdir()
    node = shutil.which("node") or "node"
    told = run(
        node, PACKAGE / "bin/signet-conformance.mjs", "--version", cwd=tmp_path, status=2,
        HOME=str(tmp_path), XDG_CACHE_HOME="", **environment,
    )  # fmt: skip
    assert told.startswith("error: ")
    assert says in told
    assert "\ntry: " in told
    assert "    at " not in told


def test_the_kit_of_the_repositorys_environment_is_preferred(tmp_path: Path) -> None:
    """What `.venv` holds is run from a folder below it; nothing is installed."""
    place = tmp_path / ".venv/bin"
    place.mkdir(parents=True)
    (place / "signet-conformance").write_text('#!/bin/sh\necho "mine $1"\nexit 7\n')
    (place / "signet-conformance").chmod(0o755)
    below = tmp_path / "packages" / "connector"
    below.mkdir(parents=True)
    told = run("node", PACKAGE / "bin/signet-conformance.mjs", "check", cwd=below, status=7, SIGNET_CONFORMANCE="")
    assert told == "mine check\n"


UV = """#!/bin/sh
PATH=/usr/bin:/bin
case "$1" in
  venv) for place; do :; done; mkdir -p "$place/bin"; echo "Creating it" >&2 ;;
  pip) printf '#!/bin/sh\\necho "%s, called by $SIGNET_CONFORMANCE_RUNNER"\\n' "$*" > "$4/bin/signet-conformance"
    chmod +x "$4/bin/signet-conformance" ;;
esac
"""
"""Makes no environment, but a program that says how it was installed."""


@pytest.fixture(name="shell")
def make_shell(tmp_path: Path) -> dict[str, str]:
    """A shell of a user who has uv, and no kit."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "uv").write_text(UV)
    (tmp_path / "uv").chmod(0o755)
    return {"HOME": str(tmp_path), "XDG_CACHE_HOME": "", "PATH": str(tmp_path), "SIGNET_CONFORMANCE": ""}


def test_a_first_run_makes_the_kit_of_its_clone_and_says_what_it_is_at(tmp_path: Path, shell: dict[str, str]) -> None:
    """In any shell, without a variable: the environment once, with its parts and times, then nothing but the kit."""
    words = (shutil.which("node") or "node", PACKAGE / "bin/signet-conformance.mjs", "--version")
    kit = f"--editable {ROOT}, called by npx\n"
    first = run(*words, cwd=tmp_path, **shell)
    assert first.partition("\n")[0].endswith(kit.rstrip())
    assert f"the first run makes a Python environment for the kit, in {tmp_path}/.cache/" in first
    assert re.findall(r"^  (\d of \d): (\w+), done in \d+ s$", first, re.MULTILINE) == [
        ("1 of 2", "environment"), ("2 of 2", "kit"),
    ]  # fmt: skip
    again = run(*words, cwd=tmp_path, **shell)
    assert again.endswith(kit)
    assert len(again.splitlines()) == 1


def test_a_source_that_was_named_once_is_kept(tmp_path: Path, shell: dict[str, str]) -> None:
    """A packed package lies in no clone: what one shell named is what the next one runs."""
    copied = tmp_path / "node_modules" / "signet-conformance"
    shutil.copytree(PACKAGE, copied, ignore=shutil.ignore_patterns("node_modules"))
    words = (shutil.which("node") or "node", copied / "bin/signet-conformance.mjs", "--version")
    assert "/a/wheel.whl" in run(*words, cwd=tmp_path, **shell, SIGNET_CONFORMANCE_SOURCE="/a/wheel.whl")
    assert run(*words, cwd=tmp_path, **shell).endswith("/a/wheel.whl, called by npx\n")


@pytest.mark.parametrize("name", ["lateness.mjs", "sent.mjs"])
def test_shared_modules_are_those_of_the_hosts(name: str) -> None:
    """An npm package cannot hold a file from outside its folder, so it has copies: `npm run types` renews them."""
    assert (PACKAGE / "src" / name).read_bytes() == (ROOT / HOSTS / name).read_bytes()


@pytest.mark.skipif(MODULES is None, reason="typescript is not installed beside bun")
def test_types_are_those_of_the_schemas_and_of_the_code(tmp_path: Path) -> None:
    """The generated types are up to date; a driver in TypeScript is checked against them, and a wrong one refused."""
    assert MODULES is not None
    copied = tmp_path / "conformance/npm"
    shutil.copytree(PACKAGE, copied, ignore=shutil.ignore_patterns("node_modules"))
    shutil.copytree(ROOT / "schemas", tmp_path / "schemas")
    shutil.copytree(ROOT / HOSTS, tmp_path / HOSTS)
    (tmp_path / "node_modules").symlink_to(MODULES)
    run("node", copied / "scripts/types.mjs", "--check", cwd=tmp_path)
    entry = json.dumps(str(copied / "src/driver.mjs"))
    driver = tmp_path / "driver.mts"
    right = (
        f"import {{ createDriver }} from {entry};\n"
        "createDriver({ start: ({ agent }) => ({ key: agent ?? '' }), prompt: (step, session) => session.key });\n"
    )
    tsc = ("node", MODULES / "typescript/bin/tsc", "--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext")
    driver.write_text("declare namespace NodeJS { interface ReadableStream {} interface WritableStream {} }\n" + right)
    run(*tsc, driver, cwd=tmp_path)
    driver.write_text(driver.read_text().replace("session.key }", "session.name }"))
    assert "name" in run(*tsc, driver, cwd=tmp_path, status=2)
