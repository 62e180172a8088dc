"""The pages of the documentation about the catalogue."""

import re

import pytest

from registry.web.openapi import PATHS
from tests.conftest import REPOSITORY
from tests.pages import run, told

HTTP = REPOSITORY / "docs" / "reference" / "http.md"
WEB = REPOSITORY / "docs" / "how-to" / "serve-the-web-catalogue.md"


@pytest.mark.file
def test_the_page_of_the_api_prints_what_it_says(tmp_path):
    assert len(told(HTTP)) > 15
    assert run(HTTP, tmp_path) == told(HTTP)


def test_every_path_that_is_described_is_documented():
    text = HTTP.read_text(encoding="utf-8")
    for path, _, asked in PATHS:
        name = path.replace("{ref}", "REF").replace("{name}", "P")
        assert name in text or name.replace("REF", "merge-pdfs") in text, path
        for parameter, *_ in asked if path == "/index.json" else ():
            assert f"`{parameter}" in text or f"{parameter}=" in text, parameter


def test_the_pictures_are_there_small_and_described():
    pictures = re.findall(r"!\[([^\]]+)\]\(([^)]+)\)", WEB.read_text(encoding="utf-8"))
    assert len(pictures) <= 3
    for about, path in pictures:
        assert len(about) > 10
        assert (WEB.parent / path).stat().st_size < 100_000
