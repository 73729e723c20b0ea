"""A mark of a recording in words: what the user did, what was switched, what became of it; one printable line."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from signet_conformance.errors import printable
from signet_conformance.reports.values import as_text
from signet_conformance.trace import Mark
from signet_conformance.trace.marks import (
    SLOW,
    THROWN,
    TIMED_OUT,
    BypassMark,
    FaultMark,
    HandlerMark,
    KitMark,
    LeftMark,
    LoadedMark,
    ModelMark,
    NoRequestMark,
    OfferedMark,
    OutageMark,
    PrintedMark,
    RefusedMark,
    RegisteredMark,
    ReinstalledMark,
    RemarkMark,
    ScenarioEndMark,
    ScenarioMark,
    SentMark,
    SessionKeyMark,
    SkippedMark,
    StepMark,
    StrayMark,
    UnheardPortMark,
    name_host,
    read_mark,
)

_LEAST_OF_HANDLER = 300
"""The text of an exception ends with its place in the code, which would be cut off first."""
_OUTCOMES = {THROWN: "threw", TIMED_OUT: "gave no answer", SLOW: "was slow"}


def mark_words(mark: Mark, limit: int = 120) -> str:
    """Describe a mark in about `limit` characters; an unknown one by its name and data."""
    told = read_mark(mark)
    worded = None if told is None else _WORDS.get(type(told))
    said = None if worded is None else worded(told)
    if said is None:
        data = f" {as_text(dict(mark.data), limit)}" if mark.data else ""
        return f"mark {printable(mark.name, 40)}{data}"
    return printable(said, max(limit, _LEAST_OF_HANDLER) if isinstance(told, HandlerMark) else limit)


def _reinstalled(mark: ReinstalledMark) -> str:
    counts = [f"{len(mark.twice)} entries twice"] if mark.twice else []
    counts += [f"{len(mark.old)} old"] if mark.old else []
    counts += [f"{len(mark.changed)} of others changed"] if mark.changed else []
    counts += [mark.words] if mark.words else []
    over = f" {mark.older}" if mark.older else ""
    return f"installed {mark.how or ''}{over}" + (f": {', '.join(counts)}" if counts else "")


def _scenario(mark: ScenarioMark) -> str | None:
    return mark.name and f"scenario {mark.name}{f': {mark.title}' if mark.title else ''}"


def _scenario_end(mark: ScenarioEndMark) -> str:
    return f"scenario {mark.name} ends" if mark.error is None else f"scenario {mark.name} broke off: {mark.error}"


def _step(mark: StepMark) -> str | None:
    if mark.step is None:
        return None
    number = "" if mark.index is None else f" {mark.index}"
    what = " ".join(filter(None, (mark.step, mark.tool)))
    who = "".join(f" {word} {name}" for word, name in (("in", mark.session), ("as", mark.agent)) if name)
    said = f', "{mark.text}"' if mark.text else ""
    return f"step{number}: {what}{who}{said}"


def _skipped(mark: SkippedMark) -> str:
    number = "" if mark.index is None else f" {mark.index}"
    return f"step{number} is skipped: {mark.reason}"


def _model(mark: ModelMark) -> str:
    return f"the model is asked{f' in {mark.session}' if mark.session else ''}"


def _handler(mark: HandlerMark) -> str | None:
    if mark.event is None or mark.outcome is None:
        return None
    status = "" if mark.status is None else f" with {mark.status:g}"
    took = "" if mark.ms is None else f" after {mark.ms:.0f} ms"
    became = _OUTCOMES.get(mark.outcome, mark.outcome)
    return f"handler of {mark.event} {became}{status}{took}{f': {mark.text}' if mark.text else ''}"


def _senders(mark: SentMark) -> str | None:
    places = ", ".join(f"{request[1]} by {request[2]}" for request in mark.requests if len(request) > 2)
    return f"sent {places}" if places else None


def _printed(mark: PrintedMark) -> str | None:
    return mark.text and f"printed: {mark.text}"


def _loaded(mark: LoadedMark) -> str | None:
    host = name_host(mark, "")
    if mark.ok is True:
        return f"the connector is loaded{f' by {host}' if host else ''}"
    return f"the connector cannot be loaded: {mark.words}" if mark.ok is False and mark.words else None


def _registered(mark: RegisteredMark) -> str:
    numbers = {"handlers": mark.handlers, "tools": mark.tools, "others": mark.others, "refused": mark.refused}
    taken = ", ".join(f"{number} {name}" for name, number in numbers.items() if number is not None)
    return f"the host took {taken or 'something'}{'' if mark.mode is None else f' in the mode {mark.mode}'}"


def _left_words(mark: LeftMark) -> str:
    if mark.command is None:
        return "nothing of the connector goes on after its harness"
    after = "" if mark.after_s is None else f" {mark.after_s:g} s after its harness"
    return f"a process of the connector goes on{after}: {mark.command}"


def _stray(mark: StrayMark) -> str:
    where = mark.address or "the default port"
    return f"{mark.method} {mark.path} went to {where}, not to the address that the connector was given"


def _unheard_port(mark: UnheardPortMark) -> str:
    return f"the default port is not heard{f': {mark.words}' if mark.words else ''}"


def _session_key(mark: SessionKeyMark) -> str | None:
    return None if mark.key is None else f"the harness knows {mark.session} as {mark.key}"


def _refusal(mark: RefusedMark) -> str:
    return f"{mark.method} {mark.path} was refused as a web page's (Origin: {mark.by})"


def _no_request(mark: NoRequestMark) -> str | None:
    return mark.words and f"no request: {mark.words}"


def _remark(mark: RemarkMark) -> str | None:
    return mark.text


def _bypass(mark: BypassMark) -> str:
    return f"the user switches Signet {'off' if mark.is_on else 'on again'}"


def _outage(mark: OutageMark) -> str:
    return "the daemon is away" if mark.is_on else "the daemon is back"


def _fault(mark: FaultMark) -> str | None:
    if mark.is_restart:
        return "the daemon is restarted"
    if mark.kind is None:
        return None
    more = ", ".join(f"{name} {as_text(value, 60)}" for name, value in mark.other.items())
    where = " ".join(str(value) for value in (mark.match or {}).values()) or "every request"
    return f"fault {'on' if mark.is_on else 'off'}: {mark.kind}{f' ({more})' if more else ''} at {where}"


_WORDS: Mapping[type[KitMark], Callable[..., str | None]] = {
    ScenarioMark: _scenario,
    ScenarioEndMark: _scenario_end,
    StepMark: _step,
    SkippedMark: _skipped,
    SessionKeyMark: _session_key,
    ModelMark: _model,
    HandlerMark: _handler,
    SentMark: _senders,
    PrintedMark: _printed,
    LoadedMark: _loaded,
    RegisteredMark: _registered,
    ReinstalledMark: _reinstalled,
    OfferedMark: lambda mark: f"offers the tools {', '.join(mark.tools)}",
    LeftMark: _left_words,
    StrayMark: _stray,
    UnheardPortMark: _unheard_port,
    RefusedMark: _refusal,
    NoRequestMark: _no_request,
    RemarkMark: _remark,
    BypassMark: _bypass,
    OutageMark: _outage,
    FaultMark: _fault,
}
"""Kind of mark to its words; None for a mark without content, or one that is described by its data."""
