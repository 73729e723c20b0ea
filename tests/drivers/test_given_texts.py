"""Facts about what a plugin host tells of a connector's answers: each text with its source, for its request."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.children.environment import clean_environment
from signet_conformance.drivers.launch import launch

from .conftest import PROMPT, START, Made

OPENCODE = """
export default async () => {
  let asked = 0;
  return {
    "chat.message": async (_input, output) => output.parts.unshift({ type: "text", text: "Note:" }),
    "experimental.chat.system.transform": async (_input, output) => output.system.push(`context ${(asked += 1)}`),
    "experimental.session.compacting": async (_input, output) => output.context.push("guidelines"),
    tool: { memory_search: { execute: async () => "Found." } },
  };
};
"""
OPENCODE_CHANGES_ONCE = """
let asked = 0;
export default async () => ({
  "chat.message": async (_input, output) => {
    asked += 1;
    if (asked === 1) output.parts.unshift({ type: "text", text: "Note:" });
    if (THROWS && asked === 1) throw new Error("boom");
  },
});
"""
OPENCODE_SYSTEM = """
export default async () => ({
  "experimental.chat.system.transform": async (_input, output) => { DOES; },
});
"""
OPENCODE_READS = """
import { appendFileSync } from "node:fs";
export default async ({ client }) => {
  const parts = (rows) => rows.map(({ type, synthetic, text }) => [type, synthetic === true, text ?? ""]);
  const note = (row) => appendFileSync(`${process.env.HOME}/parts.jsonl`, `${JSON.stringify(row)}\\n`);
  return {
    "chat.message": async (_input, output) => note(parts(output.parts)),
    event: async ({ event }) => {
      if (event.type !== "session.compacted") return;
      const { data } = await client.session.messages({ path: { id: event.properties.sessionID } });
      note(parts(data.at(-1).parts));
    },
  };
};
"""
PI = """
export default (pi) => {
  const message = { content: "begun" };
  pi.on("before_agent_start", ({ systemPrompt }) => ({ systemPrompt: `${systemPrompt} More.`, message }));
  pi.on("context", ({ messages }) => {
    const [newest] = messages.slice(-1);
    return { messages: [...messages, { role: "user", content: "context", timestamp: newest.timestamp }] };
  });
  pi.registerTool({ name: "signet_recall", execute: async () => ({ content: [{ type: "text", text: "Found." }] }) });
};
"""
OPENCLAW = """
export default {
  id: "giving",
  register(api) {
    api.on("before_agent_start", () => ({ prependContext: "early" }));
    api.on("before_prompt_build", () => ({ prependContext: "built", appendSystemContext: "rules" }));
  },
};
"""
TOOL = {"step": "tool", "session": "s1", "tool": "memory_search", "arguments": {"query": "x"}}


def told(
    made: Made, folder: Path, runtime: str, name: str, code: str, *steps: Mapping[str, Any]
) -> list[Mapping[str, Any]]:
    """What a host says when the model is asked, and in its answers to some steps, without all other members."""
    module = folder / "connector.mjs"
    module.write_text(code)
    home = folder / "home"
    home.mkdir()
    target = made(name, module=str(module), runtime=runtime, capabilities=[])
    driver = launch(target, clean_environment(home, SIGNET_DAEMON_URL="http://127.0.0.1:1"), str(home), 60.0)
    said: list[Mapping[str, Any]] = []
    try:
        driver.hello()
        for step in steps:
            said.append(driver.perform(step, said.append))
    finally:
        driver.close()
    members = ("given", "beside", "said")
    return [
        {name: each[name] for name in members if each.get(name) not in (None, [])}
        for each in said
        if set(members) & each.keys()
    ]


def given(**sources: str) -> list[Mapping[str, str]]:
    """Texts by their source."""
    return [{"source": source, "text": text} for source, text in sources.items()]


def test_opencode_tells_what_each_request_was_given(runtime: str, made: Made, tmp_path: Path) -> None:
    """The title's is asked for first; a message that the plugin changed is told with the turn's."""
    source = "experimental.chat.system.transform"
    compact = {"step": "compact", "session": "s1", "summary": "Well."}
    steps = (START, {**PROMPT, "more": True}, TOOL, compact)
    assert told(made, tmp_path, runtime, "opencode", OPENCODE, *steps) == [
        {
            "said": "Note:\n\nWhich database?",
            "beside": [{"for": "title", "given": given(**{source: "context 1"})}],
            "given": given(**{source: "context 2"}),
        },
        {"given": given(**{source: "context 3"})},
        {"given": given(**{source: "context 4", "experimental.session.compacting": "guidelines"})},
    ]


@pytest.mark.parametrize(("throws", "first"), [("false", {**PROMPT, "stopped": True}), ("true", PROMPT)])
def test_opencode_tells_a_changed_message_in_its_own_turn_alone(
    throws: str, first: Mapping[str, Any], runtime: str, made: Made, tmp_path: Path
) -> None:
    """Where the model was not asked in that turn, the next one has the words that the user says in it."""
    code = OPENCODE_CHANGES_ONCE.replace("THROWS", throws)
    (turn,) = told(made, tmp_path, runtime, "opencode", code, START, first, PROMPT)
    assert "said" not in turn


@pytest.mark.parametrize(
    ("does", "texts"),
    [
        ('output.system.push("rules", "context")', ["rules\ncontext"]),
        ('output.system.push(42, "context")', ["42\ncontext"]),
        ('output.system = [...output.system, "rules"]', []),
    ],
    ids=["two texts", "a number among texts", "another list"],
)
def test_opencode_joins_what_a_plugin_put_into_its_own_list(
    does: str, texts: Sequence[str], runtime: str, made: Made, tmp_path: Path
) -> None:
    """What is joined is a text, whatever it was. OpenCode does not look at a list in the place of its own."""
    (turn,) = told(made, tmp_path, runtime, "opencode", OPENCODE_SYSTEM.replace("DOES", does), START, PROMPT)
    assert [each["text"] for each in turn.get("given", ())] == texts


def test_pi_tells_what_an_extension_put_among_the_messages(runtime: str, made: Made, tmp_path: Path) -> None:
    """Also a message of the very millisecond of another one; what it gives once more after a tool is told again."""
    begun = {"before_agent_start.systemPrompt": "More.", "before_agent_start.message": "begun"}
    assert told(made, tmp_path, runtime, "pi", PI, START, {**PROMPT, "more": True}, TOOL) == [
        {"given": given(**begun, context="context")},
        {"given": given(context="context")},
    ]


@pytest.mark.parametrize(
    ("messages", "says"),
    [
        ("[...messages, extra]", {"given": given(context="rules")}),
        ("[extra]", {"given": given(context="rules"), "said": ""}),
        ("[{ ...messages[0], timestamp: 1 }, extra]", {"given": given(context="rules"), "said": PROMPT["text"]}),
        ("'none'", {}),
    ],
    ids=["added", "the user's left out", "the user's made anew", "no list"],
)
def test_pi_tells_when_an_extension_leaves_the_user_s_words_out(
    messages: str, says: Mapping[str, Any], runtime: str, made: Made, tmp_path: Path
) -> None:
    """What the extension returns is all that the model gets in that request."""
    code = f"""
    const extra = {{ role: "custom", content: "rules", timestamp: 2 }};
    export default (pi) => pi.on("context", ({{ messages }}) => ({{ messages: {messages} }}));
    """
    assert told(made, tmp_path, runtime, "pi", code, START, PROMPT) == [says]


def test_openclaw_joins_what_its_hooks_give(runtime: str, made: Made, tmp_path: Path) -> None:
    """Both hooks before a turn are heard, and the user's words stand behind the stamp of the host."""
    (turn,) = told(made, tmp_path, runtime, "openclaw", OPENCLAW, START, PROMPT)
    context = [*given(prependContext="built"), *given(prependContext="early")]
    assert turn["given"] == [*context, *given(appendSystemContext="rules")]
    assert turn["said"].endswith("] Which database?")


def test_opencode_marks_its_own_words_as_synthetic(runtime: str, made: Made, tmp_path: Path) -> None:
    """They say what is attached, before the user's words, and ask the model to go on after a compaction."""
    prompts = [
        {**PROMPT, "text": "By these notes?", "attached": ["file"]},
        {**PROMPT, "text": "", "attached": ["image"]},
        PROMPT,
    ]
    compact = {"step": "compact", "session": "s1", "summary": "Orders become invoices.", "by_itself": True}
    *turns, _ = told(made, tmp_path, runtime, "opencode", OPENCODE_READS, START, *prompts, compact)
    assert all("said" not in turn for turn in turns)
    noted = [json.loads(line) for line in (tmp_path / "home" / "parts.jsonl").read_text().splitlines()]
    kinds = [[(kind, synthetic) for kind, synthetic, _ in parts] for parts in noted]
    host, user = ("text", True), ("text", False)
    assert kinds == [[host, host, ("file", False), user], [host, host, ("file", True)], [user], [host]]
    assert noted[0][0][2].startswith("Called the Read tool with the following input: {")
    assert noted[3][0][2].startswith("Continue if you have next steps")


PI_READS = """
import { appendFileSync } from "node:fs";
const note = (row) => appendFileSync(`${process.env.HOME}/seen.jsonl`, `${JSON.stringify(row)}\\n`);
export default (pi) => {
  pi.on("before_agent_start", ({ prompt, images }) => note([prompt, images?.length ?? 0]));
  pi.on("context", ({ messages }) => note(messages.at(-1).content.map(({ type }) => type)));
};
"""


@pytest.mark.parametrize("name", ["pi", "oh-my-pi"])
def test_pi_hands_images_over_beside_the_text(name: str, runtime: str, made: Made, tmp_path: Path) -> None:
    """A message of the user has a text, though it may be empty, and its images after it; a file is not attached."""
    image, file = ({**PROMPT, "text": "", "attached": [kind]} for kind in ("image", "file"))
    told(made, tmp_path, runtime, name, PI_READS, START, image, PROMPT, file)
    seen = [json.loads(line) for line in (tmp_path / "home" / "seen.jsonl").read_text().splitlines()]
    assert seen == [["", 1], ["text", "image"], [PROMPT["text"], 0], ["text"]]
