"""Stand between a client and a PostgreSQL server: be as far away as asked, and count round trips.

    python benchmarks/proxy.py HOST:PORT [--milliseconds 10]

prints the address to connect to instead, and at its end how often somebody waited for an answer.
"""

import argparse
import select
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

_ANSWERED_AT_ONCE = frozenset({b"Q", b"S", b"H", b"p", b"c"})
"""Messages after which a client is answered: a query, Sync, Flush, a password, the end of a COPY.

All others are only answered with the next of these.
"""

_CHUNK = 1 << 16


class Proxy:
    """Passes on what a client and the server at ``host:port`` say, each way half of a delay later.

    A round trip is what a client says until the server answers, and that answer: `round_trips`
    counts those of all connections, and `said` holds the text of each. Nothing may be encrypted.
    """

    def __init__(self, host: str, port: int, milliseconds: float = 0) -> None:
        self._to = (host, port)
        self.delay = milliseconds / 2000
        self.said: list[bytes] = []
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.port = int(self._listening.getsockname()[1])
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def round_trips(self) -> int:
        """How many there were."""
        return len(self.said)

    @contextmanager
    def counting(self) -> Iterator[list[bytes]]:
        """Collect what is said in the round trips of a block."""
        before = len(self.said)
        found: list[bytes] = []
        yield found
        found += self.said[before:]

    def close(self) -> None:
        """End all connections."""
        for one in (self._listening, *self._sockets):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
                server = socket.create_connection(self._to)
            except OSError:  # closed
                return
            for one in (client, server):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._sockets += [client, server]
            heard = _Heard(self.said)
            for end, other, note in (
                (client, server, heard.client),
                (server, client, heard.server),
            ):
                threading.Thread(target=self._pass, args=(end, other, note), daemon=True).start()

    def _pass(
        self, end: socket.socket, other: socket.socket, note: Callable[[bytes], None]
    ) -> None:
        """Pass on what ``end`` says when it is due; what comes meanwhile waits in its order."""
        waiting: deque[tuple[float, bytes]] = deque()
        is_open = True
        with suppress(OSError, ValueError):  # the other way was closed
            while is_open or waiting:
                left = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
                ready = select.select([end], [], [], left)[0] if is_open else time.sleep(left or 0)
                if ready:
                    data = end.recv(_CHUNK)
                    is_open = bool(data)
                    note(data)
                    waiting.append((time.monotonic() + self.delay, data))
                while waiting and waiting[0][0] <= time.monotonic():
                    _, data = waiting.popleft()
                    if data:
                        other.sendall(data)
                    else:
                        other.shutdown(socket.SHUT_WR)


class _Heard:
    """What one connection says: messages of a client until one is answered."""

    def __init__(self, said: list[bytes]) -> None:
        self._said = said
        self._lock = threading.Lock()
        self._begun = False
        self._rest = b""
        self._text = b""
        self._asked = False

    def client(self, data: bytes) -> None:
        """Take note of what the client says."""
        with self._lock:
            self._rest += data
            while True:
                head = 1 if self._begun else 0
                if len(self._rest) < head + 4:
                    return
                (length,) = struct.unpack("!i", self._rest[head : head + 4])
                if len(self._rest) < head + length:
                    return
                message, self._rest = self._rest[: head + length], self._rest[head + length :]
                self._text = (self._text + message)[:_CHUNK]
                # Of the first messages, which have no letter, a question about encryption has 8
                # bytes, and the one that begins has more.
                self._asked |= not self._begun or message[:1] in _ANSWERED_AT_ONCE
                self._begun |= length > 8

    def server(self, data: bytes) -> None:
        """Take note that the server answers."""
        with self._lock:
            if self._asked and data:
                self._said.append(self._text)
                self._text, self._asked = b"", False


def main() -> None:
    """Run until interrupted."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("server", metavar="HOST:PORT")
    parser.add_argument("--milliseconds", type=float, default=10)
    given = parser.parse_args()
    host, _, port = given.server.rpartition(":")
    proxy = Proxy(host, int(port), given.milliseconds)
    print(f"127.0.0.1:{proxy.port}", flush=True)
    with suppress(KeyboardInterrupt):
        threading.Event().wait()
    print(f"{proxy.round_trips} round trips")


if __name__ == "__main__":
    main()


def under_lock(said: list[bytes]) -> int:
    """Count the round trips for which the lock of all writers is held."""
    found, held = 0, False
    for text in said:
        held = held or b"LOCK TABLE data_version" in text
        found += held
        held = held and b"COMMIT" not in text and b"ROLLBACK" not in text
    return found
