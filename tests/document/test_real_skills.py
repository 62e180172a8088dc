"""Real skills of strangers, with every kind of trouble."""

import json
import os

import pytest
import yaml

from registry.document.frontmatter import split
from registry.document.parse import parse_document
from registry.document.repair import _Repair
from registry.document.yaml_text import Broken, YamlReading, read_mapping
from registry.model import DOCUMENT_NAMES

UNREADABLE = {"empty", "not-utf8"}
"""What nobody could read name and description from."""


@pytest.fixture(scope="module")
def files(corpus):
    found = []
    for folder, _, names in os.walk(corpus):
        for name in names:
            path = os.path.join(folder, name)
            if name.lower() in {known.lower() for known in DOCUMENT_NAMES} and os.path.isfile(path):
                with open(path, "rb") as file:
                    found.append((os.path.relpath(path, corpus), file.read()))
    assert len(found) > 200
    return found


@pytest.fixture(scope="module")
def valid(files):
    """The front matter that is valid YAML, and what it says."""
    found = []
    for path, data in files:
        front = split(data.decode("utf-8", "replace").removeprefix("\ufeff")).front
        if front is not None:
            try:
                found.append((path, front, read_mapping(front)))
            except Broken:
                continue
    return found


def test_all_that_a_person_can_read_is_usable(files):
    documents = [
        parse_document(data, folder_name=os.path.basename(os.path.dirname(path)))
        for path, data in files
    ]
    refused = [
        document
        for document in documents
        if not document.usable and not UNREADABLE & {f.code for f in document.diagnostics}
    ]
    assert len(refused) <= len(documents) // 1000
    assert sum(document.usable for document in documents) >= 0.99 * len(documents)
    for document in documents:
        assert document.name
        json.dumps(document.front_matter).encode()


def test_valid_front_matter_reads_as_a_loader_without_types_reads_it(valid):
    def without_nulls(value):
        if isinstance(value, dict):
            return {key: without_nulls(item) for key, item in value.items()}
        if isinstance(value, list):
            return [without_nulls(item) for item in value]
        return None if value in {"", "~", "null"} else value

    for path, front, reading in valid:
        try:
            expected = yaml.load(front, Loader=getattr(yaml, "CBaseLoader", yaml.BaseLoader))
        except yaml.constructor.ConstructorError:
            continue  # a list as a key
        if not any(finding.code == "yaml-duplicate-key" for finding in reading.findings):
            assert without_nulls(reading.values) == without_nulls(expected or {}), path


def test_repair_reads_valid_front_matter_as_it_is(valid):
    for path, front, expected in valid:
        reading = YamlReading()
        rows = front.replace("\r\n", "\n").removesuffix("\n").split("\n")
        _Repair(reading, set()).mapping(rows, 1, depth=1)
        assert reading.values == expected.values, path
        assert reading.lines == expected.lines, path


def test_the_pure_parser_reads_the_same(files, pure):
    def read():
        return [parse_document(data, folder_name="f") for _, data in files]

    expected = read()
    pure()
    for (path, _), first, second in zip(files, expected, read(), strict=True):
        assert (first.front_matter, first.body) == (second.front_matter, second.body), path
        assert {f.code for f in first.diagnostics} == {f.code for f in second.diagnostics}, path
