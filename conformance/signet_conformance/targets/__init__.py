"""Targets: named connectors, each with its driver, its files, its command and what it declares. One JSON file each."""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import json
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from signet_conformance.errors import TargetError, printable
from signet_conformance.targets.files import connector_release, find_file, package_folder, package_name, release_of
from signet_conformance.targets.kinds import DEFAULT, KINDS, ConnectorKind
from signet_conformance.targets.releases import numbers, signet_day
from signet_conformance.targets.settings import Settings, read_settings
from signet_conformance.trace import Declared

if TYPE_CHECKING:
    from signet_conformance.targets.profile import Profile, TargetDeclarations
    from signet_conformance.targets.program import Installation

_FOLDER = Path(__file__).parent
_DECLARED = ("agents", "harness", "bounds_s", "capabilities", "token", "prompt_chars", "bypass", "recovers_s")


@dataclass(frozen=True, slots=True)
class Target:
    """A named connector.

    `command` launches it, with `env` added; in both, `{python}` is this interpreter and `{root}` the settings' folder.
    `profile` is the whole document, of which the drivers read `face`, `files`, `runtime`, `tools`, `url` and more.
    `processes` says what shares a connector process: the whole run (`one`), the sessions of an `agent`, or a single
    `session`. Files are searched from `root` upwards; paths in the settings are relative to `folder`. `where` is the
    place that messages about the target name.
    """

    name: str
    driver: str
    command: tuple[str, ...]
    declared: Declared
    profile: Profile
    processes: str = "one"
    env: Mapping[str, str] = field(default_factory=dict)
    root: Path = field(default_factory=Path.cwd)
    folder: Path = field(default_factory=Path.cwd)
    where: str = "--target"
    day: str | None = None
    """The day or month in which the connector was released; None if unknown."""
    release: str | None = None
    """The connector's release; None if it is unknown, or if the profile treats all releases alike."""
    notes: Sequence[str] = ()
    """Facts about that release."""
    undriven: str | None = None
    """Why the kit cannot drive that release; None if it can."""
    real: Installation | None = None
    """The installed program in which the connector is driven; None if its harness is played."""
    every_scenario: bool = False
    """Whether a real program performs every scripted scenario, not only those made for real programs."""
    own_agents: bool = False
    """Whether the repository's own settings name the agents; those of a shipped profile are invented."""

    @property
    def declared_of_recordings(self) -> Declared:
        """The declarations for a recording that the kit did not drive, in which invented agents do not occur."""
        return self.declared if self.own_agents else msgspec.structs.replace(self.declared, agents=())

    @property
    def face_name(self) -> str:
        """The name of its face, as options take it: a shipped face's name or a file's path."""
        name = self.profile.face or ""
        return str(self.folder / name) if name.endswith(".json") else name

    @property
    def kind(self) -> ConnectorKind:
        """The kind of connector that `driver` names."""
        return KINDS[self.driver]


def names() -> Sequence[str]:
    """List the targets that the kit ships, sorted."""
    return sorted(path.stem for path in _FOLDER.glob("*.json"))


def known_names(root: Path | None = None) -> Sequence[str]:
    """List the targets that the kit ships and those of the repository around `root`, sorted."""
    return sorted({*names(), *read_settings(Path.cwd() if root is None else root).targets})


def load(name: str, root: Path | None = None, option: str = "--target") -> Target:
    """Load a target, with the settings of the repository around `root` (default: the working folder).

    `option` is the option that named it. Raises TargetError with the nearest known names, or with the wrong setting.
    """
    root = Path.cwd() if root is None else root
    settings = read_settings(root)
    every = sorted({*names(), *settings.targets})
    if name not in every:
        begin = [each for each in every if name and each.startswith(name)]
        near = begin or difflib.get_close_matches(name, every, n=3, cutoff=0.7)
        raise TargetError(
            f"no target is called {printable(name, 60)!r}, {_read_where(settings, root)}",
            where=option,
            remedy=(f"did you mean {printable(' or '.join(near), 200)}? " if near else "")
            + "all targets: signet-conformance targets",
        )
    return _build(name, _merge(name, _shipped(name), settings.own(name)), settings, root)


def _read_where(settings: Settings, root: Path) -> str:
    if settings.path is None:
        return f"and neither {printable(root.absolute())} nor a folder above it has settings"
    own = ", ".join(settings.targets) or "none"
    return f"neither in the kit nor in {printable(settings.path)}, whose targets are: {printable(own, 200)}"


def _shipped(name: str) -> Mapping[str, Any]:
    profile: dict[str, Any] = json.loads((_FOLDER / f"{name}.json").read_bytes()) if name in names() else {}
    return profile


def _merge(name: str, shipped: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Override the shipped profile with the repository's settings, in which declarations may be at the top level."""
    stated = {name: own[name] for name in _DECLARED if name in own}
    declared = {**shipped.get("declared", {}), **own.get("declared", {}), **stated}
    rest = {member: value for member, value in own.items() if member not in _DECLARED}
    driver = rest.get("driver", shipped.get("driver", DEFAULT.name))
    # The default face is that of the shipped profile with the name of the driver.
    face = _shipped(driver).get("face")
    defaults = {"format": "signet-target/1", "name": name, "title": name, **({} if face is None else {"face": face})}
    return {**defaults, **shipped, **rest, "driver": driver, "declared": declared}


def _build(name: str, data: Mapping[str, Any], settings: Settings, root: Path) -> Target:
    from signet_conformance.files.documents import demand
    from signet_conformance.targets.profile import Profile, demand_one_place, demand_placeholders, demand_read

    where, own = settings.where(name), settings.targets.get(name, {})
    profile = demand(Profile, data, where, error=TargetError)
    demand_read(profile, own, where)
    demand_one_place(own, where)
    demand_placeholders(profile, where)
    if KINDS[profile.driver].own_program and not profile.command and profile.build is None:
        raise TargetError("no command", where=where, remedy='such as command = ["node", "{root}/driver.mjs"]')
    folder = settings.folder or root

    def fill_in(word: str) -> str:
        return word.replace("{python}", sys.executable).replace("{root}", str(folder))

    target = Target(
        name=name,
        driver=profile.driver,
        command=tuple(map(fill_in, profile.command)),
        declared=_declare(profile.declared),
        profile=profile,
        processes=profile.processes,
        env={name: fill_in(value) for name, value in profile.env.items()},
        root=root,
        folder=folder,
        where=where,
        own_agents="agents" in own or "agents" in own.get("declared", {}),
    )
    target = _choose_face_by_day(target, own)
    _demand_resumable(target)
    return _as_released(target, {*own, *own.get("declared", {})}) if profile.earlier else target


def _choose_face_by_day(target: Target, own: Mapping[str, Any]) -> Target:
    """Note the day on which the connector was released, and choose the face of the harness that was current then.

    The settings may name the day; for Signet's own connectors the kit knows it. A face in the settings has precedence.
    """
    day = target.profile.released
    if day is None and target.kind.has_face:
        with contextlib.suppress(TargetError):
            file = find_file(target)
            release, package = release_of(file), package_name(package_folder(file)) or ""
            if release is not None and package.startswith(("@signet/", "@signetai/", "signet")):
                day = signet_day(release)
    if day is None:
        return target
    face = target.profile.face
    if face is None or not target.kind.has_face or "face" in own:
        return dataclasses.replace(target, day=day)
    from signet_conformance.targets.face import face_of_the_day

    profile = target.profile.model_copy(update={"face": face_of_the_day(face, day)})
    return dataclasses.replace(target, profile=profile, day=day)


def _demand_resumable(target: Target) -> None:
    """Raise TargetError for `processes = "session"` if the host cannot resume a session in a new process."""
    if target.processes != "session" or target.kind.resumes_anew:
        return
    if target.kind.resumes_anew is None:
        from signet_conformance.targets.face import find_face

        try:
            if find_face(target).data.resumes_anew:
                return
        except TargetError:
            return  # the error is reported where the face is used
    raise TargetError(
        'processes is "session", and this host resumes a session only in the process that began it',
        where=target.where,
        remedy='leave processes out, or write processes = "agent"',
    )


def _as_released(target: Target, own: Collection[str]) -> Target:
    """Apply the profile's declarations for the connector's release, except those that the settings replace (`own`)."""
    release = connector_release(target)
    if release is None:
        return target
    rows = [row for row in target.profile.earlier if numbers(release) < numbers(row.before)]
    if not rows:
        return dataclasses.replace(target, release=release)
    row = rows[0]
    differing: dict[str, Any] = {}
    for each in reversed(rows):
        differing |= each.declared.model_dump(exclude_unset=True)
    kept = {name: value for name, value in differing.items() if name not in own}
    declared = target.profile.declared.model_copy(update=kept)
    bypass = next((each.bypass_env for each in rows if each.bypass_env is not None), None)
    if bypass is not None and "bypass_env" not in own:
        profile = target.profile.model_copy(update={"bypass_env": bypass})
        target = dataclasses.replace(target, profile=profile)
    # A hook file named in the settings can be driven even if the installer's file of that release cannot.
    undriven = row.undriven if target.profile.config is None else None
    return dataclasses.replace(target, declared=_declare(declared), release=release, notes=row.notes, undriven=undriven)


def _declare(declared: TargetDeclarations) -> Declared:
    return Declared(**{**dict(declared), "agents": tuple(agent.strip() for agent in declared.agents)})
