"""Inert samples of attacks, by technique: what the checks must find, and what they must not.

Hosts and addresses are those of documentation (RFC 2606, RFC 5737). Encoded parts do nothing. A text
that begins with ``#file:`` is a supporting file. Of an honest skill that shows attacks, its name, its
description and the text are given.
"""

import json
from pathlib import Path
from typing import Any


def _read(name: str) -> Any:
    return json.loads(Path(__file__).with_name(f"{name}.json").read_text(encoding="utf-8"))


MARK = "#file:"
"""Begins the first line of a text that is a supporting file, and names that."""

_samples = _read("samples")
SAMPLES = _samples["by code"]
"""Samples by the code that finds them."""
HARMLESS = _samples["harmless"]
"""Honest texts that look like them."""
QUOTED = _samples["quoted"]
DISGUISED = _samples["disguised"]
"""What a skill asks for that only claims to be about defence."""

UNSEEN = _read("unseen")
"""Samples that were written before any pattern was. They are never to be fitted one by one."""

_agentic = _read("agentic")
TRIED = {theme: texts[:2] for theme, texts in _agentic["by theme"].items()}
"""Attacks on coding agents and their users, by what they do; patterns were made for these styles."""
HELD_OUT = {theme: texts[2:] for theme, texts in _agentic["by theme"].items()}
"""One more sample of each style, to which no pattern was fitted: it shows how they generalise."""
DEFENSIVE = _agentic["defensive"]
"""Skills that describe, detect or teach about attacks."""

_gathered = _read("gathered")
GATHERED = _gathered["attacks"]
"""What gathers secrets, hides in numbers or speaks past the user."""
HONEST = _gathered["honest"]
"""What the patterns for these must leave alone."""
SHOWN = _gathered["quoted"]
"""Honest skills that show such attacks."""
