"""Export skills for agent skill discovery (RFC 0.2.0): an index, SKILL.md files and archives.

The archives contain neither times nor owners. So for equal files, the archives are equal.
"""

import gzip
import io
import json
import os
import tarfile
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import ClassVar, Final, Literal

from registry.core import Core
from registry.disk.atomic import Place, make_folders, make_path, open_named, write_file
from registry.disk.beneath import Folder
from registry.disk.files import digest
from registry.disk.swap import replace_file
from registry.document.names import check_folder_name, check_new_name
from registry.errors import ExportRefused, RegistryError
from registry.install.content import FileContent, content_of
from registry.install.staging import where
from registry.model import Skill, Value
from registry.remotes.site import DESCRIPTION, SCHEMA
from registry.text import shorten

FOLDER: Final = ".well-known/agent-skills"
INDEX: Final = "index.json"


@dataclass(frozen=True, slots=True)
class Exported(Value):
    """The entry of a skill in the index that an export writes.

    ``digest`` is the SHA-256 of the entry's file, as ``sha256:…``.
    """

    name: str
    type: Literal["skill-md", "archive"]
    description: str
    url: str
    digest: str


@dataclass(frozen=True, slots=True)
class Export(Value):
    """The path of the written index, the exported skills, and the skipped skills (``left_out``).

    ``left_out`` has a ref and a reason for each skipped skill. ``failed`` has the refs of the
    skipped skills whose files can't be read at the moment.
    """

    KEYS: ClassVar = ("path", "skills", "left_out")

    path: str
    skills: tuple[Exported, ...]
    left_out: tuple[tuple[str, str], ...]
    failed: tuple[str, ...] = ()


def export(core: Core, skills: Sequence[Skill], to: str) -> Export:
    """Write an index, and a SKILL.md or archive for each skill, into the folder ``to``.

    The export overwrites existing files, and removes the files that only the previous index lists.
    Raises `ExportRefused`.
    """
    to = os.path.abspath(os.path.expanduser(to))
    path = os.path.join(to, FOLDER)
    left_out: list[tuple[str, str]] = []
    failed: list[str] = []
    done: dict[str, Exported] = {}
    try:
        make_path(to)
        with open_named(to) as root, make_folders(root, FOLDER) as home:
            for skill in sorted(skills, key=lambda one: (one.name, one.ref)):
                reason = check_new_name(skill.name)
                if skill.name in done:
                    reason = "another skill has the same name"
                if reason is None:
                    try:
                        done[skill.name] = _publish(home, skill, content_of(core, skill))
                    except RegistryError as error:
                        reason = str(error)
                        failed.append(skill.ref)
                if reason is not None:
                    left_out.append((skill.ref, reason))
            index = {"$schema": SCHEMA, "skills": [asdict(one) for one in done.values()]}
            text = json.dumps(index, indent=2, ensure_ascii=False) + "\n"
            before = _listed(home)
            replace_file(Place(home, INDEX), text.encode("utf-8", "replace"))
            for url in before - {one.url for one in done.values()}:
                _remove(home, url)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ExportRefused(path=where(path, error), reason=reason) from error
    return Export(os.path.join(path, INDEX), tuple(done.values()), tuple(left_out), tuple(failed))


@dataclass(frozen=True, slots=True)
class ZippedSkill(Value):
    """A skill that was exported to a zip file at ``path``; ``digest`` is the file's SHA-256."""

    ref: str
    path: str
    digest: str


def export_zip(
    core: Core, skill: Skill, to: str | None = None, *, overwrite: bool = False
) -> ZippedSkill:
    """Write a skill's files, in a folder with the skill's name, to a zip file.

    The default file has the name of the skill, and is in the current folder. If the file exists,
    ``overwrite`` is required. Raises `ExportRefused` and the errors of `content_of`.
    """
    folder = skill.name if check_folder_name(skill.name) is None else "skill"
    to = os.path.abspath(f"{folder}.zip" if to is None else os.path.expanduser(to))
    data = zipped(content_of(core, skill), folder)
    try:
        with open_named(os.path.dirname(to)) as home:
            place = Place(home, os.path.basename(to))
            if overwrite:
                replace_file(place, data)
            else:
                write_file(place, data)
    except FileExistsError as error:
        raise ExportRefused(path=to, reason="the file exists already") from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise ExportRefused(path=where(to, error), reason=reason) from error
    return ZippedSkill(skill.ref, to, digest(data))


def archive(entries: Sequence[FileContent]) -> bytes:
    """Return files as a .tar.gz archive; for the same files, its bytes are the same."""
    packed = io.BytesIO()
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for entry in sorted(entries, key=lambda one: one.path):
            member = tarfile.TarInfo(entry.path)
            member.size = len(entry.data)
            member.mode = 0o755 if entry.executable else 0o644
            tar.addfile(member, io.BytesIO(entry.data))
    return packed.getvalue()


def zipped(entries: Sequence[FileContent], folder: str = "") -> bytes:
    """Return files as a zip archive: at its top or, if ``folder`` is given, in this folder.

    For the same files, the bytes are the same.
    """
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for entry in sorted(entries, key=lambda one: one.path):
            # This is the earliest time that a zip can store. System 3 (Unix) stores permissions.
            member = zipfile.ZipInfo(f"{folder}/{entry.path}" if folder else entry.path)
            member.create_system = 3
            member.external_attr = (0o100755 if entry.executable else 0o100644) << 16
            member.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(member, entry.data)
    return packed.getvalue()


def _publish(home: Folder, skill: Skill, entries: Sequence[FileContent]) -> Exported:
    kind: Literal["skill-md", "archive"] = "archive"
    path = f"{skill.name}.tar.gz"
    if len(entries) == 1:
        kind, path, data = "skill-md", f"{skill.name}/SKILL.md", entries[0].data
    else:
        data = archive(entries)
    above, _, name = path.rpartition("/")
    with make_folders(home, above) as holder:
        replace_file(Place(holder, name), data)
    # The exported SKILL.md has the whole description. The index has a shorter one, because programs
    # that read the index refuse longer descriptions.
    description = shorten(skill.description, DESCRIPTION, whole_words=True)
    return Exported(skill.name, kind, description, f"/{FOLDER}/{path}", digest(data))


def _listed(home: Folder) -> set[str]:
    """Return the paths of the files that the index of the previous export lists."""
    try:
        with os.fdopen(home.open_file(INDEX), "rb") as file:
            skills = json.load(file)["skills"]
        return {one["url"] for one in skills if isinstance(one["url"], str)}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return set()


def _remove(home: Folder, url: str) -> None:
    """Remove the file of a URL in the index if `_publish` could have written it.

    Ignore other URLs.
    """
    path = url.removeprefix(f"/{FOLDER}/")
    name = path.removesuffix("/SKILL.md").removesuffix(".tar.gz")
    if check_new_name(name) is None and path in {f"{name}.tar.gz", f"{name}/SKILL.md"}:
        with suppress(OSError):
            holder, last = home.parent(path)
            with holder:
                os.unlink(last, dir_fd=holder.fd)
        with suppress(OSError):  # rmdir removes only an empty folder
            os.rmdir(name, dir_fd=home.fd)
