"""Changes whose process dies, or into which somebody slips an edit."""

from contextlib import contextmanager

import pytest

from registry.changes import commit
from registry.disk import atomic, swap
from tests.changes.planted import rows


class Dead(BaseException):
    """The process ends here."""


def die(*_, **__):
    raise Dead


@contextmanager
def slipping_in(edit):
    """Let somebody do something between the comparison and the rename."""
    real = commit.add_entry

    def add_entry(connection, entry):
        edit()
        real(connection, entry)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(commit, "add_entry", add_entry)
        yield


def dies(registry, change, *, at=(commit, "roll_forward_or_back"), edit=lambda: None):
    """Make a change whose process dies; ``edit`` slips in before the rename."""
    with slipping_in(edit), pytest.MonkeyPatch.context() as patch:
        patch.setattr(commit, "roll_forward_or_back", die)
        patch.setattr(*at, die)
        with pytest.raises(Dead):
            change(registry)
    assert rows(registry) == 1


def dies_between_two_renames(monkeypatch, registry, change, **edit):
    """Make one where the system knows no exchange, from here on."""
    monkeypatch.setattr(atomic, "renameat2", lambda: None)
    real, renames = swap.rename_new, []

    def rename(before, after):
        if renames:
            raise Dead
        renames.append(before)
        real(before, after)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(swap, "rename_new", rename)
        dies(registry, change, at=(commit, "sync_folder"), **edit)
    assert len(renames) == 1
