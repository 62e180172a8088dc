"""Which tests a run takes, in which order, and what it is told by its options."""

import gc
import os
from pathlib import Path

import hypothesis
import pytest

from tests.on_a_server import is_for_a_server, may_be_for_a_server

# A noisy machine is no failure, and a run that judges a change must not fail by chance: new
# counterexamples are looked for by people, who keep them as tests.
hypothesis.settings.register_profile(
    "here", deadline=None, derandomize=os.environ.get("CI") is not None, max_examples=30
)
hypothesis.settings.register_profile("long", deadline=None, max_examples=200)
hypothesis.settings.load_profile("here")

BACKENDS = ("sqlite", "postgresql")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--backend",
        choices=BACKENDS,
        default="sqlite",
        help="the database behind the tests that ask for one; what is about files stays with files",
    )
    parser.addoption(
        "--every-line",
        action="store_true",
        help="break changes at each line that is executed, not only where something is written",
    )
    parser.addoption(
        "--every-step",
        action="store_true",
        help="try each step, attack, page and request, not a part of them that is always the same",
    )
    parser.addoption(
        "--all-skills",
        action="store_true",
        help="take all of the collection of real skills, not a twelfth that is always the same",
    )


def pytest_configure(config: pytest.Config) -> None:
    # What lasts longer than a test, and is made before `_home`, is to be nobody's, either.
    for name in [name for name in os.environ if name.startswith("XDG_")]:
        del os.environ[name]
    use_the_programs_thresholds()  # of the garbage collector, for the collecting of tests, too
    from tests.changes import faults

    if config.getoption("--every-step"):
        hypothesis.settings.load_profile("long")
    faults.every_line = config.getoption("--every-line")
    faults.every_step = config.getoption("--every-step")
    config.addinivalue_line("markers", "file: about SQLite files: not for a server")
    config.addinivalue_line("markers", "server: about PostgreSQL: not for a file")
    config.addinivalue_line(
        "markers", "reads: only reads its library, which is made once for the module"
    )
    config.addinivalue_line(
        "markers",
        "both: asked of a server as well, on behalf of its file; see tests/on_a_server.py",
    )


LONG = """
test_faults.py test_looks.py test_attacks.py test_clawhub.py test_power_cuts.py test_browser.py
test_frameworks.py test_watching.py test_conformance.py test_chaos.py test_git_sync.py
test_git_kept.py test_kills.py test_origins.py test_git_served.py test_git_hostile.py
test_install_killed.py test_client.py test_pooled.py test_projects.py test_teams.py test_owners.py
test_processes.py test_read_only.py test_damaged.py test_corpus.py test_edit.py test_many.py
test_pull.py test_exchanged_links.py test_journeys.py test_forks.py
""".split()
"""Files that take long, the longest first: they begin, and all workers end at the same time."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no file for a server that has no test for it, as most have none."""
    if config.getoption("--backend") == "sqlite" or may_be_for_a_server(collection_path):
        return None
    return True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is about the other database, and on a server what says nothing about it."""
    on_a_server = config.getoption("--backend") == "postgresql"
    chosen, others = [], []
    for item in items:
        fits = is_for_a_server(item) if on_a_server else not item.get_closest_marker("server")
        (chosen if fits else others).append(item)
    config.hook.pytest_deselected(items=others)
    places = {name: place for place, name in enumerate(LONG)}
    items[:] = sorted(chosen, key=lambda item: places.get(item.path.name, len(LONG)))


def pytest_collection_finish() -> None:
    """Spare the garbage collector what stays: the modules and thousands of collected tests."""
    gc.freeze()


def use_the_programs_thresholds() -> None:
    gc.set_threshold(50_000, 20, 100)
