"""Which file system holds a path: the innermost mount, and of two in one place the later."""

import io
import os

import pytest

from registry.disk import mounts
from registry.disk.mounts import file_system

MOUNTS = """\
rootfs / ext4 rw 0 0
server:/one /mnt/net nfs4 rw 0 0
disk /mnt/network xfs rw 0 0
disk /mnt/network/inner btrfs rw 0 0
auto /mnt/late autofs rw 0 0
server /mnt/late cifs rw 0 0
"""


@pytest.fixture
def mounted(monkeypatch):
    def with_text(text):
        monkeypatch.setattr(mounts, "open", lambda *_, **__: io.StringIO(text), raising=False)

    monkeypatch.setattr(os.path, "realpath", os.path.normpath)
    with_text(MOUNTS)
    return with_text


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/me/skills/.", "ext4"),
        ("/mnt/net/.", "nfs4"),
        ("/mnt/net/skills/.", "nfs4"),
        ("/mnt/network/skills/.", "xfs"),
        ("/mnt/network/inner/skills/.", "btrfs"),
        ("/mnt/late/.", "cifs"),
        ("/mnt/.", "ext4"),
    ],
)
def test_the_innermost_mount_counts_and_of_two_the_later(mounted, path, kind):
    assert file_system(path) == kind


def test_where_it_can_not_be_told_nothing_is_said(mounted, monkeypatch):
    mounted("a line of another kind\nshort\n")
    assert file_system("/home/.") == ""

    def refuse(*_, **__):
        raise FileNotFoundError

    monkeypatch.setattr(mounts, "open", refuse, raising=False)
    assert file_system("/home/.") == ""
