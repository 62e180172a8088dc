"""What is pulled to where agents look, and what lies there."""

import os

from registry.install.lockfile import read_lock
from registry.install.pull import check, pull, remove, update
from registry.install.targets import InstallOptions

BOTH = ("claude-code", "codex")


class Place:
    """A project, or this user's own folders, and what is pulled there."""

    def __init__(self, library, target):
        self.library = library
        self.core = library.core
        self.target = target

    def pull(self, *names, agents=BOTH, **how):
        skills = [self.library.resolve(name) for name in names]
        return self.told(pull(self.core, skills, self.target, InstallOptions(agents=agents, **how)))

    def update(self, names=None, **how):
        return self.told(update(self.core, self.target, names, InstallOptions(**how)))

    def remove(self, *names, **how):
        return self.told(remove(self.core, self.target, names, InstallOptions(**how)))

    def check(self):
        return {one.ref: one.state for one in check(self.core, None, self.target)}

    @staticmethod
    def told(found):
        return [(one.ref, one.state) for one in found]

    @property
    def locked(self):
        return read_lock(self.target.path)


def tree(folder):
    """Return what lies below a folder: what links say, contents, and who can be executed."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if name.startswith(".git/") or name == "skills.lock.json":
            continue
        if path.is_symlink():
            found[name] = os.readlink(path)
        elif path.is_file():
            found[name] = path.read_bytes(), os.access(path, os.X_OK)
    return found
