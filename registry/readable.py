"""What a registry that is open answers without changing anything on disk."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from registry.catalog import resolve, search
from registry.core import OpenRegistry
from registry.db.queries import listing, summary
from registry.db.queries.filters import Filters, Sort
from registry.db.queries.listing import Facet
from registry.db.queries.summary import Stats
from registry.model import Page, SearchHit, Skill, SkillDetail

if TYPE_CHECKING:
    from registry.catalog.check import Checked
    from registry.catalog.why import Explanation


class ReadableRegistry(OpenRegistry):
    """The reading half of `SkillRegistry`: listings, searches, one skill, why, check."""

    def list(
        self,
        filters: Filters | None = None,
        *,
        sort: Sort = "name",
        reverse: bool = False,
        limit: int | None = None,
        offset: int = 0,
    ) -> Page:
        """Return a page of skills: by name, or newest first by ``created`` or ``updated``."""
        chosen = filters or Filters()
        return listing.list_skills(
            self.reader, chosen, sort=sort, reverse=reverse, limit=limit, offset=offset
        )

    def search(
        self, query: str, filters: Filters | None = None, *, limit: int = 20, offset: int = 0
    ) -> tuple[Sequence[SearchHit], int]:
        """Return a page of hits, the best first, and how many skills match in all."""
        return search.search(self.reader, query, filters or Filters(), limit=limit, offset=offset)

    def get(self, name: str) -> SkillDetail:
        """Return everything of one skill, as it is on disk now.

        Raises `SkillNotFound`, `SkillAmbiguous`, `SkillMissing`.
        """
        from registry.catalog.reading import get

        return get(self, name)

    def read(self, name: str) -> str:
        """Return the text of a skill's SKILL.md, as it is on disk now.

        Raises as `get`, and `SkillInvalid`, `SkillInaccessible`, `FileTooLarge`, `NotUtf8`.
        """
        from registry.catalog.reading import read_text

        return read_text(self, name)

    def read_bytes(self, name: str) -> bytes:
        """Return the bytes of a skill's SKILL.md, whether they can be understood or not."""
        from registry.catalog.reading import read_bytes

        return read_bytes(self, name)

    def read_file(self, name: str, path: str) -> bytes:
        """Return the bytes of one supporting file, by its path relative to the skill's folder.

        Raises as `get`, and `OutsideSkill`, `FileNotFoundInSkill`, `FileTooLarge`.
        """
        from registry.catalog.reading import read_file

        return read_file(self, name, path)

    def refresh(self, name: str) -> Skill | None:
        """Bring one skill in line with its folder; None: nothing was different. Raises as `get`."""
        from registry.catalog.reading import refresh

        return refresh(self, name)

    def resolve(self, name: str) -> Skill:
        """Return the listing's view of the skill that a name or ref means, from the database."""
        from registry.db.queries.rows import skills

        return skills([resolve.find(self.reader, name)[1]])[0]

    def why(self, subject: str, personality: str | None = None) -> "Sequence[Explanation]":
        """Explain why a skill (by name, ref or path) is, or isn't, listed for a personality.

        Raises `SkillNotFound`, `PersonalityNotFound`.
        """
        from registry.catalog.why import explain

        return explain(self, subject, personality)

    def tags(self) -> Sequence[Facet]:
        """Count the visible skills of each tag."""
        return listing.tags(self.reader)

    def kinds(self) -> Sequence[Facet]:
        """Count the visible skills of each kind."""
        return listing.kinds(self.reader)

    def categories(self) -> Sequence[Facet]:
        """Count the visible skills of each category."""
        return listing.categories(self.reader)

    def stats(self) -> Stats:
        """Say what the registry holds, how big and how fresh it is."""
        return summary.stats(self.reader)

    def check(self, targets: Sequence[str] = ()) -> "Sequence[Checked]":
        """Check folders, or registered skills by name, ref or source; without targets all."""
        from registry.catalog.check import check

        return check(self, targets)
