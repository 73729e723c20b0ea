"""The commands of a chat, which begin with a slash and are for the harness, not for the model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from signet_reference_harness.channels import ChatFace, UserTurn
from signet_reference_harness.chat.chat_session import ChatSession, ResumableSession
from signet_reference_harness.chat.skills import Skill, skills
from signet_reference_harness.daemon_client.reply import memory_rows
from signet_reference_harness.errors import HarnessError
from signet_reference_harness.identity import SessionIdentity
from signet_reference_harness.providers import Usage
from signet_reference_harness.providers.agent_file import PricePart
from signet_reference_harness.session.turn import TurnResult
from signet_reference_harness.session.watching import Publisher

MEMORIES: Final = 10
"""Memories that are listed, or searched for."""
REPLAYED: Final = 2
"""Turns that are shown again when a session is continued."""
SHORT_KEY: Final = 8


@dataclass(frozen=True, slots=True)
class Command:
    """A command: what is written after its name, what it does, and whether it may be given during an answer."""

    about: str
    carry_out: Callable[[ChatCommands, str, UserTurn], Awaitable[UserTurn | None]]
    argument: str = ""
    at_once: bool = False


@dataclass(slots=True, eq=False)
class ChatCommands:
    """Carries out the commands of one chat. Each returns a turn for the model, or None."""

    face: ChatFace
    chat_session: ChatSession
    workspace: Path
    project: Path
    prices: Mapping[str, PricePart]
    """The prices of models, by their names."""
    _listed: Sequence[ResumableSession] = ()
    """The sessions that /resume listed last: a number names one of these."""
    _skill: tuple[UserTurn, Skill, str] | None = None
    _shown_notes: set[str] = field(default_factory=set)

    async def carry_out(self, turn: UserTurn, _busy: bool) -> UserTurn | None:
        """Carry out a command, and show its error."""
        name, _, argument = turn.content.strip().partition(" ")
        self.face.show_user(turn)
        command = COMMANDS.get(name)
        if command is None:
            near = get_close_matches(name, COMMANDS, 1)
            self.face.error(f"there is no command {name[:60]}; try {near[0] if near else '/help'}")
            return None
        try:
            return await command.carry_out(self, argument.strip(), turn)
        except HarnessError as failure:
            self.face.error(failure.message + (f"; try: {failure.remedy}" if failure.remedy else ""))
            return None
        finally:
            self.tell_notes()

    def tell_notes(self) -> None:
        """Show each failure of the daemon once."""
        for note in self.chat_session.session.take_failures():
            if note not in self._shown_notes:
                self._shown_notes.add(note)
                self.face.note(f"the daemon: {note}")

    async def take_turn(self, sent: UserTurn, listener: Publisher) -> TurnResult:
        """Perform a turn with the model, with a skill if /skill just chose one."""
        chosen, self._skill = self._skill, None
        try:
            if chosen is not None and chosen[0] is sent:
                return await self.chat_session.use_skill(chosen[1], chosen[2], sent, listener)
            return await self.chat_session.turn(sent, listener)
        finally:
            self.tell_notes()

    async def help(self, _argument: str, _turn: UserTurn) -> None:
        """List the commands."""
        rows = [(f"{name} {each.argument}".strip(), each.about) for name, each in COMMANDS.items()]
        self.face.rows("Commands", rows)
        self.face.note(
            "What you type while an answer is made steers it: the model reads it after its next tool, or as the next "
            "turn. Ctrl-C stops the answer, Alt-Enter begins a new line, Ctrl-R searches what you typed before."
        )

    async def memory(self, argument: str, _turn: UserTurn) -> None:
        """List memories, or search for them."""
        session = self.chat_session.session
        if argument:
            result = await session.use_tool("memory_search", {"query": argument, "limit": MEMORIES})
        else:
            result = await session.use_tool("memory_list", {"limit": MEMORIES})
        if not result.ok:
            self.face.error(f"no memories: {result.error}")
            return
        rows = [_memory(row) for row in memory_rows(result.content)]
        about = f"Memories of {argument!r}" if argument else "Memories, the newest first"
        if rows:
            self.face.rows(about, rows)
        else:
            self.face.note("The daemon holds no such memory." if argument else "The daemon holds no memory yet.")

    async def why(self, _argument: str, _turn: UserTurn) -> None:
        """Show the effect of memory on the last answer."""
        effect = self.chat_session.effect
        if effect is None or effect.is_empty:
            self.face.note("Memory had no effect on the last answer." if effect else "There is no answer yet.")
            return
        self.face.rows(effect.in_brief, effect.explained())

    async def undo(self, _argument: str, _turn: UserTurn) -> None:
        """Remove the last turn from the conversation."""
        if self.chat_session.undo():
            self.face.note("The model knows nothing of the last turn now, but what its tools changed remains.")
        else:
            self.face.note("There is no turn to take back since the session was opened, cleared or summarised.")

    async def retry(self, _argument: str, turn: UserTurn) -> UserTurn | None:
        """Ask the last prompt again."""
        prompt = self.chat_session.take_back_prompt()
        if prompt is None:
            self.face.note("There is no prompt to ask again.")
            return None
        return UserTurn(content=prompt, metadata=turn.metadata)

    async def model(self, argument: str, _turn: UserTurn) -> None:
        """Show the model, or choose another."""
        if argument:
            self.chat_session.use_model(argument)
        self.face.note(
            f"{self.chat_session.model} answers{' from here on' if argument else '; /model NAME chooses another'}."
        )

    async def cost(self, _argument: str, _turn: UserTurn) -> None:
        """Show the tokens of the session and their price."""
        spent = self.chat_session.spent
        rows = [
            (name, f"{usage.input_tokens} tokens in, {usage.output_tokens} out; {self._price(name, usage)}")
            for name, usage in spent.items()
        ]
        if len(spent) > 1 and spent.keys() <= self.prices.keys():
            rows.append(("all", f"${sum(_dollars(self.prices[name], usage) for name, usage in spent.items()):.4f}"))
        rows.append(("context", f"{self.chat_session.session.context_tokens} tokens that each prompt costs now"))
        self.face.rows("Since the session was opened, as the provider counts tokens", rows)

    def _price(self, model: str, usage: Usage) -> str:
        price = self.prices.get(model)
        if price is None:
            return "agent.yaml names no price of it in runtime.prices"
        return f"${_dollars(price, usage):.4f}"

    async def compact(self, _argument: str, _turn: UserTurn) -> None:
        """Replace the conversation by a summary."""
        if not self.chat_session.session.conversation.messages:
            self.face.note("There is nothing to summarise yet.")
            return
        self.face.note("The model writes a summary …")
        summary = await self.chat_session.compact()
        self.face.note("The model continues from this summary:")
        self.face.show_reply(summary)

    async def clear(self, _argument: str, _turn: UserTurn) -> None:
        """Clear the conversation."""
        await self.chat_session.clear()
        self.face.note("The session was ended and started again: the model knows nothing of the conversation so far.")

    async def new(self, _argument: str, _turn: UserTurn) -> None:
        """Begin another session."""
        here = self.chat_session.session.identity
        await self.chat_session.switch_to(SessionIdentity(str(uuid4()), here.agent, here.project), None)
        self.face.note(f"Session {self.chat_session.session.identity.key[:SHORT_KEY]} begins.")

    async def resume(self, argument: str, _turn: UserTurn) -> None:
        """List the sessions that can be continued, or continue one."""
        if not argument:
            self._listed = self.chat_session.resumable()
            if not self._listed:
                self.face.note("There is no other session of this agent in this project.")
                return
            rows = [(f"{number}  {each.key[:SHORT_KEY]}", _about(each)) for number, each in enumerate(self._listed, 1)]
            self.face.rows("Sessions, the latest first; /resume NUMBER continues one", rows)
            return
        key = self._key_of(argument)
        stored = self.chat_session.stored(key)
        if stored.identity.key == self.chat_session.session.identity.key:
            self.face.note("This is the session you are in.")
            return
        await self.chat_session.switch_to(stored.identity, stored)
        self.tell_resumed()

    def tell_resumed(self) -> None:
        """Show the last turns of the continued conversation."""
        session = self.chat_session.session
        turns = session.conversation.turns
        prompts = [place for place, (role, _) in enumerate(turns) if role == "user"]
        self.face.note(f"Session {session.identity.key[:SHORT_KEY]} continues after {_turns(len(prompts))}.")
        for role, text in turns[prompts[-REPLAYED] if len(prompts) >= REPLAYED else 0 :]:
            if role == "user":
                self.face.show_user(UserTurn(content=text))
            elif role == "assistant":
                self.face.show_reply(text)

    async def tools(self, _argument: str, _turn: UserTurn) -> None:
        """List the tools of the model."""
        rows = [(each.name, each.description.split("\n", 1)[0]) for each in self.chat_session.session.tools.definitions]
        self.face.rows("Tools that the model may call", rows)

    async def skills(self, _argument: str, _turn: UserTurn) -> None:
        """List the skills."""
        rows = [(each.name, f"{each.description} ({each.origin})") for each in self._skills()]
        if rows:
            self.face.rows("Skills; /skill NAME uses one", rows)
        else:
            self.face.note(
                f"There are no skills. One is a folder with a SKILL.md, in {self.project}/.agents/skills "
                f"or in {self.workspace}/skills."
            )

    async def skill(self, argument: str, turn: UserTurn) -> UserTurn | None:
        """Let the model follow a skill."""
        name, _, words = argument.partition(" ")
        known = {each.name: each for each in self._skills()}
        if name not in known:
            near = get_close_matches(name, known, 1)
            remedy = f"/skill {near[0]}" if near else "/skills"
            self.face.error(f"there is no skill {name[:60]!r}; try {remedy}" if name else "name a skill: /skill NAME")
            return None
        prompt = words.strip() or f"Use the skill {name}."
        sent = UserTurn(content=prompt, metadata=turn.metadata)
        self._skill = (sent, known[name], words.strip())
        return sent

    async def leave(self, _argument: str, _turn: UserTurn) -> None:
        """End the chat."""
        self.face.close()

    def _skills(self) -> Sequence[Skill]:
        return skills(self.workspace, self.project)

    def _key_of(self, argument: str) -> str:
        """The key of the session that a number of the list, a key, or the beginning of one names."""
        if argument.isdecimal() and 1 <= int(argument) <= len(self._listed):
            return self._listed[int(argument) - 1].key
        matches = [each.key for each in self.chat_session.resumable() if each.key.startswith(argument)]
        return matches[0] if len(matches) == 1 else argument


COMMANDS: Final[Mapping[str, Command]] = {
    "/help": Command("what can be typed here", ChatCommands.help, at_once=True),
    "/memory": Command("the newest memories, or those of WORDS", ChatCommands.memory, "[WORDS]"),
    "/why": Command("how memory affected the last answer", ChatCommands.why),
    "/retry": Command("ask the last prompt again", ChatCommands.retry),
    "/undo": Command("remove the last turn from the conversation", ChatCommands.undo),
    "/model": Command("show the model; with NAME, choose another", ChatCommands.model, "[NAME]"),
    "/cost": Command("the tokens of the session and their price", ChatCommands.cost, at_once=True),
    "/compact": Command("replace the conversation by a summary", ChatCommands.compact),
    "/clear": Command("clear the conversation", ChatCommands.clear),
    "/new": Command("begin another session", ChatCommands.new),
    "/resume": Command("continue an earlier session; without SESSION, list them", ChatCommands.resume, "[SESSION]"),
    "/tools": Command("list the tools of the model", ChatCommands.tools, at_once=True),
    "/skills": Command("the skills of the project and the agent", ChatCommands.skills, at_once=True),
    "/skill": Command("let the model follow a skill", ChatCommands.skill, "NAME [WORDS]"),
    "/quit": Command("end the session and the chat; so does Ctrl-D", ChatCommands.leave, at_once=True),
}


def is_at_once(turn: UserTurn) -> bool:
    """Whether the command is carried out during an answer."""
    command = COMMANDS.get(turn.content.split(maxsplit=1)[0])
    return command is not None and command.at_once


def _dollars(price: PricePart, usage: Usage) -> float:
    return (price.input * usage.input_tokens + price.output * usage.output_tokens) / 1_000_000


def _memory(row: Mapping[str, Any]) -> tuple[str, str]:
    kind = row.get("type")
    identity = row.get("id")
    name = f"{str(identity)[:SHORT_KEY]}{f' {kind}' if isinstance(kind, str) else ''}"
    return name, str(row.get("content", ""))


def _about(known: ResumableSession) -> str:
    first = " ".join(known.first.split())
    words = first if len(first) <= 60 else f"{first[:59]}…"
    return f"{words} ({_turns(known.turns)}, {_ago(known.written)})"


def _turns(count: int) -> str:
    return "1 turn" if count == 1 else f"{count} turns"


def _ago(moment: datetime) -> str:
    minutes = max(int((datetime.now(UTC) - moment).total_seconds() // 60), 0)
    if minutes < 1:
        return "just now"
    if minutes < 120:
        return f"{minutes} min ago"
    return f"{minutes // 60} h ago" if minutes < 48 * 60 else f"{minutes // (24 * 60)} days ago"
