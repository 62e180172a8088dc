"""The rules by which a personality sees skills, in their order of precedence."""

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from registry.document import coerce
from registry.model import JsonValue, Scope
from registry.settings import GlobalIngest, Personality


@dataclass(frozen=True, slots=True)
class Needs:
    """The tools, environment variables and programs that a skill requires or replaces.

    The skill is hidden if the toolset has a tool of ``fallback_for``, or if a variable of
    ``variables`` isn't set. The skill needs only one program of ``programs``.
    """

    fallback_for: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()


NOTHING: Final = Needs()

_KEYS: Final = {
    "ethosfallbackfortools": "fallback_for",
    "ethosenvrequired": "variables",
    "ethosexternalclialternatives": "programs",
}
_SECTIONS: Final = frozenset({"ethos", "metadata", "metadataethos"})
_SEPARATORS: Final = re.compile(r"[\W_]+")


def read_needs(front_matter: str | None) -> Needs:
    """Read the requirements from stored front matter (JSON).

    Values of unknown types are ignored.
    """
    if front_matter is None:
        return NOTHING
    values = json.loads(front_matter)
    return needs_of(values) if isinstance(values, Mapping) else NOTHING


def needs_of(values: Mapping[str, JsonValue]) -> Needs:
    """Read the requirements from front matter."""
    found: dict[str, tuple[str, ...]] = {}
    for path, value in _paths(values, ""):
        field = _KEYS.get(path.removeprefix("metadata"))
        if field is not None and not found.get(field):
            found[field] = _names(value)
    return Needs(**found) if any(found.values()) else NOTHING


def _paths(values: Mapping[str, JsonValue], prefix: str) -> Iterator[tuple[str, JsonValue]]:
    """Yield each value with its path, the keys that lead to it.

    The path is one word, in lower case and without separators.
    """
    for key, value in values.items():
        path = prefix + _SEPARATORS.sub("", key.casefold())
        section = coerce.from_json(value) if isinstance(value, str) else value
        if path in _SECTIONS and isinstance(section, Mapping):
            yield from _paths(section, path)
        else:
            yield path, value


def _names(value: JsonValue) -> tuple[str, ...]:
    try:
        return coerce.unique(filter(None, coerce.names(value)))
    except coerce.UnknownShape:
        return ()


@dataclass(frozen=True, slots=True)
class PolicyFacts:
    """The properties of a skill that the rules check; ``tags`` are casefolded, as stored."""

    name: str
    source: str
    scope: Scope
    tags: tuple[str, ...] = ()
    required_tools: tuple[str, ...] = ()
    needs: Needs = NOTHING
    hidden: bool = False

    @property
    def qualified_name(self) -> str:
        """The skill's name with its source; in ``allow`` and ``deny``, it means only this skill."""
        return f"{self.source}/{self.name}"


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a skill is visible, and the reason.

    ``rule`` is the code of the rule that decided; codes don't change. ``reason`` explains the
    decision in words. A visible skill may have a ``warning``.
    """

    visible: bool
    rule: str
    reason: str
    warning: str | None = None


class Host:
    """The environment in which skills run: environment variables, and programs on PATH."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._variables: dict[str, bool] = {}
        self._programs: dict[str, bool] = {}

    def is_like(self, environ: Mapping[str, str]) -> bool:
        """Tell whether ``environ`` agrees about all variables and programs looked up so far."""
        other = Host(environ)
        return all(
            other.has_variable(name) == has for name, has in self._variables.items()
        ) and all(other.has_program(name) == has for name, has in self._programs.items())

    def has_variable(self, name: str) -> bool:
        """Tell whether the variable has a value; an empty variable counts as unset."""
        return self._variables.setdefault(name, bool(self._environ.get(name)))

    def has_program(self, name: str) -> bool:
        """Tell whether a program with this name is on PATH; the name must not be a path."""
        if name not in self._programs:
            plain = bool(name) and not any(mark in name for mark in "/\\\0")
            path = self._environ.get("PATH") or ""
            self._programs[name] = plain and shutil.which(name, path=path) is not None
        return self._programs[name]


def decide(facts: PolicyFacts, personality: Personality | None, host: Host) -> Decision:
    """Decide whether a model with this personality sees a skill.

    If the personality is None, decide for all models. The caller has already checked that no other
    skill shadows this skill.
    """
    if facts.hidden:
        return HIDDEN
    if personality is None:
        return NO_PERSONALITY
    admitted = _admit(facts, personality)
    return (_unreachable(facts, personality, host) if admitted.visible else None) or admitted


def _admit(facts: PolicyFacts, personality: Personality) -> Decision:
    """Decide by the scope, the source, the name and the tags of a skill."""
    if facts.scope == "project":
        return _in("own", "it belongs to the project")
    if facts.scope == "team":
        is_own = facts.source == personality.team
        what = f"{'the' if is_own else 'not the'} team source of this personality"
        reason = f"its source {facts.source} is {what}; tags don't limit sources of scope team"
        return _in("team", reason) if is_own else _out("other-team", reason)
    ingest = personality.global_ingest
    if _named(facts, ingest.deny):
        return _out("deny", "it is in deny")
    if _named(facts, ingest.allow):
        return _in("allow", "it is in allow")
    if ingest.mode in {"none", "explicit"}:
        reason = f"the mode {ingest.mode} admits only skills in allow"
        return _out(f"mode-{ingest.mode}", reason)
    return _by_tags(facts, ingest) if ingest.mode == "tags" else _by_capability(facts, ingest)


def _by_tags(facts: PolicyFacts, ingest: GlobalIngest) -> Decision:
    rejected = [tag for tag in facts.tags if tag in ingest.reject_tags]
    if rejected:
        return _out("tag-rejected", f"reject_tags has {', '.join(rejected)}")
    if ingest.accept_tags and ingest.accept_tags.isdisjoint(facts.tags):
        return _out("tag-not-accepted", "none of its tags is in accept_tags")
    return _in("tags", "its tags are accepted")


def _by_capability(facts: PolicyFacts, ingest: GlobalIngest) -> Decision:
    if facts.required_tools:
        return _in("capability", "all its required tools are in the toolset")
    declares = "it declares no required tools"
    if ingest.fallback_unknown == "deny":
        return _out("undeclared-denied", f"{declares}, and fallback_unknown is deny")
    warning = f"{facts.qualified_name} declares no required tools: it may not work here"
    return _in("undeclared", declares, warning if ingest.fallback_unknown == "warn" else None)


def _unreachable(facts: PolicyFacts, personality: Personality, host: Host) -> Decision | None:
    """If a requirement of a skill isn't met, return the decision to hide the skill, else None."""
    missing = [tool for tool in facts.required_tools if tool not in personality.toolset]
    if missing:
        return _out("tools-missing", f"the toolset lacks {', '.join(missing)}, which it requires")
    needs = facts.needs
    if needs is NOTHING:
        return None
    present = [tool for tool in needs.fallback_for if tool in personality.toolset]
    if present:
        reason = f"it is a fallback for {', '.join(present)}, which the toolset has"
        return _out("fallback-not-needed", reason)
    unset = [name for name in needs.variables if not host.has_variable(name)]
    if unset:
        return _out("env-missing", f"it needs the environment variable {', '.join(unset)}")
    if needs.programs and not any(map(host.has_program, needs.programs)):
        reason = f"no program it needs is on the PATH: {', '.join(needs.programs)}"
        return _out("program-missing", reason)
    return None


def _named(facts: PolicyFacts, names: frozenset[str]) -> bool:
    return bool(names) and (facts.name in names or facts.qualified_name in names)


def _in(rule: str, reason: str, warning: str | None = None) -> Decision:
    return Decision(visible=True, rule=rule, reason=reason, warning=warning)


def _out(rule: str, reason: str) -> Decision:
    return Decision(visible=False, rule=rule, reason=reason)


HIDDEN: Final = _out("hidden", "its own front matter hides it from models")
NO_PERSONALITY: Final = _in("no-personality", "without a personality every visible skill is seen")
