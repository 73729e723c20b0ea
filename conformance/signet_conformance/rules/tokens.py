"""Requirements on tokens and secrets: where they travel, and where they must not occur."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import unquote

from signet_conformance.facts import Call, Recording
from signet_conformance.rules.outcome import PASS, Outcome, fail, undecided

_TOKEN = re.compile(r"sig_sk_[A-Za-z0-9_-]{8,}|Bearer [A-Za-z0-9._~+/=-]{16,}|<redacted:\d+>")
_JWT = re.compile(r"eyJ[A-Za-z0-9_-]{7,}+(\.[A-Za-z0-9_-]{10,}+\.[A-Za-z0-9_-]{10,}+)?")
"""Its other parts are optional, so that a run of such characters without them is passed over whole: no place in it
begins a token that its first did not, and to look from each would take a time that grows with its square."""
_BEARER = re.compile(r"Bearer \S+")
_HINTS = (("_", "sig_sk_"), ("J", "eyJ"), ("B", "Bearer "), ("<", "<redacted:"))
"""What every token holds, after the character of it that text holds least: one is found many times faster."""
_HINTS_IN_BYTES = tuple((rare.encode(), hint.encode()) for rare, hint in _HINTS)


def token_travels_in_authorization(recording: Recording) -> Iterator[Outcome]:
    """The token travels as "Bearer <token>" in Authorization, and nowhere else."""
    clean: set[object] = set()
    for call in recording.calls:
        authorizations: list[str] = []
        if call.header("authorization") is not None:
            authorizations = [v for name, v in call.exchange.request.headers if name.lower() == "authorization"]
        stray = _stray_token(call) if _may_hold_token(call, clean) else None
        if stray is not None:
            pointer, value = stray
            yield fail(
                call,
                message="a token stands outside the Authorization header",
                pointer=pointer,
                expected="tokens in Authorization only",
                received=value[:12] + "…",
            )
        elif authorizations:
            wrong = next((value for value in authorizations if not _BEARER.fullmatch(value)), None)
            if wrong is None:
                yield PASS
            else:
                yield fail(
                    call,
                    message="Authorization is not `Bearer <token>`",
                    pointer="/request/headers",
                    expected="Bearer <token>",
                    received=wrong.split(" ", 1)[0][:20] + " …",
                )


def _may_hold_token(call: Call, clean: set[object]) -> bool:
    """False only where no token can stand: one pass over flat strings, for the walk through all is slow.

    `clean` collects headers that hold none: they are the same in most requests.
    """
    request = call.exchange.request
    if "%" in request.path:
        return True
    texts = [request.path]
    for name, value in request.query:
        texts += (name, value)
    if request.headers not in clean:
        if any(_hinted(value) for name, value in request.headers if name.lower() != "authorization"):
            return True
        clean.add(request.headers)
    body = None if request.body is None else request.body.value
    if isinstance(body, str):
        texts.append(body)
    elif isinstance(body, dict):
        texts += body
        for member in body.values():
            if type(member) is str:
                texts.append(member)
            elif isinstance(member, (dict, list)) and member:
                raw = call.exchange.raw
                return b"\\u" in raw or any(rare in raw and hint in raw for rare, hint in _HINTS_IN_BYTES)
    elif body is not None:
        return True
    return _hinted("\n".join(texts))


def _hinted(text: str) -> bool:
    return any(rare in text and hint in text for rare, hint in _HINTS)


def _stray_token(call: Call) -> tuple[str, str] | None:
    request = call.exchange.request
    if token := _token_in(request.path) or _token_in(unquote(request.path)):
        return "/request/path", token
    for name, value in request.query:
        if token := _token_in(name) or _token_in(value):
            return "/request/query", token
    for name, value in request.headers:
        if name.lower() != "authorization" and (token := _token_in(value)):
            return "/request/headers", token
    if request.body is None:
        return None
    for pointer, text in strings(request.body.value):
        if token := _token_in(text):
            return f"/request/body/{'json' if request.body.kind == 'json' else 'text'}{pointer}", token
    return None


def _token_in(text: str) -> str | None:
    if match := _TOKEN.search(text):
        return match[0]
    return next((match[0] for match in _JWT.finditer(text) if match[1]), None)


def strings(value: object) -> Iterator[tuple[str, str]]:
    """Every string of a JSON value with its pointer, member names too; iterative, whatever the depth."""
    pending: list[tuple[str, object]] = [("", value)]
    while pending:
        pointer, node = pending.pop()
        if isinstance(node, str):
            yield pointer, node
        elif isinstance(node, dict):
            for name, child in node.items():
                step = f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}"
                yield step, name
                pending.append((step, child))
        elif isinstance(node, list):
            pending.extend((f"{pointer}/{index}", child) for index, child in enumerate(node))


def token_is_sent(recording: Recording) -> Iterator[Outcome]:
    """Where the connector was given a token, every request but /health carries it."""
    if not recording.declared.token:
        return
    for call in recording.calls:
        if call.path == "/health":
            continue
        if call.header("authorization"):
            yield PASS
        else:
            yield fail(
                call,
                message="a request without the token that the connector was given",
                pointer="/request/headers",
                expected="Authorization: Bearer <token>",
                received=None,
                fold=f"{call.method} {call.operation or call.path}",
            )


def canary_stays_out(recording: Recording) -> Iterator[Outcome]:
    """No request holds the value of a secret."""
    canaries = recording.declared.canaries
    if recording.calls and not canaries:
        yield undecided(message="no secret value (canary) is declared for the trace")
        return
    for call in recording.calls:
        request = call.exchange.request
        places = [("/request/path", request.path), *(("/request/query", f"{n}={v}") for n, v in request.query)]
        # The token itself belongs into Authorization; a canary anywhere else is a leak.
        places += [("/request/headers", v) for n, v in request.headers if n.lower() != "authorization"]
        if request.body is not None:
            places += [(f"/request/body/{request.body.kind}{p}", s) for p, s in strings(request.body.value)]
        leak = next(((p, c) for p, s in places for c in canaries if c and c in s), None)
        if leak is None:
            yield PASS
        else:
            yield fail(
                call,
                message=f"the secret {canaries[leak[1]]!r} occurs in a request",
                pointer=leak[0],
                expected="no secret value",
                received=leak[1],
            )
