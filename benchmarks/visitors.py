"""Ask a server for pages over connections that stay open: a process of its own.

    python benchmarks/visitors.py HOST PORT CONNECTIONS < plan.json

The plan is a list of (kind, path); printed is a list of (kind, seconds, status, bytes), and how
long all of it took.
"""

import http.client
import json
import sys
import threading
import time
from itertools import count

Answer = tuple[str, float, int, int]

ASKING = {"Accept": "text/html", "Accept-Encoding": "gzip"}


def ask(connection: http.client.HTTPConnection, kind: str, path: str) -> Answer:
    started = time.perf_counter()
    connection.request("GET", path, headers=ASKING)
    answer = connection.getresponse()
    size = len(answer.read())
    return kind, time.perf_counter() - started, answer.status, size


def visit(host: str, port: int, plan: list[tuple[str, str]], visitors: int) -> list[Answer]:
    """Ask for all that is planned, each visitor for the next that nobody has asked for yet."""
    found: list[Answer] = []
    turns = count()

    def work() -> None:
        connection = http.client.HTTPConnection(host, port, timeout=60)
        while (turn := next(turns)) < len(plan):
            found.append(ask(connection, *plan[turn]))
        connection.close()

    threads = [threading.Thread(target=work) for _ in range(visitors)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


if __name__ == "__main__":
    began = time.perf_counter()
    told = visit(sys.argv[1], int(sys.argv[2]), json.load(sys.stdin), int(sys.argv[3]))
    print(json.dumps([told, time.perf_counter() - began]))
