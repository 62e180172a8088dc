"""Names that look like one that was not found."""

import pytest

from registry.api import SkillRegistry
from registry.catalog.resolve import near
from registry.errors import SkillNotFound
from registry.settings import Settings
from tests.conftest import keep_library, write_skill

NAMES = [
    f"{one}-{two}-{n}"
    for one in ("api", "data", "cloud", "test", "web")
    for two in ("review", "report", "chart", "deploy", "design")
    for n in range(40)
]


@pytest.fixture(scope="module", params=["few", "many"])
def library(request, new_database, tmp_path_factory):
    def fill(root):
        for name in ("pdf-forms", "release-notes", "plan", "commit_message", "Meeting Notes"):
            write_skill(root / name.replace(" ", "-"), name=name)
        if request.param == "many":
            for name in NAMES:
                write_skill(root / "more" / name)

    made = keep_library(new_database(), tmp_path_factory.mktemp("similar"), fill, "skills")
    with SkillRegistry.open(made.database, settings=Settings()) as registry:
        yield registry


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("pdf-fomrs", "pdf-forms"),
        ("pfd-forms", "pdf-forms"),
        ("dpf-forms", "pdf-forms"),
        ("pdfforms", "pdf-forms"),
        ("PDF_Forms", "pdf-forms"),
        ("forms", "pdf-forms"),
        ("release-note", "release-notes"),
        ("elease-notes", "release-notes"),
        ("plam", "plan"),
        ("paln", "plan"),
        ("commit-message", "commit_message"),
        ("meeting-notes", "Meeting Notes"),
        ("mine/release-nots", "release-notes"),
    ],
)
def test_a_slip_finds_what_was_meant(library, typed, meant):
    assert near(library.core.reader, typed)[0] == meant


@pytest.mark.parametrize("typed", ["", "/", "x" * 10_000, "\0", "\ud800", "\u202e", "  ", "-"])
def test_nothing_typed_is_too_strange(library, typed):
    assert isinstance(near(library.core.reader, typed), list)


@pytest.mark.both
def test_an_error_names_what_is_near(library):
    with pytest.raises(SkillNotFound, match="Did you mean 'pdf-forms'"):
        library.get("pdf-form")


@pytest.mark.both
def test_a_name_that_another_process_added_is_known(registry, root, skill, database):
    skill("alpha")
    registry.sync(str(root))
    assert near(registry.core.reader, "betas") == []
    skill("beta")
    with SkillRegistry.open(database, settings=Settings()) as other:
        other.sync()
    assert near(registry.core.reader, "betas") == ["beta"]
