"""The benchmarks can be run: they share the tests' servers, and nothing else tries them."""

import subprocess
import sys

from tests.conftest import REPOSITORY


def test_the_benchmarks_find_all_that_they_are_made_of():
    ran = subprocess.run(
        [sys.executable, "benchmarks/run.py", "--help"],
        check=False,
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "--server-sizes" in ran.stdout
