"""`signet-harness llm`: a scripted model for programs that expect a vendor's."""

from __future__ import annotations

from pathlib import Path

import click

EPILOG = """\b
Prints one JSON line with its url when it is ready. A program is pointed there:
  ANTHROPIC_BASE_URL=URL   OPENAI_BASE_URL=URL/v1   OLLAMA_HOST=URL

\b
What reached the model:   curl URL/requests
Add turns while it plays: curl -d '{"turns": [{"content": "Hello."}]}' URL/turns
"""


@click.command(
    "llm",
    help="Answer as a model does, from SCRIPT, over the interfaces of Anthropic, OpenAI and Ollama. "
    "Without SCRIPT each request waits until POST /turns says its answer.",
    epilog=EPILOG,
)
@click.argument("script", type=click.Path(path_type=Path), required=False)
@click.option("--port", type=click.IntRange(0, 65_535), default=0, help="Port on 127.0.0.1; default: a free one.")
@click.option("--until-stdin-closes", is_flag=True, help="End when standard input is closed.")
def command(script: Path | None, port: int, *, until_stdin_closes: bool) -> None:
    """Serve until a signal, or the end of standard input."""
    from signet_reference_harness.documents import read_document
    from signet_reference_harness.llm_server import ScriptedModelApp
    from signet_reference_harness.llm_server.script import Script
    from signet_reference_harness.local_server import serve

    played = Script(format="signet-llm/1", when_out="wait") if script is None else read_document(Script, script)
    serve(ScriptedModelApp(played), port, until_stdin_closes=until_stdin_closes)
