"""Package names that imitate well-known names."""

import re
from collections.abc import Iterator
from typing import Final

TARGETS: Final = frozenset(
    # PyPI
    "requests urllib3 numpy pandas python-dateutil beautifulsoup4 setuptools colorama cryptography"
    " matplotlib tensorflow pillow django flask sqlalchemy scikit-learn selenium paramiko "
    "discord.py"
    " openai anthropic langchain pydantic fastapi uvicorn boto3 botocore psycopg2 pyyaml jinja2 "
    "pytest"
    " playwright transformers opencv-python websocket-client python-dotenv telethon web3 httpx "
    "aiohttp"
    # npm
    " lodash express react react-dom axios chalk commander cross-env webpack typescript eslint "
    "mongoose"
    " moment discord.js dotenv electron puppeteer nodemon prettier socket.io node-fetch "
    "jsonwebtoken"
    " ethers bcrypt browserify underscore mongodb cheerio tailwindcss ts-node eslint-plugin-react"
    " claude-code".split()
)
"""Names that attackers imitate: the most downloaded packages, and names from known attacks."""

REAL: Final = frozenset({"preact", "request", "boto", "https"})
"""Real packages, and words in commands, with names that are close to names in `TARGETS`."""

_NAME: Final = re.compile(r"(?:@[\w.-]{1,60}/)?([\w][\w.-]{3,60})")
SHORTEST: Final = 5
_WITH_VALUE: Final = frozenset(
    {"-i", "-r", "-t", "-c", "-e", "--index-url", "--extra-index-url", "--target", "--prefix"}
)


def look_alike(names: str) -> str | None:
    """Return the first of the ``names`` that imitates a well-known name, or None."""
    parts = iter(names.split()[:20])
    for part in parts:
        if part in _WITH_VALUE:
            next(parts, None)
            continue
        match = _NAME.match(part.strip("'\""))
        if not match or "/" in part or part.startswith(("-", ".")):
            continue
        name = re.split(r"[=<>~!\[@]", match[1].lower())[0].rstrip(".,")
        if len(name) < SHORTEST or name in TARGETS or name in REAL:
            continue
        if _is_near(name):
            return name
    return None


def _shortened(name: str) -> Iterator[str]:
    """Yield ``name`` without its first character, without its second character, and so on."""
    return (name[:place] + name[place + 1 :] for place in range(len(name)))


_SHORTENED: Final = {short: target for target in TARGETS for short in _shortened(target)}


def _is_near(name: str) -> bool:
    """Return True if one insertion, deletion, replacement or swap turns the name into a target.

    Targets are the names in `TARGETS`.
    """
    if name in _SHORTENED:
        return True
    for place, short in enumerate(_shortened(name)):
        if short in TARGETS:
            return True
        target = _SHORTENED.get(short)
        if target is None:
            continue
        swapped = name[:place] + name[place : place + 2][::-1] + name[place + 2 :]
        if swapped == target or (
            len(name) == len(target)
            and name[:place] == target[:place]
            and name[place + 1 :] == target[place + 1 :]
        ):
            return True
    return False
