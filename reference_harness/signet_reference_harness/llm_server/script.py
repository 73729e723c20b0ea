"""The script: the model's answers, their order or the requests that they answer, and their faults."""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Literal

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
    """what Anthropic signs it with"""


class ToolCallPart(StrictModel):
    """A tool that the model asks for. Several in one turn are parallel calls."""

    type: Literal["tool_call"]
    name: str
    arguments: dict[str, JsonValue] | str = Field(default_factory=dict)
    """an object; or a text that is sent as it is, such as JSON that breaks off"""
    id: str | None = None
    """default: an id that no other call has"""


class RefusalPart(StrictModel):
    """A refusal in the model's words."""

    type: Literal["refusal"]
    text: Chunks


AnyPart = Annotated[TextPart | ThinkingPart | ToolCallPart | RefusalPart, Field(discriminator="type")]
Content = Annotated[str | Annotated[tuple[AnyPart, ...], Field(strict=False)], Field()]


class ScriptedUsage(StrictModel):
    """Token counts. A missing one is estimated from the request and the answer."""

    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cache_read_tokens: Count = 0
    cache_write_tokens: Count = 0
    reasoning_tokens: Count = 0


class ErrorAnswer(StrictModel):
    """An answer that is an error."""

    status: Annotated[int, Field(ge=400, le=599)] = 500
    kind: Literal["context_limit"] | None = None
    """context_limit: the vendor's own refusal of a request that is too long, whatever its status"""
    type: str | None = None
    """default: what the vendor says for the status"""
    code: str | None = None
    """OpenAI's code of the error"""
    message: str | None = None
    retry_after_s: Annotated[float, Field(ge=0, strict=False)] | HeaderValue | None = None
    """the Retry-After header: seconds, or a date as text"""


class ScriptedFault(StrictModel):
    """A fault in the middle of an answer, after a number of its chunks.

    close: the connection is closed. end: the answer ends in order, without a reason to stop. hang: nothing more comes.
    garbage: a malformed event, then the rest. error: the vendor's error event, and the end.
    Without streaming: half the body, no reason to stop, half the body, a malformed body, an error answer.
    """

    kind: Literal["close", "end", "hang", "garbage", "error"]
    after: Count = 0
    """chunks of text, thinking or arguments that are sent before it"""
    data: str | None = None
    """garbage: what is sent as it is; default: an event cut short"""
    error: ErrorAnswer = ErrorAnswer(status=529)
    """error: which"""


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
    """a text is sent as it is, anything else as JSON"""


class RawAnswer(StrictModel):
    """An answer to one interface, as it is: no part of it is made from the turn."""

    status: Annotated[int, Field(ge=200, le=599)] = 200
    body: JsonValue = None
    events: Annotated[tuple[RawEvent, ...], Field(strict=False)] = ()


class ResponsesStop(StrictModel):
    """How a response of OpenAI's responses interface ended."""

    status: str
    reason: str | None = None
    """incomplete_details.reason"""
    code: str | None = None
    """error.code"""
    message: str = "scripted"


class RawStops(StrictModel):
    """The reason to stop in an interface's own word; null is a null in the answer."""

    model_config = ConfigDict(alias_generator=lambda name: name.replace("_", "-"))

    anthropic_messages: str | None = None
    openai_completions: str | None = None
    openai_responses: ResponsesStop | None = None
    ollama_chat: str | None = None

    def has(self, api: ApiName) -> bool:
        """Whether the script says a word for this interface."""
        return api.replace("-", "_") in self.model_fields_set

    def word(self, api: ApiName) -> Any:
        """The word; meaningless unless given."""
        return getattr(self, api.replace("-", "_"))


class ScriptedTurn(StrictModel):
    """One answer of the model: content, or an error, or for an interface a raw answer."""

    name: str | None = None
    """how GET /requests names it; default: its place"""
    content: Content = ()
    """a text, or a list of parts in order"""
    stop: StopReason | None = None
    """default: what the content makes it"""
    raw_stop: RawStops = RawStops()
    stop_sequence: str | None = None
    """the sequence that stopped it, where told"""
    usage: ScriptedUsage = ScriptedUsage()
    error: ErrorAnswer | None = None
    fault: ScriptedFault | None = None
    raw: dict[ApiName, RawAnswer] = Field(default_factory=dict)
    delay_ms: Milliseconds = 0
    """before the first byte"""
    chunk_delay_ms: Milliseconds = 0
    """before each chunk but the first"""
    headers: dict[HeaderName, HeaderValue] = Field(default_factory=dict)
    rate_limits: Annotated[tuple[ScriptedLimit, ...], Field(strict=False)] = ()

    @model_validator(mode="after")
    def _says_one_thing(self) -> ScriptedTurn:
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
    """the last message of the user"""
    system: Match | None = None
    """the system prompt, with system and developer messages"""
    tool_result: Match | None = None
    """any result of a tool since the user last spoke"""
    anywhere: Match | None = None
    """any text of the request"""
    after_tool: bool | None = None
    """whether the request ends with a tool's result"""
    offers_tool: str | None = None
    """the name of a tool that the model may call"""
    api: ApiName | None = None
    model: str | None = None
    stream: bool | None = None


class Rule(StrictModel):
    """A turn for every request that is like this, before the turns are looked at."""

    when: Condition
    turn: ScriptedTurn
    times: Annotated[int | None, Field(ge=1)] = None
    """how often at most; default: always"""


class Turns(StrictModel):
    """Turns that are added to a script while it plays."""

    turns: Annotated[tuple[ScriptedTurn, ...], Field(strict=False, min_length=1)]
    request: Annotated[int | None, Field(ge=1)] = None
    """the number of the request that they answer; default: the next ones"""


class Script(HarnessDocument):
    """The answers of a scripted model: rules first, then turns in order, one a request."""

    model_config = ConfigDict(title="Scripted model")
    schema_file: ClassVar[str] = "harness/signet-llm-script.schema.json"

    format: Literal["signet-llm/1"]
    models: Annotated[tuple[str, ...], Field(strict=False, min_length=1)] = ("scripted",)
    """what a list of models names; any is served"""
    turns: Annotated[tuple[ScriptedTurn, ...], Field(strict=False)] = ()
    rules: Annotated[tuple[Rule, ...], Field(strict=False)] = ()
    when_out: Literal["error", "repeat", "wait"] = "error"
    """after the last turn: error answers 500, repeat plays the last one again, wait holds the request until POST /turns
    adds one
    """
    wait_ms: Milliseconds = 110_000
    """wait: how long at most"""
