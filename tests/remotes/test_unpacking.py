"""Archives are read piece by piece, whatever they say of themselves."""

import contextlib
import io
import tarfile
import tracemalloc
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.remotes.unpacking import ArchiveLimits, BadArchive, Member, TooMuch, unpack, wrapping
from tests.remotes.packed import tarred, zipped

ROOM = ArchiveLimits(files=100, size=100_000, each=50_000)
FILES = {"SKILL.md": b"---\nname: a\n---\n", "scripts/run.py": b"print(1)\n"}


def taken(data, room=ROOM):
    return list(unpack(io.BytesIO(data), room))


PACKED = [zipped(FILES), tarred(FILES, packed=False), tarred(FILES)]


@pytest.mark.parametrize("data", PACKED)
def test_all_kinds_hold_the_same(data):
    assert taken(data) == [Member(name, executable=False, data=FILES[name]) for name in FILES]


@pytest.mark.parametrize("size", [-512, -1024, -1, -(1 << 40)])
def test_a_tar_that_leads_back_to_its_own_header_is_not_read_for_ever(size):
    head = bytearray(tarfile.TarInfo("a").tobuf())
    head[124:136] = b"\xff" + (size % (1 << 88)).to_bytes(11, "big")
    head[148:156] = b" " * 8
    head[148:156] = b"%06o\0 " % sum(head[:512])
    with pytest.raises(BadArchive):
        taken(bytes(head) + bytes(4096))


def test_a_zip_is_not_asked_for_more_names_than_are_taken():
    box = io.BytesIO()
    with zipfile.ZipFile(box, "w") as archive:
        archive.writestr("SKILL.md", b"")
    data = box.getvalue()
    at = data.index(b"PK\x01\x02")
    end = data.index(b"PK\x05\x06")
    entry = data[at:end]
    many = 70_000
    last = bytearray(data[end:])
    last[8:12] = (many % 65536).to_bytes(2, "little") * 2
    last[12:16] = (many * len(entry)).to_bytes(4, "little")
    bomb = data[:at] + entry * many + bytes(last)
    with zipfile.ZipFile(io.BytesIO(bomb)) as archive:
        assert len(archive.infolist()) == many  # the library itself takes it
    tracemalloc.start()
    try:
        with pytest.raises(TooMuch, match="directory"):
            taken(bomb)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_a_file_that_claims_holes_of_a_terabyte_is_cut_off():
    head = tarfile.TarInfo("SKILL.md")
    head.type = tarfile.GNUTYPE_SPARSE
    block = bytearray(head.tobuf(tarfile.GNU_FORMAT))
    block[386:410] = b"%011o\0%011o\0" % (0, 0)
    block[483:495] = b"\x80" + (1 << 40).to_bytes(11, "big")
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    with pytest.raises(BadArchive):
        taken(bytes(block) + bytes(2048))


def test_members_are_forgotten_once_they_were_read():
    data = tarred({f"{number}": b"" for number in range(2_500)})
    tracemalloc.start()
    try:
        count = sum(1 for _ in unpack(io.BytesIO(data), ROOM._replace(files=2_500)))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 2_500
    assert peak < 700_000  # all of them at once take more than half as much again


@given(
    data=st.sampled_from(PACKED),
    changes=st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 255)), max_size=4),
    cut=st.integers(0, 1 << 20) | st.none(),
)
def test_no_broken_byte_fails_in_another_way(data, changes, cut):
    broken = bytearray(data)
    for place, byte in changes:
        broken[place % len(broken)] = byte
    if cut is not None:
        del broken[cut % len(broken) :]
    with contextlib.suppress(BadArchive):
        taken(bytes(broken))


@pytest.mark.parametrize(
    ("paths", "top"),
    [
        (["a/SKILL.md", "a/b"], "a/"),
        (["SKILL.md", "a/b"], ""),
        (["a/x", "b/x"], ""),
        (["skill.md"], ""),
        (["x"], "x/"),
        ([], ""),
    ],
)
def test_the_folder_around_all_files_is_found(paths, top):
    assert wrapping(paths) == top
