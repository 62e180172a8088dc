"""What can be the matter with a skill that is asked for, and with its files."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from registry.errors.base import Conflict, Invalid, NotFound, RegistryError, Unavailable
from registry.text import MAX_CHOICES, escaped

if TYPE_CHECKING:
    from registry.model import Diagnostic


class SkillAmbiguous(Conflict):
    """Several visible skills have this name; ``refs`` tell them apart."""

    sentence = "{name:q} names {count} skills. Choose one of:"

    name: str
    refs: tuple[str, ...]
    count: int

    def __init__(self, name: str, refs: Sequence[str]) -> None:
        super().__init__(name=name, refs=tuple(refs), count=len(refs))

    def _details(self) -> str:
        lines = [f"\n  {escaped(ref)}" for ref in self.facts["refs"][:MAX_CHOICES]]
        more = self.facts["count"] - MAX_CHOICES
        return "".join(lines) + (f"\n  and {more} more" if more > 0 else "")


class SkillInvalid(RegistryError):
    """The skill is kept but can't be used: ``name``, ``problems``, if known its ``path``."""

    sentence = "The skill {name:q} can't be used:"

    name: str
    problems: "Sequence[Diagnostic]"
    path: str | None = None

    def _details(self) -> str:
        return "".join(
            f"\n  {problem.message}" + (f" (fix: {problem.fix})" if problem.fix else "")
            for problem in self.facts["problems"]
            if problem.severity == "error"
        )


class SkillNotVisible(NotFound):
    """The skill exists, and is not shown to whoever asks: ``name``, ``rule``, ``reason``."""

    sentence = "The skill {name:q} is not shown: {reason}."

    name: str
    rule: str
    reason: str


class SkillInaccessible(RegistryError):
    """A file can't be read: ``path``, ``reason``."""

    sentence = "{path:q} can't be read: {reason}."

    path: str
    reason: str


class SkillMissing(NotFound):
    """The skill's folder or file is gone from disk: ``name``, ``path``."""

    code = "skill_missing_on_disk"
    sentence = "The skill {name:q} is not on disk any more ({path})."

    name: str
    path: str


class FileTooLarge(RegistryError):
    """A file is over the limit: ``path``, ``size``, ``limit`` in bytes."""

    sentence = "{path:q} has {size} bytes, {limit} are allowed."

    path: str
    size: int
    limit: int


class NotUtf8(RegistryError):
    """A file is not UTF-8 text: ``path``, ``offset`` of the first bad byte."""

    sentence = "{path:q} is not UTF-8 text (byte {offset}). Save it as UTF-8."

    path: str
    offset: int


class OutsideSkill(Invalid):
    """A path leads out of the skill's folder: ``path``."""

    sentence = "{path:q} leads out of the skill's folder."

    path: str


class PathRefused(Invalid):
    """A file of a skill can't be written anywhere under its path: ``path``, ``reason``."""

    sentence = "{path:q} can't be a file of a skill: {reason}."

    path: str
    reason: str


class FileNotFoundInSkill(NotFound):
    """The skill has no such file: ``name``, ``path``."""

    code = "file_not_found"
    sentence = "The skill {name:q} has no file {path:q}."

    name: str
    path: str


class FileChanging(Unavailable):
    """A file changed each time while it was being read: ``path``."""

    sentence = "{path:q} kept changing while it was read. Try again when it is finished."

    path: str


class SkillHeld(SkillNotVisible):
    """It comes from elsewhere and has security errors that nobody has accepted: ``name``.

    ``source`` is the one in which it waits to be trusted, and ``address`` what was asked for, if
    that may have been made for it alone. Where it was to be brought in, ``source`` is None;
    ``problems`` are the findings, ``url`` is where it came from, if that is where to have it from.
    """

    sentence = "{name:q} comes from elsewhere and has security errors: {reason}."

    source: str | None
    address: str | None
    url: str | None
    problems: "Sequence[Diagnostic]"

    def __init__(
        self,
        name: str,
        source: str | None = None,
        *,
        address: str | None = None,
        url: str | None = None,
        problems: "Sequence[Diagnostic]" = (),
    ) -> None:
        reason = "no agent is given it" if source is not None else "it was not brought in"
        facts = {"source": source, "address": address, "url": url, "reason": reason}
        super().__init__(name=name, rule="held", problems=tuple(problems), **facts)

    def _details(self) -> str:
        return "".join(
            f"\n  {one.severity} {one.code}: {one.message}" for one in self.facts["problems"]
        )
