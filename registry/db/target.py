"""Where a copy of a database may be written."""

import os

from registry.errors import NotWritable, UsageProblem


def copy_target(target: str, *, overwrite: bool) -> str:
    """Return the absolute path of the file that a copy becomes.

    Raises `UsageProblem` for a folder, and for a file that is there unless ``overwrite``;
    `NotWritable` where there is no folder for it.
    """
    path = os.path.abspath(os.path.expanduser(target))
    if os.path.isdir(path):
        example = os.path.join(path, "registry-copy.db")
        raise UsageProblem(message=f"{path} is a folder: name a file in it, such as {example}")
    if os.path.lexists(path) and not overwrite:
        raise UsageProblem(message=f"{path} exists already; remove it or choose another name")
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise NotWritable(path=path, reason=f"there is no folder {folder}")
    return path


def unwritable(path: str, error: OSError) -> NotWritable:
    """Return what an error of the system means for a file that was to be written."""
    reason = "it is no folder" if isinstance(error, FileExistsError) else error.strerror
    about = error.filename
    where = f" ({about})" if about and not str(about).startswith(path) else ""
    return NotWritable(path=path, reason=f"{reason or error}{where}")
