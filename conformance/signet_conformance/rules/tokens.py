"""Requirements on tokens and secrets: where they travel, and where they must not occur."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import chain
from typing import NamedTuple
from urllib.parse import unquote

from signet_conformance.facts import REDACTION, Call, Recording
from signet_conformance.files.json_values import escape, texts_within
from signet_conformance.rules.outcome import PASS, Outcome, breach_of, pass_if, undecided
from signet_conformance.trace.marks import LoadedMark, PrintedMark, StepMark, StepName

_TOKEN = re.compile(r"sig_sk_[A-Za-z0-9_-]{8,}|Bearer [A-Za-z0-9._~+/=-]{16,}|<redacted:\d+>")
_JWT = re.compile(r"eyJ[A-Za-z0-9_-]{7,}+(\.[A-Za-z0-9_-]{10,}+\.[A-Za-z0-9_-]{10,}+)?")
"""The other two parts are optional, so that a long run of such characters without them is skipped in one match. A
search from each of its characters would take quadratic time."""
_BEARER = re.compile(r"Bearer \S+")


def token_travels_in_authorization(recording: Recording) -> Iterator[Outcome]:
    """The token travels as "Bearer <token>" in Authorization, and nowhere else."""
    own = cache(partial(_own_tokens, recording))
    for call in recording.calls:
        stray = _stray_token(call, own) if _may_hold_token(call) else None
        if stray is not None and stray.unreadable:
            yield undecided(
                call,
                message=f"a redaction mark in {stray.place}, which is not JSON in the recording:"
                " it is not known whether it was a token",
            )
        elif stray is not None and stray.spoken and not _is_the_connectors(recording, stray):
            yield undecided(
                call, message=f"a token-shaped text in {stray.place}, which a person or a model may have written"
            )
        elif stray is not None:
            yield breach_of("SIG-HTTP-009", "elsewhere", call, received=stray.text[:12] + "…", stray=stray)
        elif call.header("authorization") is not None:
            sent = [value for name, value in call.exchange.request.headers if name.lower() == "authorization"]
            wrong = [value for value in sent if not _BEARER.fullmatch(value)]
            yield pass_if(not wrong) or breach_of(
                "SIG-HTTP-009", "no bearer", call, received=wrong[0].split(" ", 1)[0][:20] + " …"
            )


def _may_hold_token(call: Call) -> bool:
    """False if no token can be in the request: one look at all texts together is quicker than a search in each."""
    request = call.exchange.request
    texts = [unquote(request.path), *chain.from_iterable(request.query)]
    texts += [value for name, value in request.headers if name.lower() != "authorization"]
    if request.body is not None:
        texts += texts_within(request.body.value)
    text = "\n".join(texts)
    # The rarest character of each prefix first: one character is found many times faster than several.
    return (
        ("_" in text and "sig_sk_" in text)
        or ("J" in text and "eyJ" in text)
        or ("<" in text and REDACTION in text)
        or ("B" in text and "Bearer " in text)
    )


class _Stray(NamedTuple):
    """A token-shaped `text` outside Authorization, and its place.

    `spoken`: it is in a text that a person or a model wrote, after the word `beside`. `unreadable`: it is a redaction
    mark in a body that the recording holds as text, in which any word after a secret's name was redacted, such as
    `"secrets": {"DEPLOY_TOKEN": "name"}`.
    """

    text: str
    pointer: str
    place: str
    spoken: bool = False
    unreadable: bool = False
    beside: str = ""

    @property
    def is_doubtful(self) -> bool:
        """Whether it may be no token of the connector's."""
        return self.spoken or self.unreadable


_SPOKEN = frozenset(
    {
        *("userMessage", "userPrompt", "lastAssistantMessage", "transcript", "summary", "content", "query", "q"),
        *("sessionContext", "keywordQuery", "hints", "structured", "args", "errorText"),
    }
)
"""Members and parameters that hold what a person or a model wrote, or a tool said."""
_LONGEST_LINE = 300
_OF_TOOLS = frozenset({"arguments", "command", "reason"})
"""Further such members, of requests that are not hooks: they hold what a model gave a tool."""
_IDENTIFYING = ("x-signet-", "x-api-key", "x-auth")
"""Prefixes of the headers that identify the caller. A redaction mark in another header need not be a token."""
_REDACTED = re.compile(r"<redacted:\d+>")
_WORD = re.compile(r"\w+")


def _own_tokens(recording: Recording) -> frozenset[str]:
    """The redaction tokens that stand for what the connector sends as Authorization."""
    headers = {c.header("authorization") or "" for c in recording.whole.calls}
    return frozenset(token for header in headers for token in _REDACTED.findall(header))


def _stray_token(call: Call, own: Callable[[], frozenset[str]]) -> _Stray | None:
    """The first token-shaped text outside Authorization that is surely a token, else the first doubtful one."""
    doubtful: _Stray | None = None
    for stray in _stray_tokens(call, own):
        if not stray.is_doubtful:
            return stray
        doubtful = doubtful or stray
    return doubtful


def _stray_tokens(call: Call, own: Callable[[], frozenset[str]]) -> Iterator[_Stray]:
    request = call.exchange.request
    free = _SPOKEN if call.is_hook else _SPOKEN | _OF_TOOLS
    for path in dict.fromkeys((request.path, unquote(request.path))):
        for token in _tokens_in(path):
            yield _Stray(token, "/request/path", "the path")
    for name, value in request.query:
        for token in (*_tokens_in(name), *_tokens_in(value)):
            yield _Stray(token, "/request/query", f"the query parameter {name[:40]}", name in free)
    for name, value in request.headers:
        if name.lower() != "authorization":
            for token in _tokens_in(value):
                if not _REDACTED.fullmatch(token) or name.lower().startswith(_IDENTIFYING) or token in own():
                    yield _Stray(token, "/request/headers", f"the header {name.lower()[:40]}")
    if request.body is None:
        return
    is_json = request.body.kind == "json"
    kind = "json" if is_json else "text"
    meant_as_json = "json" in (call.header("content-type") or "").lower()
    for pointer, text in _strings(request.body.value):
        for token in _tokens_in(text):
            unreadable = meant_as_json and not is_json and bool(_REDACTED.fullmatch(token)) and token not in own()
            names = pointer.split("/")
            spoken = not free.isdisjoint(names) and names[-1] != text
            place = f"{pointer[:80]} of the body" if pointer else "the body"
            beside = _WORD.findall(text.partition(token)[0])[-1:] if spoken else []
            yield _Stray(token, f"/request/body/{kind}{pointer}", place, spoken, unreadable, "".join(beside))


def _tokens_in(text: str) -> Iterator[str]:
    yield from (match[0] for match in _TOKEN.finditer(text))
    yield from (match[0] for match in _JWT.finditer(text) if match[1])


def _is_the_connectors(recording: Recording, stray: _Stray) -> bool:
    """Whether marks show all that was said, and this text is not in it, so that it comes from the connector.

    A redaction mark is compared less strictly. A secret inside JSON or code may get another mark than where it was
    said, and a value may be redacted only where it follows a secret's name. Only the connector has the token that the
    kit gave it.
    """
    steps = recording.marks(StepMark)
    is_given = stray.text == recording.declared.given_token
    if not is_given and any(step.step == StepName.TOOL and step.arguments is None for step in steps):
        return False  # it may have been an argument of a tool
    spoken = texts_within([[step.text, step.reply, step.arguments, dict(step.other)] for step in steps])
    if _REDACTED.fullmatch(stray.text):
        is_unnamed = is_given or stray.beside not in spoken
        return bool(steps) and is_unnamed and not any(map(_REDACTED.search, spoken))
    return bool(steps) and not any(stray.text in said for said in spoken)


def _strings(value: object) -> Iterator[tuple[str, str]]:
    """Every text of a JSON value with its pointer, names of members included, at any depth."""
    pending: list[tuple[str, object]] = [("", value)]
    while pending:
        pointer, node = pending.pop()
        if isinstance(node, str):
            yield pointer, node
        elif isinstance(node, dict):
            for name, child in node.items():
                step = f"{pointer}/{escape(name)}"
                yield step, name
                pending.append((step, child))
        elif isinstance(node, list):
            pending.extend((f"{pointer}/{index}", child) for index, child in enumerate(node))


_HEALTH = frozenset({"/health", "/health/live", "/health/ready"})
"""Paths that the daemon answers without a token."""


def token_is_sent(recording: Recording) -> Iterator[Outcome]:
    """If the connector was given a token, every request but /health carries it.

    Only the kit's own recordings say which token that is. In others, any token passes.
    """
    if not recording.declared.token:
        return
    given = recording.declared.given_token
    for call in recording.requests:
        # A daemon 0.58 in team mode requires a token for /health too.
        exempt = call.path in _HEALTH and (recording.at_least("0.59") or call.status != 401)
        if call.method == "OPTIONS" or exempt:
            continue
        sent = call.header("authorization")
        if sent and (given is None or given in sent):
            yield PASS
        elif sent:
            yield breach_of("SIG-HTTP-013", "another token", call, received=sent)
        else:
            yield breach_of("SIG-HTTP-013", "no token", call)


def printed_text_is_clean(recording: Recording) -> Iterator[Outcome]:
    """The connector prints neither the token nor a secret that it was given."""
    hosts = recording.marks(LoadedMark)
    if any(host.real for host in hosts):
        yield undecided(message="the output of a real program's connector is not recorded")
        return
    canaries = recording.declared.canaries
    for mark in recording.marks(PrintedMark):
        for line in (mark.text or "").splitlines():
            leak = next((token for token in canaries if token and token in line), None)
            if leak is not None and any(leak in (step.text or "") for step in recording.marks(StepMark)):
                yield undecided(message=f"the user has typed {leak}, and the connector may print the user's words")
                break
            if leak is not None:
                name = "token" if leak == recording.declared.given_token else "secret"
                where = "while it is loaded" if mark.index is None else f"in step {mark.index}"
                yield breach_of("SIG-SEC-004", name, where=where, line=line.strip()[:_LONGEST_LINE])
                break
        else:
            yield PASS


def canary_stays_out(recording: Recording) -> Iterator[Outcome]:
    """No request holds the value of a secret."""
    canaries = recording.declared.planted
    if not canaries:
        if recording.whole.calls:
            yield undecided(message="no secret value (canary) is declared for the trace")
        return
    for call in recording.calls:
        request = call.exchange.request
        places = [("/request/path", request.path), *(("/request/query", f"{n}={v}") for n, v in request.query)]
        # The token itself belongs into Authorization; a canary anywhere else is a leak.
        places += [("/request/headers", v) for n, v in request.headers if n.lower() != "authorization"]
        if request.body is not None:
            # The line of a cut body keeps some of its text.
            kind = "text" if request.body.kind == "cut" else request.body.kind
            places += [(f"/request/body/{kind}{p}", s) for p, s in _strings(request.body.value)]
        pointer, leak = next(((p, c) for p, s in places for c in canaries if c and c in s), ("", ""))
        yield pass_if(not leak) or breach_of(
            "SIG-SEC-003", "leaked", call, received=leak, secret=canaries[leak], pointer=pointer
        )
