from tests.web.conftest import chromium, tab  # fixtures

__all__ = ["chromium", "tab"]
