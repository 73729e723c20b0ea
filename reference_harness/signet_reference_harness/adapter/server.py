"""A runtime adapter behind HTTP (signet-adapter/1): one POST a method, for harnesses in whatever language.

docs/driver-protocol.md describes the calls, schemas/driver/signet-adapter-1.schema.json their parameters. The answer is
200 whatever the daemon does: `failure` then says why there is nothing to inject. 400 is a call that cannot be made,
with what is wrong with it; 403 one from a foreign page; 404 an unknown method; 413 a body that is too large.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pydantic import ConfigDict, Field
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from signet_reference_harness.daemon_client.adapter import (
    CompactionCompleteParams,
    PreCompactionParams,
    PromptSubmitParams,
    RuntimeAdapter,
    SessionEndParams,
    SessionStartParams,
    StartSource,
)
from signet_reference_harness.daemon_client.reply import Reply
from signet_reference_harness.documents import StrictModel, parse_document
from signet_reference_harness.errors import HarnessError, StepError, printable
from signet_reference_harness.identity import SessionIdentity
from signet_reference_harness.local_server import body_within, foreign, json_response

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

PROTOCOL: Final = "signet-adapter/1"
MOST_BODY: Final = 16 * 1024 * 1024
SESSIONS_KEPT: Final = 10_000
"""Of how many sessions it is remembered who they are."""
_CLOSE: Final = {"connection": "close"}

Said = dict[str, Any]


class _Call(StrictModel):
    # A member that this server does not know is of a later harness.
    model_config = ConfigDict(strict=True, frozen=True, extra="ignore", defer_build=True, populate_by_name=True)

    key: str = Field(alias="sessionKey")
    agent: str | None = Field(None, alias="agentId")
    project: str | None = None


class _Start(_Call):
    source: StartSource


class _Prompt(_Call):
    prompt: str
    last_reply: str | None = Field(None, alias="lastAssistantMessage")


class _End(_Call):
    reason: str
    transcript: str


class _PreCompaction(_Call):
    count: int = Field(alias="messageCount", ge=0)


class _Compacted(_Call):
    summary: str


class RuntimeAdapterServer:
    """`adapter` as an ASGI application.

    A session is that of `agent` unless a call says another. Its project may be said once: later calls of the same key
    mean it too. With `any_host` the server may be asked by other names than those of the loopback. The adapter is not
    closed by the server.
    """

    def __init__(self, adapter: RuntimeAdapter, agent: str, *, any_host: bool = False) -> None:
        self._adapter = adapter
        self._agent = agent
        self._any_host = any_host
        self._known: OrderedDict[str, SessionIdentity] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        try:
            response = await self._answer(Request(scope, receive))
        except ClientDisconnect:
            return
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        refusal = foreign(request, any_host=self._any_host)
        if refusal:
            return _problem(403, refusal, headers=_CLOSE)
        method = request.url.path.removeprefix("/")
        if method not in self._METHODS:
            return _problem(404, f"there is no method {method[:80]!r}", f"POST one of {', '.join(self._METHODS)}")
        if request.method != "POST":
            return _problem(405, f"{method} knows no {request.method}", "POST it", {"allow": "POST"})
        body = await body_within(request, MOST_BODY)
        if body is None:
            return _problem(413, f"the call is larger than {MOST_BODY} bytes", "send less of it", _CLOSE)
        model, perform = self._METHODS[method]
        try:
            return json_response(await perform(self, parse_document(model, body, method)))
        except HarnessError as error:
            return _problem(400, error.message, error.remedy)
        except Exception as crash:  # noqa: BLE001 - an adapter may be a stranger's code: its crash ends no server
            return _problem(500, f"the adapter failed: {type(crash).__name__}: {crash}"[:300], "see its author")

    async def _start(self, call: _Start) -> Said:
        result = await self._adapter.on_session_start(
            SessionStartParams(session=self._session(call), source=call.source)
        )
        return {"inject": result.inject, **_failure(result.reply)}

    async def _prompt(self, call: _Prompt) -> Said:
        params = PromptSubmitParams(
            session=self._session(call), user_message=call.prompt, last_assistant_message=call.last_reply
        )
        result = await self._adapter.on_user_prompt_submit(params)
        return {"inject": result.inject, **_failure(result.reply)}

    async def _end(self, call: _End) -> Said:
        params = SessionEndParams(session=self._session(call), transcript=call.transcript, reason=call.reason)
        return _failure(await self._adapter.on_session_end(params))

    async def _pre_compaction(self, call: _PreCompaction) -> Said:
        params = PreCompactionParams(session=self._session(call), message_count=call.count)
        result = await self._adapter.on_pre_compaction(params)
        return {"summaryPrompt": result.summary_prompt, "guidelines": result.guidelines, **_failure(result.reply)}

    async def _compacted(self, call: _Compacted) -> Said:
        params = CompactionCompleteParams(session=self._session(call), summary=call.summary)
        return _failure(await self._adapter.on_compaction_complete(params))

    def _session(self, call: _Call) -> SessionIdentity:
        """The identity of a call's session. Raises IdentityError, or StepError where its project is unknown."""
        known = self._known.get(call.key)
        project = call.project or (known.project if known else None)
        if project is None:
            raise StepError(
                f"the project of session {call.key[:80]!r} is not known", remedy="call onSessionStart with a 'project'"
            )
        agent = call.agent or (known.agent if known else self._agent)
        identity = SessionIdentity(call.key, agent, project, self._adapter.harness)
        self._known[call.key] = identity
        self._known.move_to_end(call.key)
        if len(self._known) > SESSIONS_KEPT:
            self._known.popitem(last=False)
        return identity

    _METHODS: ClassVar[Mapping[str, tuple[type[_Call], Callable[[RuntimeAdapterServer, Any], Awaitable[Said]]]]] = {
        "onSessionStart": (_Start, _start),
        "onUserPromptSubmit": (_Prompt, _prompt),
        "onSessionEnd": (_End, _end),
        "onPreCompaction": (_PreCompaction, _pre_compaction),
        "onCompactionComplete": (_Compacted, _compacted),
    }


def _failure(reply: Reply) -> Said:
    return {} if reply.failure is None else {"failure": printable(f"{reply.failure}: {reply.detail}")}


def _problem(
    status: int, message: str, remedy: str | None = None, headers: Mapping[str, str] | None = None
) -> Response:
    told = {"error": printable(message), **({"try": printable(remedy)} if remedy else {})}
    return json_response(told, status, headers)
