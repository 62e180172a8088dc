"""Rules for the names of new skills; existing skills may have any name."""

import re
from typing import Final

from registry.text import folded

NAME_LENGTH: Final = 64
"""Maximum number of characters of a name (Agent Skills specification, `name`)."""

BUILT_IN_TOOLS: Final = tuple(
    "filesystem exec web message spawn cron memory "
    "create_skill list_skills read_skill delete_skill".split()
)
"""Names of miniclaw's own tools.

miniclaw reserves these names. So skills with these names are neither created nor deleted.
"""

SNAKE_CASE_REASON: Final = (
    "Name must be snake_case: lowercase letters, numbers, underscores only. "
    "Must start with letter. Max 50 chars."
)
"""The message with which miniclaw refuses a name, exactly as in miniclaw's contract."""

UNLISTED_FOLDERS: Final = frozenset({"node_modules", "__pycache__"})
"""Folders that a search for skills skips.

The search also skips folders with a dot as the first character.
"""

_FOLDER_BYTES: Final = 255
_SNAKE_CASE: Final = re.compile(r"[a-z][a-z0-9_]{0,49}", re.ASCII)
_NOT_SPECIFIED: Final = re.compile(r"[^a-z0-9-]")
_NOT_PORTABLE: Final = re.compile(r'[<>:"/\\|?*\x00-\x1f\x7f-\x9f\ud800-\udfff]')
_DEVICE: Final = re.compile(
    r"(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9\u00b9\u00b2\u00b3])"
)


def check_new_name(name: str) -> str | None:
    """Return the reason why a new skill can't have this ``name``; None if the name is allowed.

    The name must follow the Agent Skills specification (`name`). The name must also follow
    `check_folder_name`, because the skill's folder gets the same name.
    """
    if not name:
        return "a name is needed"
    if len(name) > NAME_LENGTH:
        return f"the name has {len(name)} characters; {NAME_LENGTH} are allowed"
    if _NOT_SPECIFIED.search(name):
        return "only the letters a-z, digits and hyphens are allowed"
    if name[0] == "-" or name[-1] == "-":
        return "the name must not begin or end with a hyphen"
    if "--" in name:
        return "the name must not have two hyphens in a row"
    return check_folder_name(name)


def check_snake_case(name: str) -> str | None:
    """Return miniclaw's reason to refuse ``name``; None if the whole name matches its pattern."""
    return None if _SNAKE_CASE.fullmatch(name) else SNAKE_CASE_REASON


def is_built_in(name: str) -> bool:
    """Tell whether miniclaw has a tool with this name."""
    return name in BUILT_IN_TOOLS


def check_folder_name(name: str) -> str | None:
    """Return why a folder can't have this ``name`` on some operating systems.

    Returns None if all of them allow the name.
    """
    reason = None
    plain = folded(name)
    if not plain.strip(". "):
        reason = "the name is empty, or only dots and spaces"
    elif bad := _NOT_PORTABLE.search(name):
        reason = f"{bad[0]!a} can't be in the name of a folder on every system"
    elif len(name.encode()) > _FOLDER_BYTES:
        reason = f"the name of a folder has at most {_FOLDER_BYTES} bytes"
    elif name[-1] in ". " or name[0] == " ":
        reason = "the name of a folder can't end with a dot, or begin or end with a space"
    elif plain[0] == "." or plain in UNLISTED_FOLDERS:
        reason = "folders with this name are not searched for skills"
    elif is_device(name):
        reason = "Windows keeps this name for a device"
    return reason


def is_device(name: str) -> bool:
    """Tell whether Windows treats files with this name as a device, with any extension."""
    return _DEVICE.fullmatch(name.partition(".")[0].rstrip().casefold()) is not None
