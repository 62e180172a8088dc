"""The server side of git's fetch protocol over HTTP, in versions 0 and 2.

The answer to a request uses one built repository. A client can fetch only whole branches and tags
of this repository. No commit has a parent, so a shallow clone is a complete clone.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from registry.publish.git.objects import OID
from registry.publish.git.repository import BRANCH, Repository

SERVICE: Final = "git-upload-pack"
MAX_LINE: Final = 65520
"""Maximum length of a line of the protocol, in bytes, including the four digits for its length."""

MAX_LINES: Final = 20_000
"""Maximum number of lines in a request."""

BAND: Final = 65515
"""Number of bytes of a pack in one line of the protocol."""

SMALL_BAND: Final = 995
"""Number of bytes of a pack in one line, for old clients."""

FLUSH, DELIMITER = b"0000", b"0001"

_V0: Final = (
    "multi_ack_detailed side-band side-band-64k thin-pack ofs-delta shallow no-progress "
    f"include-tag symref=HEAD:{BRANCH} object-format=sha1 agent=skill-registry"
)
_V2: Final = ("version 2", "agent=skill-registry", "ls-refs", "fetch=shallow", "object-format=sha1")

_HEX: Final = frozenset(b"0123456789abcdef")

Earlier = Callable[[bytes], Collection[bytes] | None]
"""A function that returns the ids of the objects of an earlier state of the repository.

Its argument is the commit of that state. The function returns None if the commit is unknown.
"""


class Malformed(Exception):
    """The request does not follow the protocol."""


class Refused(Exception):
    """The server refuses the request; the client prints the text of the exception."""


def line(data: bytes | str) -> bytes:
    """Return a line of the protocol."""
    data = data.encode() if isinstance(data, str) else data
    return b"%04x%s" % (len(data) + 4, data)


def lines_of(body: bytes) -> Iterator[bytes | None]:
    """Yield the lines of a request without line ends; None for a flush or a delimiter.

    Raises `Malformed`.
    """
    at = count = 0
    while at < len(body):
        count += 1
        if count > MAX_LINES:
            raise Malformed("the request has too many lines")
        digits = body[at : at + 4].lower()
        if len(digits) < len(FLUSH) or not _HEX.issuperset(digits):
            raise Malformed("a line does not begin with its length")
        length = int(digits, 16)
        if digits in {FLUSH, DELIMITER}:
            yield None if digits == FLUSH else DELIMITER
            at += 4
        elif length <= len(FLUSH) or length > MAX_LINE or at + length > len(body):
            raise Malformed("a line has a wrong length")
        else:
            yield body[at + 4 : at + length].removesuffix(b"\n")
            at += length


def advertise(repository: Repository, version: int) -> bytes:
    """Return the answer to the first request of a client."""
    first = line(f"# service={SERVICE}\n") + FLUSH
    if version == 2:  # noqa: PLR2004  # the version of the protocol
        return first + b"".join(line(f"{one}\n") for one in _V2) + FLUSH
    refs = [("HEAD", repository.head), *sorted(repository.refs.items())]
    found: list[bytes] = []
    for name, oid in refs:
        known = f"\0{_V0}" if not found else ""
        found.append(line(f"{oid.hex()} {name}{known}\n"))
    return first + b"".join(found) + FLUSH


@dataclass(slots=True)
class _Fetch:
    """A client's request for objects."""

    wants: list[bytes] = field(default_factory=list)
    haves: list[bytes] = field(default_factory=list)
    shallow: list[bytes] = field(default_factory=list)
    options: set[bytes] = field(default_factory=set)
    deepen: bool = False
    done: bool = False


def answer(repository: Repository, earlier: Earlier, body: bytes, version: int) -> Iterator[bytes]:
    """Return the answer to a request in parts. Raises `Malformed` and `Refused`."""
    if version == 2:  # noqa: PLR2004  # the version of the protocol
        return _answer_2(repository, earlier, body)
    return _answer_0(repository, earlier, body)


def error(text: str) -> bytes:
    """Return the line that reports to a client why the server refuses its request."""
    return line(f"ERR {text}\n")


def _answer_0(repository: Repository, earlier: Earlier, body: bytes) -> Iterator[bytes]:
    given = lines_of(body)
    fetch = _Fetch()
    for number, one in enumerate(given):
        if one is None:
            break
        words = one.split(b" ", 2)
        if number == 0:  # only the first line contains options
            fetch.options.update(*(options.split() for options in words[2:]))
            words = words[:2]
        _read(fetch, b" ".join(words))
    rest = list(given)
    for one in filter(None, rest):
        _read(fetch, one)
    _check(repository, fetch)
    if not fetch.wants:
        return iter(())
    first = b""
    if fetch.deepen:
        first = b"".join(_unshallow(repository, earlier, fetch)) + FLUSH
    # the client wants to know where its clone ends, and will then send the request again
    if not rest:
        return iter((first,))
    common = [
        one for one in dict.fromkeys(fetch.haves) if _known(repository, earlier, one) is not None
    ]
    if not fetch.done:
        states = [f"ACK {one.hex()} common\n" for one in common]
        states += [f"ACK {one.hex()} ready\n" for one in common[-1:]]
        return iter((first + b"".join(map(line, states)) + line("NAK\n"),))
    last = f"ACK {common[-1].hex()}\n" if common else "NAK\n"
    pack = _pack(repository, earlier, fetch.wants, common)
    return _after(first + line(last), _in_bands(pack, fetch.options))


def _answer_2(repository: Repository, earlier: Earlier, body: bytes) -> Iterator[bytes]:
    given = lines_of(body)
    command = next(given, None)
    for one in given:  # features of the client that the server doesn't need
        if one is None or one == DELIMITER:
            break
    arguments = [one for one in given if one is not None]
    if command == b"command=ls-refs":
        return iter((_refs(repository, arguments),))
    if command != b"command=fetch":
        raise Malformed("unknown command")
    fetch = _Fetch()
    for one in arguments:
        _read(fetch, one)
    _check(repository, fetch)
    if not fetch.wants:
        return iter((FLUSH,))
    common = [
        one for one in dict.fromkeys(fetch.haves) if _known(repository, earlier, one) is not None
    ]
    first = b""
    if not fetch.done:
        first = line("acknowledgments\n")
        first += b"".join(line(f"ACK {one.hex()}\n") for one in common) or line("NAK\n")
        if not common:
            return iter((first + FLUSH,))
        first += line("ready\n") + DELIMITER
    unshallow = list(_unshallow(repository, earlier, fetch)) if fetch.deepen else []
    if unshallow:
        first += line("shallow-info\n") + b"".join(unshallow) + DELIMITER
    first += line("packfile\n")
    return _after(first, _banded(_pack(repository, earlier, fetch.wants, common), BAND))


def _refs(repository: Repository, arguments: Sequence[bytes]) -> bytes:
    prefixes = tuple(
        one.removeprefix(b"ref-prefix ").decode("utf-8", "replace")
        for one in arguments
        if one.startswith(b"ref-prefix ")
    )
    symrefs = b"symrefs" in arguments
    found = []
    for name, oid in [("HEAD", repository.head), *sorted(repository.refs.items())]:
        if not prefixes or name.startswith(prefixes):
            target = f" symref-target:{BRANCH}" if symrefs and name == "HEAD" else ""
            found.append(line(f"{oid.hex()} {name}{target}\n"))
    return b"".join(found) + FLUSH


_WITHOUT_VALUE: Final = frozenset(
    b"done thin-pack no-progress include-tag ofs-delta deepen-relative".split()
)


def _read(fetch: _Fetch, one: bytes) -> None:
    """Parse a line of the request. Raises `Malformed` or `Refused`."""
    key, _, value = one.partition(b" ")
    into = {b"want": fetch.wants, b"have": fetch.haves, b"shallow": fetch.shallow}.get(key)
    if into is not None:
        if len(value) != 2 * OID or not _HEX.issuperset(value):
            raise Malformed("an object id is not valid")
        into.append(bytes.fromhex(value.decode()))
    elif one == b"done":
        fetch.done = True
    elif key in {b"deepen", b"deepen-since", b"deepen-not"} and value:
        fetch.deepen = True
    elif one not in _WITHOUT_VALUE:
        raise Refused("this server does not support a feature of the request")


def _check(repository: Repository, fetch: _Fetch) -> None:
    """Raise `Refused` if a client requests objects that the server didn't offer."""
    tips = {repository.head, *repository.refs.values()}
    if len(fetch.wants) > len(repository.refs) + 1:  # clients request HEAD and its branch
        raise Refused("the request wants more than the repository offers")
    for one in fetch.wants:
        if one not in tips:
            raise Refused(f"upload-pack: not our ref {one.hex()}")


def _known(repository: Repository, earlier: Earlier, commit: bytes) -> Collection[bytes] | None:
    """Return the ids of the objects of a client that has this commit.

    Returns None if the commit isn't from this repository or one of its earlier states.
    """
    if commit in {repository.head, *repository.refs.values()}:
        return repository.objects_of(commit)
    return earlier(commit)


def _unshallow(repository: Repository, earlier: Earlier, fetch: _Fetch) -> Iterator[bytes]:
    """Answer that the client's cut-off commits are complete.

    Another server may have cut off the history of these commits.
    """
    for one in dict.fromkeys(fetch.shallow):  # look each commit up only once
        if _known(repository, earlier, one) is not None:
            yield line(f"unshallow {one.hex()}")


def _pack(
    repository: Repository, earlier: Earlier, wants: Sequence[bytes], common: Sequence[bytes]
) -> Iterator[bytes]:
    pack = repository.pack
    wanted: set[bytes] = set()
    for one in wants:
        wanted.update(repository.objects_of(one))
    for one in common:
        wanted.difference_update(_known(repository, earlier, one) or ())
    if len(wanted) == len(pack):
        return pack.stream()
    return pack.stream_of(sorted(wanted))


def _in_bands(parts: Iterator[bytes], options: Collection[bytes]) -> Iterator[bytes]:
    """Return a pack in the form that a client of version 0 requests in its options."""
    if b"side-band-64k" in options:
        return _banded(parts, BAND)
    return _banded(parts, SMALL_BAND) if b"side-band" in options else parts


def _banded(parts: Iterator[bytes], most: int) -> Iterator[bytes]:
    for part in parts:
        yield b"".join(
            line(b"\x01" + part[begin : begin + most]) for begin in range(0, len(part), most)
        )
    yield FLUSH


def _after(first: bytes, parts: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from parts
