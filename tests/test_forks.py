"""A process that forks: its child begins anew, and neither stands in the other's way."""

import multiprocessing
import os
import signal
import threading
from contextlib import contextmanager

import pytest

from registry.api import SkillRegistry
from registry.disk.locks import FileLock
from registry.errors import RegistryError
from registry.settings import Settings


@contextmanager
def forked(work):
    """Run ``work`` in a forked child, which is waited for; it must come to its end."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException as error:  # noqa: BLE001  # told by its status
            os.write(2, f"{error!r}\n".encode())
        finally:
            os._exit(code)
    try:
        yield
    except BaseException:
        os.kill(child, signal.SIGKILL)
        raise
    finally:
        status = os.waitpid(child, 0)[1]
    assert os.waitstatus_to_exitcode(status) == 0


class Signal:
    """Something that one process says to another, once."""

    def __init__(self):
        self.reading, self.writing = os.pipe()

    def send(self):
        os.write(self.writing, b".")

    def wait(self):
        assert os.read(self.reading, 1) == b"."


def change(registry, name="alpha", body="New.\n"):
    registry.update(name, body=body)


def test_an_idle_child_that_was_forked_under_a_lock_does_not_keep_it(tmp_path):
    path, end = str(tmp_path / "lock"), Signal()
    with FileLock(path) as lock:
        assert lock.acquire(0)
        with forked(end.wait):
            lock.release()
            try:
                with FileLock(path) as again:
                    assert again.acquire(0)
            finally:
                end.send()


def test_a_lock_ends_with_its_holder_though_a_child_lives_on(tmp_path):
    path, held, end = str(tmp_path / "lock"), Signal(), Signal()

    def holder():
        lock = FileLock(path)
        assert lock.acquire(0)
        if os.fork() == 0:
            held.send()
            end.wait()
            os._exit(0)
        os._exit(0)  # without giving the lock back

    with forked(holder):
        held.wait()
    try:
        with FileLock(path) as lock:
            assert lock.acquire(5)
    finally:
        end.send()


def test_what_a_child_does_with_an_inherited_lock_leaves_its_parents_alone(tmp_path):
    path = str(tmp_path / "lock")
    with FileLock(path) as lock:
        assert lock.acquire(0)

        def give_back():
            lock.release()
            with FileLock(path) as other:
                assert not other.acquire(0)

        with forked(give_back):
            pass


def test_a_child_reads_and_writes_when_its_parent_has_closed(filled):
    closed, path = Signal(), filled.path

    def child():
        assert len(filled.list()) == 2
        closed.wait()
        change(filled)
        assert "New." in filled.read("alpha")
        filled.close()

    with forked(child):
        filled.close()
        closed.send()
    with SkillRegistry.open(path, settings=Settings()) as again:
        assert "New." in again.read("alpha")
        assert again.check_database() == []


def test_children_of_a_process_whose_threads_read_and_write_do_their_work(filled):
    forks = 5
    done, wrote, failed = threading.Event(), threading.Event(), []

    def write():
        number = 0
        while not done.is_set():
            number += 1
            try:
                change(filled, body=f"By the parent, {number}.\n")
            except Exception as error:  # noqa: BLE001
                failed.append(error)
            wrote.set()

    def read():
        while not done.wait(0.001):  # else the writer hardly comes to its turn
            filled.search("alpha")

    threads = [threading.Thread(target=work) for work in (write, read, read)]
    for thread in threads:
        thread.start()

    def child():
        assert [skill.name for skill in filled.list()] == ["alpha", "beta"]
        change(filled, "beta", f"By a child, {os.getpid()}.\n")
        filled.close()

    try:
        for _ in range(forks):
            assert wrote.wait(60)
            wrote.clear()
            with forked(child):
                pass
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert failed == []
    assert filled.check_database() == []
    assert len(filled.history("beta")) == forks + 1


def in_a_process_of_its_own(path):
    with SkillRegistry.open(path, settings=Settings()) as registry:
        change(registry, body="By another process.\n")


@pytest.mark.file
@pytest.mark.parametrize("way", ["fork", "spawn"])
def test_each_way_to_start_a_process_works(filled, way):
    """A forkserver does both: it is started anew, and forks."""
    context = multiprocessing.get_context(way)
    process = context.Process(target=in_a_process_of_its_own, args=(str(filled.path),))
    process.start()
    process.join()
    assert process.exitcode == 0
    assert "another process" in filled.read("alpha")


def test_what_was_counted_before_a_fork_is_counted_once(filled):
    tools = filled.toolset("native")
    tools.call("read_skill", {"name": "alpha"})
    with forked(filled.close):
        pass
    filled.core.usage.write()
    assert [count.read for count in filled.usage_counts()] == [1]


ROWS = """
    WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 1000)
    SELECT n, {} FROM numbers
"""


@pytest.mark.file
def test_a_registry_is_closed_while_its_threads_read(filled):
    """Whoever is amid a call ends it first: a connection closed under it would end the process."""
    failed = []

    def child():
        for _ in range(20):
            with SkillRegistry.open(filled.path, settings=Settings()) as registry:
                reading = threading.Barrier(3)

                def read(registry=registry, reading=reading):
                    registry.core.reader.rows("SELECT 1")  # by a connection of its own
                    reading.wait()
                    try:
                        for number in range(10):
                            registry.core.reader.rows(ROWS.format(number))
                    except RegistryError as error:
                        failed.append(error)

                threads = [threading.Thread(target=read) for _ in range(2)]
                for thread in threads:
                    thread.start()
                reading.wait()
            for thread in threads:
                thread.join()
        assert failed == []

    with forked(child):
        pass
