"""The script: the model's answers, their order or the requests that they answer, and their faults."""

from __future__ import annotations

import json
import re
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, ConfigDict, Field, JsonValue, model_validator

from signet_reference_harness.documents import HarnessDocument, StrictModel

ApiName = Literal["anthropic-messages", "openai-completions", "openai-responses", "ollama-chat"]
StopReason = Literal[
    "end_turn", "stop_sequence", "tool_use", "length", "context_limit", "content_filter", "refusal", "pause"
]
LONGEST_WAIT_MS = 600_000


def _expression(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"no regular expression: {error}") from None
    return text


Milliseconds = Annotated[float, Field(ge=0, le=LONGEST_WAIT_MS, strict=False)]
Count = Annotated[int, Field(ge=0)]
Expression = Annotated[str, AfterValidator(_expression)]
HeaderName = Annotated[str, Field(pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")]
HeaderValue = Annotated[str, Field(pattern=r"^[\t\x20-\x7e]*$")]
Chunks = Annotated[
    str | Annotated[tuple[str, ...], Field(strict=False)],
    Field(description="a text, streamed word by word; or a list of texts, each streamed as one chunk"),
]


class TextPart(StrictModel):
    """A text of the model."""

    type: Literal["text"]
    text: Chunks


class ThinkingPart(StrictModel):
    """A thought of the model before it speaks."""

    type: Literal["thinking"]
    text: Chunks
    signature: str = "c2NyaXB0ZWQtc2lnbmF0dXJl"
    """the signature of Anthropic's interface"""


class ToolCallPart(StrictModel):
    """A tool that the model asks for. Several in one turn are parallel calls."""

    type: Literal["tool_call"]
    name: str
    arguments: dict[str, JsonValue] | str = Field(default_factory=dict)
    """an object; or a text that is sent unchanged, such as JSON that breaks off"""
    id: str | None = None
    """the call's id (default: a new one)"""

    @property
    def argument_text(self) -> str:
        """The arguments as JSON, or whatever text the script gives instead."""
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments, ensure_ascii=False)


class RefusalPart(StrictModel):
    """A refusal in the model's words."""

    type: Literal["refusal"]
    text: Chunks


AnyPart = Annotated[TextPart | ThinkingPart | ToolCallPart | RefusalPart, Field(discriminator="type")]
Content = Annotated[str | Annotated[tuple[AnyPart, ...], Field(strict=False)], Field()]


class ScriptedUsage(StrictModel):
    """Numbers of tokens. A missing number is estimated from the request and the answer."""

    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cache_read_tokens: Count = 0
    cache_write_tokens: Count = 0
    reasoning_tokens: Count = 0


class ErrorAnswer(StrictModel):
    """An answer that is an error."""

    status: Annotated[int, Field(ge=400, le=599)] = 500
    kind: Literal["context_limit"] | None = None
    """context_limit: the vendor's refusal of a request that is too long, whatever status the script gives"""
    type: str | None = None
    """the error's type (default: the vendor's type for the status)"""
    code: str | None = None
    """OpenAI's code of the error"""
    message: str | None = None
    retry_after_s: Annotated[float, Field(ge=0, strict=False)] | HeaderValue | None = None
    """the Retry-After header: a number of seconds, or a date as a text"""

    def status_and_message(self, too_long: str) -> tuple[int, str]:
        """The status and the message; `too_long` is the vendor's refusal of a request that is too long."""
        if self.kind == "context_limit":
            return 400, self.message or too_long
        return self.status, self.message or "scripted"


class ScriptedFault(StrictModel):
    """A fault in the middle of an answer, after a number of its chunks.

    close: the connection is closed. end: the answer ends properly, but without a reason to stop. hang: nothing more
    is sent. garbage: a malformed event, then the rest. error: the vendor's error event, then the end. Without
    streaming, in the same order: half the body; a body without a reason to stop; half the body; a malformed body;
    an error answer.
    """

    kind: Literal["close", "end", "hang", "garbage", "error"]
    after: Count = 0
    """chunks of text, thinking or arguments that are sent before it"""
    data: str | None = None
    """for garbage: the text that is sent unchanged (default: an event that breaks off)"""
    error: ErrorAnswer = ErrorAnswer(status=529)
    """for error: the error"""


class ScriptedLimit(StrictModel):
    """The vendor's rate-limit headers for one scope, such as requests or tokens. Ollama sends no such headers."""

    scope: Annotated[str, Field(pattern=r"^[a-z][a-z-]*$")]
    limit: Count
    remaining: Count
    reset_s: Annotated[float, Field(ge=0, strict=False)]


class RawEvent(StrictModel):
    """An event of a stream, sent unchanged; a line of Ollama's has no name."""

    event: str | None = None
    data: JsonValue
    """a text, which is sent unchanged; any other value is sent as JSON"""


class RawAnswer(StrictModel):
    """An answer to one interface, sent unchanged."""

    status: Annotated[int, Field(ge=200, le=599)] = 200
    body: JsonValue = None
    events: Annotated[tuple[RawEvent, ...], Field(strict=False)] = ()


class ResponsesStop(StrictModel):
    """How a response of OpenAI's responses interface ends."""

    status: str
    reason: str | None = None
    """incomplete_details.reason"""
    code: str | None = None
    """error.code"""
    message: str = "scripted"


class RawStops(StrictModel):
    """The reason to stop, as each interface names it; null is sent as null."""

    model_config = ConfigDict(alias_generator=lambda name: name.replace("_", "-"))

    anthropic_messages: str | None = None
    openai_completions: str | None = None
    openai_responses: ResponsesStop | None = None
    ollama_chat: str | None = None


class ScriptedTurn(StrictModel):
    """One answer of the model: content, an error, or a raw answer for an interface."""

    name: str | None = None
    """the turn's name in GET /requests (default: its number)"""
    content: Content = ()
    """a text, or a list of parts in order"""
    stop: StopReason | None = None
    """the reason to stop (default: the one that follows from the content)"""
    raw_stop: RawStops = RawStops()
    stop_sequence: str | None = None
    """the stop sequence, if the interface reports it"""
    usage: ScriptedUsage = ScriptedUsage()
    error: ErrorAnswer | None = None
    fault: ScriptedFault | None = None
    raw: dict[ApiName, RawAnswer] = Field(default_factory=dict)
    delay_ms: Milliseconds = 0
    """a number of milliseconds before the first byte"""
    chunk_delay_ms: Milliseconds = 0
    """a number of milliseconds before each chunk except the first"""
    headers: dict[HeaderName, HeaderValue] = Field(default_factory=dict)
    rate_limits: Annotated[tuple[ScriptedLimit, ...], Field(strict=False)] = ()

    @model_validator(mode="after")
    def _refuse_error_with_content(self) -> ScriptedTurn:
        if self.error is not None and (self.content or self.fault is not None):
            raise ValueError("a turn with an error has neither content nor fault")
        return self

    @property
    def parts(self) -> tuple[AnyPart, ...]:
        """The content as parts."""
        if isinstance(self.content, str):
            return (TextPart(type="text", text=self.content),) if self.content else ()
        return self.content


class Match(StrictModel):
    """Conditions on a text. All of them must hold."""

    contains: str | None = None
    matches: Expression | None = None
    """a regular expression, found anywhere"""


class Condition(StrictModel):
    """Conditions on a request. All of them must hold."""

    last_user: Match | None = None
    """a condition on the user's last message"""
    system: Match | None = None
    """a condition on the system prompt, including system and developer messages"""
    tool_result: Match | None = None
    """a condition that one of the tool results since the user's last message must meet"""
    anywhere: Match | None = None
    """a condition that one of the request's texts must meet"""
    after_tool: bool | None = None
    """whether the request ends with a tool's result"""
    offers_tool: str | None = None
    """the name of a tool that the model may call"""
    api: ApiName | None = None
    model: str | None = None
    stream: bool | None = None


class Rule(StrictModel):
    """A turn for each request that meets a condition; rules go before the turns in order."""

    when: Condition
    turn: ScriptedTurn
    times: Annotated[int | None, Field(ge=1)] = None
    """how many times the rule applies at most (default: no limit)"""


class Turns(StrictModel):
    """Turns that are added to a script while it plays."""

    turns: Annotated[tuple[ScriptedTurn, ...], Field(strict=False, min_length=1)]
    request: Annotated[int | None, Field(ge=1)] = None
    """the number of the request that they answer; default: the next ones"""


class Script(HarnessDocument):
    """The answers of a scripted model: a rule that matches the request, else the next turn in order."""

    model_config = ConfigDict(title="Scripted model")
    schema_file: ClassVar[str] = "harness/signet-llm-script.schema.json"

    format: Literal["signet-llm/1"]
    models: Annotated[tuple[str, ...], Field(strict=False, min_length=1)] = ("scripted",)
    """the names in the list of models; a request may name any other"""
    turns: Annotated[tuple[ScriptedTurn, ...], Field(strict=False)] = ()
    rules: Annotated[tuple[Rule, ...], Field(strict=False)] = ()
    when_out: Literal["error", "repeat", "wait"] = "error"
    """what happens after the last turn: error answers 500, repeat plays the last turn again, wait holds the request
    until POST /turns adds a turn
    """
    wait_ms: Milliseconds = 110_000
    """for wait: how many milliseconds a request is held at most"""
