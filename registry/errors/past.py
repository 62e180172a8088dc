"""What is not there, or not any more: skills, what they were, changes to take back."""

from collections.abc import Sequence

from registry.errors.base import Conflict, NotFound, RegistryError


class SkillNotFound(NotFound):
    """No visible skill has this name: ``name``, and what is ``similar``."""

    sentence = "No skill named {name:q}."

    name: str
    similar: tuple[str, ...]

    def __init__(self, name: str, similar: Sequence[str] = ()) -> None:
        super().__init__(name=name, similar=tuple(similar))


class ShorthandUnclear(SkillNotFound):
    """``name`` may be a mistyped skill of a source, so no repository of that name was asked for.

    ``source`` is the source whose name it begins with, or nearly does, and ``address`` the
    explicit form of the repository.
    """

    code = "skill_not_found"

    source: str
    address: str

    def __init__(self, name: str, similar: Sequence[str], source: str, address: str) -> None:
        facts = {"name": name, "similar": tuple(similar), "source": source, "address": address}
        RegistryError.__init__(self, **facts)

    def _details(self) -> str:
        return self.fill(
            " It looks like a skill of the source {source:q}. "
            "For the repository, write {address:q}."
        )


class SkillGone(SkillNotFound):
    """A skill had this name, and is gone: ``since`` when, ``source`` and ``place`` where it was.

    Both are empty where that is not known.
    """

    code = "skill_not_found"
    sentence = "{name:q} is gone since {since}."

    since: str
    source: str
    place: str

    def __init__(self, name: str, since: str, source: str = "", place: str = "") -> None:
        facts = {"name": name, "since": since, "source": source, "place": place}
        RegistryError.__init__(self, **facts, similar=())

    def _details(self) -> str:
        return self.fill(" It was in {place:q}.") if self.facts["place"] else ""


class SkillInTrash(SkillGone):
    """A skill had this name, and was deleted: ``since``, ``source``, ``place`` as for any gone."""

    code = "skill_not_found"
    sentence = "{name:q} is in the trash (deleted {since})."

    def _details(self) -> str:
        return ""


class NotInTrash(SkillNotFound):
    """The trash holds no skill of this name."""

    code = "skill_not_found"
    sentence = "The trash holds no skill {name:q}."


class SkillNotDeleted(NotInTrash):
    """A skill of this name is there, so nothing is to be brought back."""

    code = "skill_not_found"
    sentence = "{name:q} is there, and not in the trash."


class RevisionNotFound(NotFound):
    """The skill has no such revision: ``name``, ``number``, ``known`` (numbers)."""

    sentence = "The skill {name:q} has no revision {number}"

    name: str
    number: int
    known: Sequence[int]

    def _details(self) -> str:
        return self.fill("; it has {known:list}." if self.facts["known"] else ", nor any other.")


class ContentMissing(NotFound):
    """A file of a revision is not stored: ``name``, ``number``, ``path``."""

    sentence = "{path:q} of revision {number} of {name:q} is not stored."

    name: str
    number: int
    path: str


class NotAllKept(RegistryError):
    """A skill that is gone can't be written back whole: ``name``, ``number``, ``paths`` missing."""

    sentence = "{name:q} can't come back as it was: of revision {number}, {paths:or} is not stored."

    name: str
    number: int
    paths: Sequence[str]


class ContentDamaged(RegistryError):
    """The stored bytes of a file don't have the hash that they are stored under: ``path``."""

    sentence = "The stored content of {path:q} is damaged."

    path: str


class ChangeNotUndone(Conflict):
    """The last change can't be undone, and nothing happened: ``kind``, ``name``, ``reason``.

    ``place`` (source/folder) is where the skill was; ``revision`` is the number of its content
    before the change, None if that is unknown or if there was no skill.
    """

    sentence = "Can't undo the {kind} of {name:q}: {reason}."

    kind: str
    name: str
    reason: str
    place: str
    revision: int | None


class NothingToUndo(RegistryError):
    """No change by this user is recorded."""

    sentence = "There is nothing to undo."
