"""The wheel works from anywhere, with no checkout in sight."""

import os
import subprocess
import sys
import zipfile

import pytest

from tests.conftest import REPOSITORY, write_skill


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    target = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(target)],
        cwd=REPOSITORY,
        check=True,
        capture_output=True,
    )
    (built,) = target.glob("*.whl")
    return built


def test_the_wheel_holds_the_package_the_migrations_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert "registry/_migrations/env.py" in names
    for part in ("initial.py", "tables.sql", "server.sql"):
        assert f"registry/_migrations/versions/0015_{part}" in names
    assert "registry/py.typed" in names
    roots = {name.split("/")[0] for name in names}
    assert {root for root in roots if not root.endswith(".dist-info")} == {"registry"}


def test_the_installed_package_syncs_and_lists_from_the_root_folder(wheel, tmp_path):
    installed = tmp_path / "installed"
    zipfile.ZipFile(wheel).extractall(installed)
    write_skill(tmp_path / "skills" / "alpha")
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    script = f"import registry.cli; assert registry.__file__.startswith({str(installed)!r}); registry.cli.main()"

    def run(*arguments):
        return subprocess.run(
            [sys.executable, "-c", script, "--db", str(tmp_path / "r.db"), *arguments],
            cwd="/",
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    run("sync", str(tmp_path / "skills"))
    assert run("list", "--format", "names") == "alpha\n"
