"""Check untrusted files in the same way as a sync, before they become the user's own skills."""

import os
import tempfile
from collections.abc import Collection, Mapping

from registry.core import Core
from registry.db.read.skills import same_files
from registry.disk.atomic import Place, make_folder, open_named, write_below
from registry.disk.walk import Walk
from registry.errors import ChangeRefused, SkillHeld, SkillInvalid
from registry.sync.reading import Reading, read_folder, security_errors, tree_hash

_FOLDER = "skill"


def check_untrusted(
    core: Core,
    name: str,
    files: Mapping[str, bytes],
    executable: Collection[str],
    *,
    url: str | None = None,
) -> None:
    """Raise `SkillHeld` if files have security errors, `SkillInvalid` if they can't be scanned.

    ``url`` is the address from which the user can get the files again. ``url`` is None if the files
    are being fetched from this address now.
    """
    found = read_files(core, files, executable).findings
    broken = [one for one in found if (one.category, one.severity) == ("format", "error")]
    if broken:
        raise SkillInvalid(name=name, problems=broken)
    if security_errors(found):
        grave = [one for one in found if one.category == "security" and one.severity != "info"]
        raise SkillHeld(name, url=url, problems=grave)


def security_status(
    core: Core, name: str, files: Mapping[str, bytes], executable: Collection[str]
) -> tuple[bool, bool]:
    """Tell whether a sync would quarantine a skill with these files, and whether it would warn."""
    reading = read_files(core, files, executable)
    has_warning = any(
        one.category == "security" and one.severity != "info" for one in reading.findings
    )
    if not security_errors(reading.findings):
        return False, has_warning
    known = tree_hash(reading.found, reading.hashes)
    same = [] if known is None else same_files(core.reader, name, known)
    return all(one.quarantined for one in same), has_warning


def read_files(
    core: Core, files: Mapping[str, bytes], executable: Collection[str], folder: str = _FOLDER
) -> Reading:
    """Read files from memory in the same way as a sync reads a folder on disk.

    ``folder`` is the name of the folder, which need not exist yet. Raises `ChangeRefused` if a
    temporary folder can't be written.
    """
    try:
        with tempfile.TemporaryDirectory(prefix="skill-registry-") as root:
            with open_named(root) as home, make_folder(Place(home, folder)) as tree:
                for path, data in files.items():
                    write_below(tree, path, data, 0o755 if path in executable else 0o644)
            found = Walk(os.path.realpath(root), core.settings.limits, ()).one(folder)
            assert found is not None  # noqa: S101  # the folder was created above
            return read_folder(os.path.realpath(root), found, core.settings.limits, {})
    except OSError as error:  # for example, because the disk is full
        reason = error.strerror or str(error)
        raise ChangeRefused(path=tempfile.gettempdir(), reason=reason) from error
