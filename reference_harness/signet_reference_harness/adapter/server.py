"""Serves a runtime adapter over HTTP (signet-adapter/1): one POST per method, for harnesses in any language.

docs/driver-protocol.md describes the calls, schemas/driver/signet-adapter-1.schema.json their parameters. The answer is
200 whatever the daemon does: `failure` then says why there is nothing to inject. 400 means that the call is wrong, and
the answer says how; 403 that it comes from a foreign page; 404 that its method is unknown; 413 that it is too large.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from pydantic import ConfigDict, Field

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
from signet_reference_harness.local_server import answer_request, body_within, foreign, json_response

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import Receive, Scope, Send

PROTOCOL: Final = "signet-adapter/1"
MOST_BODY: Final = 16 * 1024 * 1024
SESSIONS_KEPT: Final = 10_000
"""How many sessions' identities are remembered."""
_CLOSE: Final = {"connection": "close"}

Members = dict[str, Any]


class _Call(StrictModel):
    # A member that this server does not know comes from a later harness.
    model_config = ConfigDict(strict=True, frozen=True, extra="ignore", defer_build=True, populate_by_name=True)

    key: str = Field(alias="sessionKey")
    agent: str | None = Field(None, alias="agentId")
    project: str | None = None


class _Start(_Call):
    source: StartSource


class _Prompt(_Call):
    user_message: str = Field(alias="prompt")
    last_assistant_message: str | None = Field(None, alias="lastAssistantMessage")


class _End(_Call):
    reason: str
    transcript: str


class _PreCompaction(_Call):
    message_count: int = Field(alias="messageCount", ge=0)


class _Compacted(_Call):
    summary: str


METHODS: Final[Mapping[str, tuple[type[_Call], Callable[..., Any], str]]] = {
    "onSessionStart": (_Start, SessionStartParams, "on_session_start"),
    "onUserPromptSubmit": (_Prompt, PromptSubmitParams, "on_user_prompt_submit"),
    "onSessionEnd": (_End, SessionEndParams, "on_session_end"),
    "onPreCompaction": (_PreCompaction, PreCompactionParams, "on_pre_compaction"),
    "onCompactionComplete": (_Compacted, CompactionCompleteParams, "on_compaction_complete"),
}
"""For each method: the model of its call, the parameters made from it, and the name of the adapter's method."""


class RuntimeAdapterServer:
    """`adapter` as an ASGI application.

    A session belongs to `agent` unless a call names another. Its project has to be given only once: later calls of the
    same key use it too. With `any_host` clients may use other names for the server than those of the loopback. The
    server does not close the adapter.
    """

    def __init__(self, adapter: RuntimeAdapter, agent: str, *, any_host: bool = False) -> None:
        self._adapter = adapter
        self._agent = agent
        self._any_host = any_host
        self._known: OrderedDict[str, SessionIdentity] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        await answer_request(scope, receive, send, self._answer)

    async def _answer(self, request: Request) -> Response:
        refusal = foreign(request, any_host=self._any_host)
        if refusal:
            return _problem(403, refusal, headers=_CLOSE)
        method = request.url.path.removeprefix("/")
        if method not in METHODS:
            return _problem(404, f"there is no method {method[:80]!r}", f"POST one of {', '.join(METHODS)}")
        if request.method != "POST":
            return _problem(405, f"{method} knows no {request.method}", "POST it", {"allow": "POST"})
        body = await body_within(request, MOST_BODY)
        if body is None:
            return _problem(413, f"the call is larger than {MOST_BODY} bytes", "send a smaller one", _CLOSE)
        model, params, event = METHODS[method]
        try:
            call = parse_document(model, body, method)
            given = call.model_dump(exclude=set(_Call.model_fields))
            result = await getattr(self._adapter, event)(params(session=self._session(call), **given))
            return json_response(_describe_result(result))
        except HarnessError as error:
            return _problem(400, error.message, error.remedy)
        except Exception as crash:  # noqa: BLE001 - an adapter may be third-party code: its crash ends no server
            return _problem(500, f"the adapter failed: {type(crash).__name__}: {crash}"[:300], "tell its author")

    def _session(self, call: _Call) -> SessionIdentity:
        """The identity of a call's session. Raises IdentityError, or StepError if its project is unknown."""
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


def _describe_result(result: Any) -> Members:
    """A result as JSON: the texts for the harness, and the reason if there are none."""
    reply = result if isinstance(result, Reply) else result.reply
    failure = {} if reply.failure is None else {"failure": printable(f"{reply.failure}: {reply.detail}")}
    members = {"inject": "inject", "summary_prompt": "summaryPrompt", "guidelines": "guidelines"}
    return {member: getattr(result, name) for name, member in members.items() if hasattr(result, name)} | failure


def _problem(
    status: int, message: str, remedy: str | None = None, headers: Mapping[str, str] | None = None
) -> Response:
    members = {"error": printable(message), **({"try": printable(remedy)} if remedy else {})}
    return json_response(members, status, headers)
