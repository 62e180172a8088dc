"""A client over stdio that goes away, as clients do: by closing one end, the other or both."""

import os
import select
import socket
from contextlib import ExitStack, contextmanager

import pytest

from tests import program

INITIALIZE = (
    b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18",'
    b'"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}\n'
    b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
)
CALL = (
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call",'
    b'"params":{"name":"list_skills","arguments":{}}}\n'
)


def pipes():
    """Return what a server reads and writes, and what its client writes and reads."""
    (their_in, our_in), (our_out, their_out) = os.pipe(), os.pipe()
    return their_in, their_out, our_in, our_out


def sockets():
    """Return the same for a pair of sockets each, as Node gives its children."""
    (one, two), (three, four) = socket.socketpair(), socket.socketpair()
    return one.detach(), three.detach(), two.detach(), four.detach()


@contextmanager
def session(environment, streams):
    """Start a server that has answered; yield it, where to write and read, and what it said."""
    their_in, their_out, our_in, our_out = streams()
    reading, writing = os.pipe()
    process = program.start(["mcp"], environ=environment, streams=(their_in, their_out, writing))
    for theirs in (their_in, their_out, writing):
        os.close(theirs)
    with ExitStack() as stack:
        asked = stack.enter_context(open(our_in, "wb", 0))
        answers = stack.enter_context(open(our_out, "rb"))
        said = stack.enter_context(open(reading, "rb"))
        stack.callback(process.join)
        stack.callback(process.kill)
        asked.write(INITIALIZE)
        assert b'"serverInfo"' in answers.readline()
        yield process, asked, answers, said


def ended(process, said):
    """Return how a server ended and what it said, waiting for it as long as a busy machine needs."""
    assert select.select([process.sentinel], [], [], 60)[0], "it still runs"
    process.join()
    return process.exitcode, said.read()


@pytest.mark.parametrize("streams", [pipes, sockets], ids=["pipes", "sockets"])
class TestGone:
    def test_a_server_whose_answers_nobody_reads_ends_quietly(self, environment, library, streams):
        with session(environment, streams) as (process, _, answers, said):
            answers.close()
            assert ended(process, said) == (0, b"")

    def test_also_with_an_answer_under_way(self, environment, library, streams):
        with session(environment, streams) as (process, asked, answers, said):
            for _ in range(20):
                asked.write(CALL)
            answers.close()
            assert ended(process, said) == (0, b"")

    def test_also_where_the_client_dies(self, environment, library, streams):
        with session(environment, streams) as (process, asked, answers, said):
            for _ in range(20):
                asked.write(CALL)
            asked.close()
            answers.close()
            assert ended(process, said) == (0, b"")

    def test_a_client_that_hangs_up_gets_the_answers_to_what_it_asked(
        self, environment, library, streams
    ):
        with session(environment, streams) as (process, asked, answers, said):
            asked.write(CALL)
            assert b'"total":11' in answers.readline().replace(b'\\"', b'"')
            asked.close()
            assert answers.read() == b""
            assert ended(process, said) == (0, b"")
