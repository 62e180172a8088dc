"""A source that is one archive: its files, and only those that can lie in a folder of skills."""

import gzip
import os
import tarfile

import pytest

from registry.disk.private import NotOurs
from registry.errors import (
    RemoteInvalid,
    RemoteProblem,
    RemoteRefused,
    RemoteTooLarge,
    RemoteUnreachable,
)
from registry.remotes import unpacking
from registry.remotes.artifacts import open_archive
from registry.remotes.snapshot import FetchLimits
from tests.remotes.conftest import document
from tests.remotes.packed import special, tarred, zipped

FILES = {"alpha/SKILL.md": document("alpha"), "beta/SKILL.md": document("beta")}
LINKS = [
    special("repo/link", tarfile.SYMTYPE, "/etc/passwd"),
    special("repo/hard", tarfile.LNKTYPE, "../../etc/passwd"),
    special("repo/pipe", tarfile.FIFOTYPE),
    special("repo/device", tarfile.CHRTYPE),
]


@pytest.mark.parametrize("pack", [zipped, tarred, lambda files: tarred(files, packed=False)])
@pytest.mark.parametrize("wrap", ["", "repo-1.0/", "./", "./repo-1.0/"])
def test_an_archive_is_read_with_or_without_a_folder_around_it(server, take, pack, wrap):
    server.put("/all", pack({wrap + name: data for name, data in FILES.items()}))
    taken = take(open_archive, f"{server.url}/all")
    assert taken.files == FILES
    assert taken.notices == []


def test_a_single_skill_lies_at_the_root(server, take):
    server.put("/pdf.skill", zipped({"pdf/SKILL.md": document("pdf"), "pdf/a.txt": b"a"}))
    assert set(take(open_archive, f"{server.url}/pdf.skill").files) == {"SKILL.md", "a.txt"}


@pytest.mark.parametrize("encoding", ["gzip", "x-gzip"])
@pytest.mark.parametrize("name", ["all.tar.gz", "all.tgz"])
def test_a_server_may_call_how_a_tar_is_packed_its_encoding(server, take, name, encoding):
    server.put(f"/{name}", tarred(FILES), Content_Encoding=encoding)
    assert take(open_archive, f"{server.url}/{name}").files == FILES


def test_what_macos_adds_to_a_tar_is_passed_over(server, take):
    added = {"._repo": b"\0\5\26\7", "repo/alpha/._SKILL.md": b"\0\5\26\7"}
    held = {f"repo/{name}": data for name, data in FILES.items()}
    server.put("/all", tarred({**added, **held}))
    assert take(open_archive, f"{server.url}/all").files == FILES


@pytest.mark.parametrize("data", [b"", b"<!doctype html>" + bytes(600), b"BZh91AY&SY", b"PK\3\4"])
def test_what_is_no_archive_is_called_so(server, take, data):
    server.put("/all.zip", data)
    with pytest.raises(RemoteInvalid, match="it is neither a zip nor a tar, or only a part of one"):
        take(open_archive, f"{server.url}/all.zip")


@pytest.mark.parametrize("pack", [zipped, tarred])
def test_what_could_be_executed_still_can(server, take, pack):
    files = {**FILES, "alpha/run.sh": b"#!/bin/sh\n"}
    server.put("/all", pack(files, modes={"alpha/run.sh": 0o755}))
    assert take(open_archive, f"{server.url}/all").executable == {"alpha/run.sh"}


@pytest.mark.parametrize(
    "headers", [{"ETag": '"one"'}, {"Last_Modified": "Sun, 22 Nov 2026 10:00:00 GMT"}]
)
def test_an_archive_that_did_not_change_is_not_sent_again(server, take, headers):
    data, sent = zipped(FILES), []

    def answer(handler):
        header, value = next(iter(headers.items()))
        asks = handler.headers.get("If-None-Match") or handler.headers.get("If-Modified-Since")
        handler.send_response(304 if asks == value else 200)
        handler.send_header(header.replace("_", "-"), value)
        handler.end_headers()
        if asks != value:
            sent.append(handler.path)
            handler.wfile.write(data)

    server.routes["/all.zip"] = answer
    first = take(open_archive, f"{server.url}/all.zip")
    assert first.made_at == (1795341600 if "Last_Modified" in headers else None)
    assert take(open_archive, f"{server.url}/all.zip", first.version) is None
    assert len(server.asked) == 2
    assert len(sent) == 1
    # Who has lost its files gets them again, whatever was noted.
    assert take(open_archive, f"{server.url}/all.zip").files == FILES


def test_an_archive_without_a_date_is_known_by_its_bytes(server, take):
    server.put("/all.zip", zipped(FILES))
    version = take(open_archive, f"{server.url}/all.zip").version
    assert take(open_archive, f"{server.url}/all.zip", version) is None
    server.put("/all.zip", zipped({**FILES, "alpha/more.txt": b"m"}))
    again = take(open_archive, f"{server.url}/all.zip", version)
    assert again.version != version
    assert again.files["alpha/more.txt"] == b"m"


def test_the_archive_itself_is_not_kept(server, take):
    server.put("/all.zip", zipped(FILES))
    take(open_archive, f"{server.url}/all.zip")
    assert [path.name for path in take.state.iterdir()] == ["notes.json"]


def test_what_failed_to_be_put_in_place_is_brought_again(server, tmp_path, take):
    server.put("/all.zip", zipped(FILES), ETag='"one"')
    with (
        pytest.raises(KeyError),
        open_archive(f"{server.url}/all.zip", str(take.state), None, FetchLimits()),
    ):
        raise KeyError
    assert take(open_archive, f"{server.url}/all.zip").files == FILES


def test_notes_that_are_broken_or_by_somebody_else_are_no_notes(server, take):
    server.put("/all.zip", zipped(FILES), ETag='"one"')
    version = take(open_archive, f"{server.url}/all.zip").version
    notes = take.state / "notes.json"
    for broken in ("[" * 100_000, "null", '{"version": 1, "etag": 2}', "\udcff"):
        notes.write_bytes(broken.encode("utf-8", "surrogateescape"))
        assert take(open_archive, f"{server.url}/all.zip").files == FILES
    notes.chmod(0o666)
    assert take(open_archive, f"{server.url}/all.zip").version == version
    assert notes.stat().st_mode & 0o777 == 0o600


def test_a_file_of_this_disk_is_an_archive_as_well(tmp_path, take):
    path = tmp_path / "all of it?.zip"
    path.write_bytes(zipped(FILES))
    os.utime(path, (1000, 1000))
    taken = take(open_archive, str(path))
    assert (taken.files, taken.made_at) == (FILES, 1000)
    assert take(open_archive, str(path), taken.version) is None
    path.unlink()
    with pytest.raises(RemoteUnreachable, match="no such file"):
        take(open_archive, str(path), taken.version)
    os.mkfifo(path)
    with pytest.raises(RemoteUnreachable, match="not a regular file"):
        take(open_archive, str(path))


STRANGE = {
    "above": "../evil",
    "far above": "a/../../../evil",
    "absolute": "/etc/evil",
    "a backslash": "a\\..\\evil",
    "a drive": "C:/evil",
    "a line feed": "a\nb",
    "git": "a/.git/hooks/post-checkout",
    "right to left": "a/\u202efdp.exe",
    "nobody sees": "a/x\u200by.md",
    "tags": "a/x\U000e0041\U000e0042.md",
    "a device": "a/CON",
    "a device with an ending": "a/lpt1.txt",
    "in other letters": "alpha/skill.MD",
    "below a file": "alpha/SKILL.md/x",
    "our own state": ".skills.skill-registry/x",
}


@pytest.mark.parametrize("path", STRANGE.values(), ids=STRANGE)
@pytest.mark.parametrize("pack", [zipped, tarred])
def test_a_strange_path_is_left_out_and_said(server, take, pack, path):
    server.put("/all", pack({**FILES, path: b"x"}))
    taken = take(open_archive, f"{server.url}/all")
    assert taken.files == FILES
    assert len(taken.notices) == 1
    assert "left out" in taken.notices[0]
    assert taken.notices[0].isprintable()


def test_a_path_that_gets_strange_without_its_wrapping_is_left_out(server, take):
    files = {f"repo/{name}": data for name, data in FILES.items()}
    server.put("/all", zipped({**files, "repo/C:evil": b"x", "repo/x:y": b"x"}))
    taken = take(open_archive, f"{server.url}/all")
    assert taken.files == FILES


def test_links_and_devices_are_left_out_and_said(server, take):
    files = {f"repo/{name}": data for name, data in FILES.items()}
    server.put("/all", tarred(files, *LINKS))
    taken = take(open_archive, f"{server.url}/all")
    assert taken.files == FILES
    assert [notice.split("'")[1] for notice in taken.notices] == [one.name for one in LINKS]
    assert all("not a plain file" in notice for notice in taken.notices)


def test_of_two_files_of_one_name_the_first_is_taken(server, take):
    data = tarred(FILES | {"alpha/./SKILL.md": document("alpha", "Other.")})
    server.put("/all", data)
    taken = take(open_archive, f"{server.url}/all")
    assert taken.files == FILES
    assert "there twice" in taken.notices[0]


def test_a_nul_in_a_name_does_not_end_it(server, take):
    data = zipped({**FILES, "alpha/ok-name": b"x"}).replace(b"ok-name", b"ok\0name")
    server.put("/all", data)
    assert take(open_archive, f"{server.url}/all").files == FILES


def test_of_many_files_that_are_left_out_only_some_are_named(server, take):
    files = {f"alpha/.git/{number}": b"" for number in range(500)}
    server.put("/all", zipped(FILES | files))
    notices = take(open_archive, f"{server.url}/all").notices
    assert len(notices) == 21
    assert notices[-1] == "480 more like these"


def test_a_file_that_is_too_large_is_left_out(server, take):
    server.put("/all", tarred(FILES | {"alpha/big": bytes(100_000)}))
    taken = take(open_archive, f"{server.url}/all", artifact_bytes=99_999)
    assert taken.files == FILES
    assert "99999 bytes" in taken.notices[0]


def endless(path_of):
    return {path_of(number): b"" for number in range(1000)}


BOMBS = {
    "one file": {"zeros": bytes(5_000_000)},
    "many files": {f"{number}": bytes(50_000) for number in range(100)},
    "too many files": endless(lambda number: f"a/{number}"),
    "too many strange ones": endless(lambda number: f"../{number}"),
}


@pytest.mark.parametrize("files", BOMBS.values(), ids=BOMBS)
@pytest.mark.parametrize("pack", [zipped, tarred])
def test_a_bomb_is_not_unpacked(server, take, pack, files):
    server.put("/all", pack(FILES | files))
    with pytest.raises(RemoteTooLarge):
        take(open_archive, f"{server.url}/all", bytes=1_000_000, files=500)


@pytest.mark.parametrize("pack", [zipped, tarred])
def test_what_unpacks_to_far_more_than_its_size_is_a_bomb(server, take, pack, monkeypatch):
    monkeypatch.setattr(unpacking, "RATIO_FREE", 100_000)
    server.put("/all", pack(FILES | {"zeros": bytes(3_000_000)}))
    with pytest.raises(RemoteTooLarge, match="when it is unpacked"):
        take(open_archive, f"{server.url}/all", files=10)
    server.put("/all", pack(FILES | {"noise": os.urandom(3_000_000)}))
    assert "noise" in take(open_archive, f"{server.url}/all", files=10).files


def test_a_tar_with_a_header_of_a_gigabyte_is_refused_early(server, take):
    head = tarfile.TarInfo("alpha/SKILL.md")
    head.type = tarfile.XHDTYPE
    head.size = 1 << 30
    server.put("/all", gzip.compress(head.tobuf() + bytes(1 << 22)))
    with pytest.raises(RemoteProblem, match="header"):
        take(open_archive, f"{server.url}/all", bytes=4 << 30)


def test_an_archive_in_an_archive_stays_one(server, take):
    inner = zipped({"../../evil": b"x"})
    server.put("/all", zipped({**FILES, "alpha/inner.zip": inner}))
    assert take(open_archive, f"{server.url}/all").files["alpha/inner.zip"] == inner


@pytest.mark.parametrize(
    "data",
    [b"", b"<html>", b"PK\x03\x04", b"\x1f\x8b\x08", zipped(FILES)[:-30], tarred(FILES)[:-40]],
    ids=["nothing", "a page", "begun zip", "begun gzip", "cut zip", "cut tar"],
)
def test_what_is_no_whole_archive_is_refused(server, take, data):
    server.put("/all.zip", data)
    with pytest.raises(RemoteInvalid):
        take(open_archive, f"{server.url}/all.zip")


def test_an_archive_of_nothing_is_refused(server, take):
    server.put("/all.zip", zipped({"__MACOSX/x": b""}))
    with pytest.raises(RemoteInvalid, match="holds no files"):
        take(open_archive, f"{server.url}/all.zip")


def test_what_is_larger_than_allowed_is_not_kept_as_it_comes(server, take):
    def answer(handler):
        handler.send_response(200)
        handler.end_headers()
        while True:
            handler.wfile.write(bytes(1 << 16))

    server.routes["/endless"] = answer
    server.put("/said", b"", Content_Length=str(1 << 40))
    for path in ("/endless", "/said"):
        with pytest.raises(RemoteTooLarge):
            take(open_archive, f"{server.url}{path}", bytes=1 << 20)
    assert server.ended.wait(30)


@pytest.mark.parametrize("status", [401, 403, 404, 410])
def test_a_server_that_refuses_is_named_with_its_status(server, take, status):
    server.put("/all.zip", b"\x1b[31mno", status)
    with pytest.raises(RemoteRefused) as caught:
        take(open_archive, f"{server.url}/all.zip?token=secret")
    assert caught.value.status == status
    assert "secret" not in str(caught.value)


def test_a_folder_that_others_may_write_to_is_not_written_to(server, take):
    server.put("/all.zip", zipped(FILES))
    take.state.mkdir(parents=True)
    take.state.chmod(0o777)
    opened = open_archive(f"{server.url}/all.zip", str(take.state), None, FetchLimits())
    with pytest.raises(NotOurs, match="others may open it"), opened:
        pass
    assert list(take.state.iterdir()) == []
