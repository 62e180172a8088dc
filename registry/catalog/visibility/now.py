"""Whether a skill may be shown as it is on disk now, where the database is behind that."""

from collections.abc import Mapping

from registry.catalog.reading import CurrentSkill, document_now
from registry.catalog.visibility.decisions import decide_document
from registry.core import Core
from registry.errors import SkillInvalid, SkillNotVisible
from registry.settings import Personality
from registry.sync.sources import find as find_source


def shown_now(
    core: Core,
    handle: str,
    current: CurrentSkill,
    personality: Personality | None,
    environ: Mapping[str, str],
) -> CurrentSkill:
    """Return a skill which by what is stored may be shown, if it may be by its file, too.

    Raises `SkillInvalid`, `SkillNotVisible`, and what reading the file raises.
    """
    if not current.is_behind:
        return current
    document, skill = document_now(core, current), current.stored.skill
    if not document.usable:
        raise SkillInvalid(name=handle, problems=document.diagnostics, path=skill.path)
    source = find_source(core, skill.source)
    choice = decide_document(document, source, personality, environ)
    if not choice.visible:
        raise SkillNotVisible(name=handle, rule=choice.rule, reason=choice.reason)
    return current
