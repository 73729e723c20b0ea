"""Requirements on every request: body, content type, route, runtime path, health first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from signet_conformance import facts
from signet_conformance.facts import Call, Recording
from signet_conformance.files.json_values import text_in
from signet_conformance.rules.outcome import PASS, Outcome, breach_of, judge_cut, pass_if, undecided
from signet_conformance.trace.marks import ObservedMark, SentMark

_CLAIMING = facts.LIFECYCLE | facts.CLAIM_CHECKING


def body_is_object(recording: Recording) -> Iterator[Outcome]:
    """The body of every POST, PATCH and PUT is a JSON object."""
    for call in recording.requests:
        if call.method not in ("POST", "PATCH", "PUT") or call.path == "/mcp" or call.path.endswith("/renew"):
            continue
        body = call.exchange.request.body
        coding = (call.header("content-encoding") or "identity").strip().lower()
        if coding not in ("", "identity"):
            yield breach_of("SIG-HTTP-001", "encoded", call, received=coding, coding=coding)
        elif call.cut:
            yield judge_cut(call)
        else:
            yield pass_if(body is not None and body.object is not None) or breach_of(
                "SIG-HTTP-001",
                "no body" if body is None else "no object",
                call,
                received=None if body is None else body.value,
            )


def content_type_is_json(recording: Recording) -> Iterator[Outcome]:
    """A request with a body says that it is application/json."""
    for call in recording.requests:
        if call.exchange.request.body is None or call.method == "GET":
            continue
        sent = call.header("content-type")
        media_type = (sent or "").split(";", 1)[0].strip().lower()
        yield (
            pass_if(media_type == "application/json")
            or breach_of("SIG-HTTP-002", "none" if sent is None else "another", call, received=sent)
        )


def route_is_served(recording: Recording) -> Iterator[Outcome]:
    """Method and path name a route that this version of the daemon serves."""
    for call in recording.requests:
        route = recording.routes.find(call.method, call.path) if call.served else None
        if route is not None and route.since is not None and not recording.at_least(route.since):
            yield undecided(
                call,
                message=f"{call.method} {route.path} is served from daemon {route.since} on; which daemons before it"
                " serve it is not known",
            )
        elif call.served:
            yield PASS
        elif not recording.routes.lacks(call.method, call.path):
            yield undecided(call, message=f"not all routes of daemon {recording.daemon_version} are known")
        else:
            near = recording.routes.nearest(call.method, call.path)
            such_as = "" if near is None else f", such as {near.method} {near.path}"
            yield breach_of("SIG-HTTP-003", "not served", call, recording=recording, such_as=such_as)


def runtime_path_is_known(recording: Recording) -> Iterator[Outcome]:
    """A runtime path, if one is sent, is exactly "plugin" or "legacy"."""
    for call in recording.requests:
        header = _path_header(call)
        if header is not None and header not in ("plugin", "legacy"):
            name = "header" if header == call.header(facts.PATH_HEADER) else "two headers"
            yield breach_of("SIG-HTTP-004", name, call, received=header, header=header)
        elif call.operation in _CLAIMING and text_in(call.body.get("runtimePath")) not in ("", "plugin", "legacy"):
            yield breach_of("SIG-HTTP-004", "body", call)
        elif header is not None:
            yield PASS


def _path_header(call: Call) -> str | None:
    """The runtime path of the header as the daemon reads it: the values of one that was sent several times, joined."""
    if call.header(facts.PATH_HEADER) is None:
        return None
    return ", ".join([value for name, value in call.exchange.request.headers if name.lower() == facts.PATH_HEADER])


def runtime_paths_agree(recording: Recording) -> Iterator[Outcome]:
    """The runtime path of the header and that of the body are the same."""
    for call in recording.calls:
        body, header = text_in(call.body.get("runtimePath")), call.header(facts.PATH_HEADER)
        if not (body and header):
            continue
        yield pass_if(header == body) or breach_of("SIG-HTTP-005", "disagree", call, header=header)


def keyed_hook_has_runtime_path(recording: Recording) -> Iterator[Outcome]:
    """A lifecycle hook with a session key carries a runtime path, in its header or its body."""
    for call in recording.keyed_hooks:
        sent = call.header(facts.PATH_HEADER) or call.body.get("runtimePath")
        yield (pass_if(call.runtime_path is not None) or breach_of("SIG-HTTP-006", "no path", call, received=sent))


def key_keeps_runtime_path(recording: Recording) -> Iterator[Outcome]:
    """A session key is used with one runtime path until the session ends."""
    owners: dict[str, Call] = {}
    # Before 0.109 only a start claims a session, and an end releases it whatever its path.
    only_starts_claim = not recording.at_least("0.109")
    checking = [c for c in recording.of(*facts.CLAIM_CHECKING) if c.key is not None]
    for call in sorted([*recording.keyed_hooks, *checking], key=lambda c: c.seq):
        key, path = str(call.key), call.runtime_path
        if call.operation == facts.END and (path is None or only_starts_claim):
            # It conflicts with no claim, and still ends the session.
            owners.pop(key, None)
        if path is None or (call.operation == facts.END and only_starts_claim):
            continue
        owner = owners.get(key)
        if owner is not None and owner.runtime_path != path:
            yield breach_of("SIG-HTTP-007", "another path", call, owner, received=path, owner=owner, path=path)
            continue
        if call.operation == facts.END:
            owners.pop(key, None)
        elif owner is None and call.operation in ((facts.START,) if only_starts_claim else facts.LIFECYCLE):
            owners[key] = call
        yield PASS


def hooks_are_not_disabled(recording: Recording) -> Iterator[Outcome]:
    """No request switches its own hooks off with x-signet-no-hooks: 1."""
    for call in recording.requests:
        if not call.is_hook:
            continue
        yield pass_if(call.header("x-signet-no-hooks") != "1") or breach_of("SIG-HTTP-008", "switched off", call)


def health_comes_first(recording: Recording) -> Iterator[Outcome]:
    """A GET /health was answered with 200 before the first hook or memory request begins."""
    calls = (call for call in recording.calls if call.operation in facts.FIRST_CALLS)
    first = min(calls, key=lambda call: call.t0, default=None)
    if first is None:
        return
    probes = recording.of(facts.HEALTH, cut=True)
    before = [probe for probe in probes if probe.t1 <= first.t0]
    answered = [probe for probe in before if probe.status == 200]
    if any(probe.accepted for probe in answered):
        yield PASS
    elif any(probe.delivered and _is_unread(probe) for probe in answered):
        yield undecided(first, message="a GET /health was answered 200, but its body is not in the recording")
    elif recording.timeline.switches.closed_between(-1, first.seq):
        yield undecided(first, message="no daemon listened for a while before: a GET /health may have been refused")
    elif recording.timeline.was_stopped(-1, first.seq):
        yield undecided(first, message="the host stopped a hook at its timeout before: its GET /health may be lost")
    elif _is_asked_by_a_program_beside(recording, first, probes):
        yield undecided(first, message="the connector's programs ran side by side: the order of their calls is random")
    elif _probe_was_lost(recording, first, probes):
        lost = "did not arrive, or was given up before it was answered"
        yield undecided(first, message=f"a GET /health was sent before and {lost}: the machine may be too slow")
    else:
        spoilt = next((probe.fault for probe in before if probe.fault is not None), None)
        kind = "spoilt" if spoilt is not None else "not awaited" if probes else "not asked"
        yield breach_of("SIG-HEALTH-001", kind, first, fault=spoilt)


def _probe_was_lost(recording: Recording, first: Call, probes: Sequence[Call]) -> bool:
    """Whether the driver saw more probes sent before a call than the daemon could answer by the end of its step."""
    now = recording.timeline.step_at(first.seq)
    if now is None:
        return False
    sent = 0
    for mark in recording.marks(SentMark):
        step = recording.timeline.step_at(mark.seq)
        if step is None or step.seq > now.seq:
            break
        routes = [request[:2] for request in mark.requests]
        if step.seq == now.seq and (first.method, first.path) in routes:
            routes = routes[: routes.index((first.method, first.path))]
        sent += routes.count(("GET", "/health"))
    answerable = [probe for probe in probes if probe.error != "client_closed" or probe.fault is not None]
    return sent > sum(probe.seq < recording.timeline.end_of(now) for probe in answerable)


def _is_unread(call: Call) -> bool:
    response = call.exchange.response
    return response is not None and response.body is not None and response.body.undecoded is not None


def _is_asked_by_a_program_beside(recording: Recording, first: Call, probes: Sequence[Call]) -> bool:
    """Whether a harness ran a program of the connector in the step of a call, and that program asked for health too.

    A harness may start a hook and a memory server at once: on a busy machine either comes first, and nothing shows
    which of them asked.
    """
    step = recording.timeline.step_at(first.seq)
    if step is None:
        return False
    end = recording.timeline.end_of(step)
    ran = any(step.seq < mark.seq <= end and mark.env for mark in recording.marks(ObservedMark))
    return ran and any(p.accepted and p.status == 200 and step.seq < p.seq < end for p in probes)
