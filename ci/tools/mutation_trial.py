"""Try changes of the rules, in a pytest plugin, so that the tests are collected only once.

First the plugin runs each test on the unchanged code and notes the lines that it reaches. Then it makes each change in
the imported code, runs the tests that reach the changed statement until one fails, and undoes the change. A fork tries
several changes. If one of its tests then fails on the unchanged code, each of these changes is tried in its own fork.
"""

from __future__ import annotations

import gc
import mmap
import os
import resource
import shutil
import signal
import struct
import sys
import tempfile
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from math import inf
from pathlib import Path
from types import CodeType, FrameType, FunctionType, MappingProxyType, ModuleType
from typing import Any

import pytest
from _pytest.runner import runtestprotocol
from mutation_changes import Change, statement_lines

SURVIVED, KILLED, ENDLESS, NO_IMPORT, NO_PYTHON = "survived", "killed", "endless", "does not import", "no Python"
MEMORY_BYTES = 4 * 2**30
AT_A_TIME = 50
MOST_WITNESSES = 600
LONGEST_S = 300
"""A fork is killed if one change takes longer than this, by the clock."""
_OUTCOMES = ("", SURVIVED, KILLED, ENDLESS, NO_IMPORT, NO_PYTHON)
_SLOT = struct.Struct("ii")
_SPOILED = 7
"""The exit status of a fork in which a test fails on the unchanged code."""


Tell = Callable[[Change, str, str], None]
"""Receives each change, its outcome, and the test or the signal that decided it."""


class Trial:
    """The plugin: tries `changes` in `jobs` forks at a time, and begins none after the time `until`.

    `noticed_by` names the test that noticed a change last time.
    """

    def __init__(
        self,
        modules: Sequence[Path],
        changes: Sequence[Change],
        tell: Tell,
        *,
        jobs: int,
        until: float = inf,
        noticed_by: Mapping[Change, str] = MappingProxyType({}),
    ) -> None:
        self.modules = modules
        self.changes = changes
        self.tell = tell
        self.noticed_by = noticed_by
        self.jobs = jobs
        self.until = until
        self._files = {str(module) for module in modules}
        self._folder = Path(tempfile.mkdtemp(prefix="signet-mutation-"))
        self._calls = 0
        self._undo: list[tuple[FunctionType, CodeType]] | None = []
        self._caches: list[Callable[[], None]] | None = None
        self._kills: dict[Path, Counter[int]] = defaultdict(Counter)
        self._within: dict[Path, Counter[int]] = {}
        self._known_selections: dict[tuple[Path, range | None], Sequence[int]] = {}
        self._slots = mmap.mmap(-1, _SLOT.size * max(1, len(changes)))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Replace pytest's loop: run each test once to see what it reaches, then try the changes in forks."""
        if session.testsfailed:
            raise session.Interrupted("the tests could not be collected")
        self._items = [item for item in session.items if isinstance(item, pytest.Function)]
        self._numbers = {item.nodeid: number for number, item in enumerate(self._items)}
        self._note_reached_lines()
        gc.unfreeze()  # gc.get_objects does not return frozen objects
        self._functions = self._functions_by_code()
        self._compiled = {module: _compile(module, module.read_text("utf-8")) for module in self.modules}
        self._names = {module.__file__: module for module in self._modules_on_trial()}
        gc.collect()
        gc.freeze()
        try:
            self._try_all()
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)
        return True

    def _note_reached_lines(self) -> None:
        self._reached: dict[str, dict[int, set[int]]] = {file: defaultdict(set) for file in self._files}
        self._durations: list[float] = []
        self._breadth: list[int] = []
        lines: set[tuple[str, int]] = set()

        def within(frame: FrameType, *_: object) -> Any:
            lines.add((frame.f_code.co_filename, frame.f_lineno))
            return within

        def entered(frame: FrameType, *_: object) -> Any:
            return within(frame) if frame.f_code.co_filename in self._files else None

        for number, item in enumerate(self._items):
            self._clear_caches()
            lines.clear()
            began = time.process_time()
            sys.settrace(None if _generates_input(item) else entered)
            try:
                failed = self._fails(item)
            finally:
                sys.settrace(None)
            self._durations.append(time.process_time() - began)
            if failed:
                raise pytest.UsageError(f"{item.nodeid} fails without any change")
            self._breadth.append(len(lines))
            for file, line in lines:
                self._reached[file][line].add(number)

    def _fails(self, item: pytest.Function) -> bool:
        """Run a test, and return whether it fails. If it needs only parameters and a folder, it runs without pytest."""
        arguments: dict[str, Any] = dict(item.callspec.params) if hasattr(item, "callspec") else {}
        if "tmp_path" in item.fixturenames:
            self._calls += 1
            arguments["tmp_path"] = self._folder / str(os.getpid()) / str(self._calls)
        if set(item.fixturenames) - arguments.keys() - {"request", "tmp_path_factory"}:
            return any(report.failed for report in runtestprotocol(item, log=False, nextitem=None))
        if "tmp_path" in arguments:
            arguments["tmp_path"].mkdir(parents=True)
        try:
            item.obj(**arguments)
        except BaseException:  # noqa: BLE001 - pytest.fail and pytest.skip raise a BaseException
            return True
        return False

    def _clear_caches(self) -> None:
        """Clear the caches of the modules on trial: they hold results of other code than the present one."""
        if self._caches is None:
            values = (value for module in self._modules_on_trial() for value in vars(module).values())
            self._caches = [value.cache_clear for value in values if hasattr(value, "cache_clear")]
        for clear in self._caches:
            clear()

    def _modules_on_trial(self) -> Iterator[ModuleType]:
        return (module for module in list(sys.modules.values()) if getattr(module, "__file__", None) in self._files)

    def _functions_by_code(self) -> dict[CodeType, list[FunctionType]]:
        living: dict[CodeType, list[FunctionType]] = defaultdict(list)
        for thing in gc.get_objects():
            if isinstance(thing, FunctionType) and thing.__code__.co_filename in self._files:
                living[thing.__code__].append(thing)
        return living

    def _witnesses(self, change: Change) -> list[int]:
        """The tests that may notice a change: first the one that noticed it last time, then likely and fast ones."""
        kills, last = self._kills[change.module], self._numbers.get(self.noticed_by.get(change, ""))
        likely = sorted(self._tests_reaching(change), key=lambda n: (-kills[n], self._durations[n]))
        return likely if last is None else [last, *(n for n in likely if n != last)]

    def _tests_reaching(self, change: Change) -> Sequence[int]:
        """A selection of the tests that reach the statement of a change.

        Many tests judge by every rule. The selection takes those that reach the fewest lines, those of whose lines the
        most are in the module, and all in a file or folder with the module's name. Tests with generated input are slow,
        and count only for the module whose test file they are in.
        """
        lines = statement_lines(change.module, change.position)
        known = self._known_selections.get((change.module, lines))
        if known is not None:
            return known
        by_line = self._reached[str(change.module)]
        reaching = set().union(*(by_line[line] for line in (by_line if lines is None else lines) if line in by_line))
        most = MOST_WITNESSES // 2 if lines is not None else len(self._items)
        within = self._within.get(change.module)
        if within is None:
            within = self._within[change.module] = Counter(n for numbers in by_line.values() for n in numbers)
        narrow = self._in_rounds(reaching, lambda n: self._breadth[n])[:most]
        here = self._in_rounds(reaching, lambda n: -within[n] / self._breadth[n])[:most]
        named = (n for n in reaching if _is_named_after(self._items[n], change.module))
        drawing = (n for n, item in enumerate(self._items) if _is_twin(item, change.module) and _generates_input(item))
        chosen = self._known_selections[change.module, lines] = sorted({*narrow, *here, *named, *drawing})
        return chosen

    def _in_rounds(self, numbers: Iterable[int], key: Callable[[int], float]) -> list[int]:
        """Order tests by `key`: the best case of each function, then the second of each, since cases are much alike."""
        met: Counter[Any] = Counter()
        turns: list[tuple[int, int]] = []
        for number in sorted(numbers, key=key):
            function = self._items[number].obj
            turns.append((met[function], number))
            met[function] += 1
        return [number for _, number in sorted(turns, key=lambda turn: turn[0])]

    def _try_all(self) -> None:
        running: dict[int, list[int]] = {}
        waiting = deque(range(len(self.changes)))
        alone: set[int] = set()
        while running or (waiting and time.monotonic() < self.until):
            while waiting and len(running) < self.jobs and time.monotonic() < self.until:
                size = 1 if waiting[0] in alone else AT_A_TIME
                places = [waiting.popleft() for _ in range(min(size, len(waiting)))]
                for place in places:
                    _SLOT.pack_into(self._slots, place * _SLOT.size, 0, -1)
                    self._tests_reaching(self.changes[place])  # computed here, so that the next fork knows it too
                child = os.fork()
                if child == 0:
                    self._run_fork(places)
                running[child] = places
            child, status = os.wait()
            places = running.pop(child)
            shutil.rmtree(self._folder / str(child), ignore_errors=True)
            if os.waitstatus_to_exitcode(status) == _SPOILED and len(places) > 1:
                alone.update(places)
                waiting.extendleft(reversed(places))
                continue
            waiting.extendleft(reversed(self._report(places, status)))

    def _report(self, places: Sequence[int], status: int) -> list[int]:
        """Report the outcomes that a fork wrote down, and return the places of changes that it did not try."""
        for at, place in enumerate(places):
            outcome, by = _SLOT.unpack_from(self._slots, place * _SLOT.size)
            change = self.changes[place]
            if not outcome and os.WIFSIGNALED(status):
                self.tell(change, ENDLESS, signal.Signals(os.WTERMSIG(status)).name)
                return [*places[at + 1 :]]
            if not outcome and not at:
                raise RuntimeError(f"the fork for {change} ended with {status} and wrote no outcome")
            if not outcome:
                return [*places[at:]]
            if by >= 0:
                self._kills[change.module][by] += 1
            self.tell(change, _OUTCOMES[outcome], self._items[by].nodeid if by >= 0 else "")
        return []

    def _run_fork(self, places: Sequence[int]) -> None:
        """Try changes in this forked process, and end the process."""
        status = 1
        try:
            gc.disable()  # a collection would touch, and so copy, all that is shared with the parent
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
            signal.signal(signal.SIGPROF, _raise_endless)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.dup2(1, 2)
            killers: set[int] = set()
            for place in places:
                signal.alarm(LONGEST_S)
                change = self.changes[place]
                outcome, by = self._outcome(change)
                _SLOT.pack_into(self._slots, place * _SLOT.size, _OUTCOMES.index(outcome), by)
                if by >= 0:
                    self._kills[change.module][by] += 1
                    killers.add(by)
                if not self._undo_change():
                    break
            else:
                status = _SPOILED if any(self._fails(self._items[number]) for number in killers) else 0
        finally:
            os._exit(status)

    def _outcome(self, change: Change) -> tuple[str, int]:
        self._undo = []
        try:
            new = change.compiled_statement
        except SyntaxError:
            return NO_PYTHON, -1
        witnesses = self._witnesses(change)
        try:
            self._apply(change, new)
        except Exception:  # noqa: BLE001 - changed code may raise anything while it is imported
            return NO_IMPORT, -1
        self._clear_caches()
        try:
            for number in witnesses:
                # Processor time, so that a test is not stopped because the machine is busy.
                signal.setitimer(signal.ITIMER_PROF, 1 + 20 * self._durations[number])
                failed = self._fails(self._items[number])
                left, _ = signal.setitimer(signal.ITIMER_PROF, 0)
                if failed:
                    return (KILLED if left else ENDLESS), number
        except _EndlessError:
            return ENDLESS, number
        return SURVIVED, -1

    def _undo_change(self) -> bool:
        """Undo a change. Return False if its module was imported again, which cannot be undone."""
        if self._undo is None:
            return False
        for function, code in self._undo:
            function.__code__ = code
        self._clear_caches()
        return True

    def _apply(self, change: Change, new: CodeType) -> None:
        """Put the changed code in place. If only an import executes it, import its module again."""
        undo = []
        for before, after in _changed_code(self._compiled[change.module], new):
            for function in self._functions.get(before, ()):
                undo.append((function, function.__code__))
                # The change may remove a name from a closure; then the function that makes the closure changes too.
                with suppress(ValueError):
                    function.__code__ = after
        self._undo = undo or None
        if not undo:
            _import_again(self._names[str(change.module)], _compile(change.module, change.source))


class _EndlessError(BaseException):
    """A test took far longer than without the change. A BaseException, so that no tested code catches it."""


def _raise_endless(*_: object) -> None:
    raise _EndlessError


def _compile(module: Path, source: str) -> CodeType:
    return compile(source, str(module), "exec", dont_inherit=True)


def _changed_code(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """Yield the code objects that a change alters, before and after it, innermost first."""
    inner = {(code.co_qualname, code.co_firstlineno): code for code in new.co_consts if isinstance(code, CodeType)}
    for code in old.co_consts:
        if isinstance(code, CodeType) and (changed := inner.get((code.co_qualname, code.co_firstlineno))) is not None:
            yield from _changed_code(code, changed)
    if old != new:
        yield old, new


def _import_again(module: ModuleType, code: CodeType) -> None:
    """Execute a module's body again, and replace its objects in all modules that imported them by name."""
    anew = ModuleType(module.__name__)
    vars(anew).update({name: value for name, value in vars(module).items() if name.startswith("__")})
    exec(code, vars(anew))  # noqa: S102 - running the changed code is what a mutation test does
    for name, value in vars(anew).items():
        before = vars(module).get(name)
        if name.startswith("__") or before is value:
            continue
        if isinstance(before, FunctionType) and isinstance(value, FunctionType):
            before.__defaults__, before.__kwdefaults__ = value.__defaults__, value.__kwdefaults__
            continue
        for other in list(sys.modules.values()):
            if getattr(other, "__name__", "").startswith(("signet_conformance", "tests")) and (
                vars(other).get(name) is before
            ):
                setattr(other, name, value)


def _generates_input(item: pytest.Function) -> bool:
    return hasattr(item.function, "hypothesis")


def _is_twin(item: pytest.Function, module: Path) -> bool:
    return item.path.name == f"test_{module.name}"


def _is_named_after(item: pytest.Function, module: Path) -> bool:
    return module.stem.split("_")[0] in {*item.path.stem.split("_"), item.path.parent.name}
