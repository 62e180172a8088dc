"""A stretch of Markdown as a line of text."""

import pytest

from registry.catalog.search.find import plain


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("## When\n\n- **PDF** files `a_b`\n* *x* y\n1. one", "When PDF files a_b x y one"),
        ("| Notes | |\n|----|---|\n| **PDF** | Portable |", "Notes PDF Portable"),
        ("use *.pdf and a * b, cat x | grep y", "use *.pdf and a * b, cat x | grep y"),
        ("see [the docs](http://x) and ![p](y.png)", "see the docs and p"),
        ("__bold__ snake__case__x and snake_case", "bold snake__case__x and snake_case"),
        ("cut off.\n\n```python\nx = 1\n```\n> - quoted", "cut off. x = 1 quoted"),
        ("---\n***\n===\n", ""),
        ("2026. A year - and a dash", "2026. A year - and a dash"),
    ],
)
def test_markup_is_left_out_and_words_stay(text, told):
    assert plain(text) == told
