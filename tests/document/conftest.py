"""What tests of documents share."""

import pytest
import yaml

from registry.document import yaml_text


@pytest.fixture
def pure(monkeypatch):
    """Let YAML be read as where PyYAML was built without libyaml: ``pure()``."""

    def put():
        monkeypatch.setattr(yaml_text, "_parser", lambda: (yaml.SafeLoader, True))

    return put


@pytest.fixture(params=["libyaml", "pure"])
def parser(request, pure):
    """Run a test with libyaml's parser and with the one that stands in for it."""
    if request.param == "pure":
        pure()
    elif yaml_text._parser()[1]:
        pytest.skip("this PyYAML was built without libyaml")
