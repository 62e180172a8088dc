"""Text functions: compare and quote names, split text into words, format times."""

import operator
import re
import time
import unicodedata
from typing import Any, Final

_SCRIPTS: Final = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\u1780-\u17ff"  # Burmese, Khmer
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9d"  # Japanese kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Chinese characters
    "\uac00-\ud7a3"  # Korean, in which particles follow a word without a space
    "\U00020000-\U0003ffff"
)
_RUN: Final = re.compile(f"([{_SCRIPTS}]+)")
_WORD: Final = re.compile(r"\w+")
_NOT_SLUG: Final = re.compile("[^a-z0-9]+")
_ASCII: Final = bytes(range(128))

_IGNORABLE: Final = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
"""Characters that macOS ignores when it compares file names (git's `is_hfs_dotgit`)."""

LIKE_LATIN: Final = {
    ord(one): latin
    for latin, alike in {
        "a": "\u0430\u03b1\u0251",
        "b": "\u0432\u044c\u03b2\u0253",
        "c": "\u0441\u03f2\u1d04",
        "d": "\u0501\u0257\u0111",
        "e": "\u0435\u03b5\u04bd\u0454\u0259",
        "g": "\u0261\u0581\u0260\u050d",
        "h": "\u043d\u04bb\u0570\u0266\u029c\u0127",
        "i": "\u0456\u03b9\u0131\u0269\u026a\u13a5",
        "j": "\u0458\u0575\u03f3",
        "k": "\u043a\u03ba\u049b\u0199",
        "l": "\u04cf\u0582\u029f\u01c0\u05d5\u0142",
        "m": "\u043c\u03bc",
        "n": "\u043f\u03b7\u0578\u057c",
        "o": "\u043e\u03bf\u03c3\u0585\u00f8\u0d20\u0ed0",
        "p": "\u0440\u03c1\u01bf",
        "q": "\u051b\u0566",
        "r": "\u0433\u0280\u1d26",
        "s": "\u0455\ua731\u0283",
        "t": "\u0442\u03c4\u0167",
        "u": "\u03c5\u057d\u028b\u1d1c",
        "v": "\u03bd\u0475\u1d20",
        "w": "\u0448\u051d\u03c9\u0561\u1d21",
        "x": "\u0445\u03c7\u04b3",
        "y": "\u0443\u04af\u03b3\u028f",
        "z": "\u1d22\u01b6",
        "-": "\u058a\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u2043\u30fc",
    }.items()
    for one in alike
}
"""Lower-case letters of other scripts that look like Latin letters (Unicode TR39)."""

_LIKE_LETTERS: Final = str.maketrans({"0": "o", "1": "l", "|": "l"})

_UNSEEN: Final = frozenset({"Mn", "Me", "Cf"})
"""Unicode categories of combining marks and invisible characters."""

_UTC: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")

_SECRET_PART: Final = re.compile(
    "token|secret|passw|passphrase|signature|credential|apikey|api[-_.]key|accesskey|bearer|jwt"
    "|session|authori[sz]ation|private[-_.]?key"
)
_SECRET_WORD: Final = re.compile(
    r"(?:.*[^a-z0-9])?(?:[a-z]*key|sig|pass|pwd|pw|o?auth|sid|sas|code|hmac|pat|otp|ticket)"
)
_TOKEN: Final = re.compile(
    r"(?:gh[pousr]_|github_pat_|gl(?:pat|ptt|dt|rt|ft|cbt|imt|agent|soat|ffct)-|hf_|npm_|pypi-|"
    r"xox[a-z]-|sk-)\w{16,}[\w-]*|\beyJ[\w-]{10,}\.[\w-]+(?:\.[\w-]+)?"
)
"""Tokens in the formats of known hosts, and JSON web tokens."""

_RANDOM: Final = re.compile(
    r"(?=.*[0-9])(?=.*[A-Za-z])(?:.*[A-Za-z0-9]{24,}.*|(?=.*[a-z])(?=.*[A-Z])[\w+/=~.-]{32,})",
    re.DOTALL,
)
_NAMES_A_PLACE: Final = frozenset(
    "at branch commit file filename filepath name path ref rev revision sha tag version".split()
)
"""Names of URL parameters whose values may be long, but aren't secret."""

_VERSION: Final = re.compile("(?:[0-9a-f]{40}|[0-9a-f]{64})")
"""Matches the id of a commit, or a digest; these are long, but not secret."""

_START: Final = re.compile(
    r"(?i)(?:https?|ssh|ftps?)(?::|%3a)(?:[/\\]|%2f|%5c)*"
    r"|(?<![a-z0-9+.-])[a-z][a-z0-9+.-]{1,30}(?::|%3a)(?:[/\\]|%2f|%5c)+|\A//"
)
_AT: Final = re.compile("(?i)@|%40|\uff20|\ufe6b")
_USER: Final = re.compile(r"[\w.+-]{1,32}@")
_HOST_FIRST: Final = re.compile(
    r"(?:[\w-]+(?:\.[\w-]+)+|localhost|\[[0-9A-Fa-f:.]+\])/.*", re.DOTALL
)
_NO_PORT: Final = re.compile(r"([^/\\\s:@\[\]'\"]+:)(?![0-9]{1,5}(?:[^\w%]|\Z))[^/\s'\"]+")
_NO_SCHEME: Final = re.compile(
    r"(?:\A|(?<=[\s/'\"(=]))[\w.+-]+:[^\s/\\'\"@]+@(?=[\w.-]+[:/])|\A[^\s/\\:@]+:[^\s/\\]*@(?=\w)"
)
# If a space follows the sign and there is no "=", the text is prose and not a parameter.
_PARAMETER: Final = re.compile(r"([?&;#])(?! (?![^&;#\n]*=))([^=&;#\s?/]*=)?([^&;#\n'\"]+)")
_PATH_PARAMETER: Final = re.compile(r"(;)([^=;/]*=)?([^;/]+)")

MAX_LEXEME: Final = 500
"""Maximum length of a word in PostgreSQL's index, in characters.

PostgreSQL's limit is 2,046 bytes.
"""


def segment(text: str) -> str:
    """Return ``text`` with pairs of adjacent characters as words, for scripts without spaces.

    The last character of such a passage is also a separate word, so that each character begins a
    word. The full-text index contains segmented text. To delete a row, the same text must be given
    again. If you change this function, write a migration that rebuilds the index.
    """
    if text.isascii():
        return text
    parts = runs(text)
    for place in range(1, len(parts), 2):
        found = letters(parts[place])
        parts[place] = f" {' '.join([*pairs(found), found[-1:]])} "
    return "".join(parts)


def letters(run: str) -> str:
    """Return a passage in a script without spaces, without the combining marks."""
    return run if run.isalnum() else "".join(filter(str.isalnum, run))


def pairs(run: str) -> list[str]:
    """Return the pairs of adjacent characters of a passage."""
    return list(map(operator.add, run, run[1:]))


def runs(text: str) -> list[str]:
    """Split ``text`` between passages in scripts with and without spaces.

    Items with odd indexes are in scripts without spaces.
    """
    return _RUN.split(text)


def words(text: str) -> list[str]:
    """Return the words of ``text`` in the same way as the full-text index splits them."""
    return split(segment(text))


def split(text: str) -> list[str]:
    """Return the words of a text, without special treatment of scripts without spaces."""
    return _WORD.findall(text.replace("_", " "))


def fold(word: str) -> str:
    """Return ``word`` in the form of PostgreSQL's index: lower case, without accents."""
    if word.isascii():
        return word.lower()
    parts = unicodedata.normalize("NFKD", word)
    # Check each different mark once, and not each character of a long text.
    for mark in filter(unicodedata.combining, set(beyond_ascii(parts))):
        parts = parts.replace(mark, "")
    return unicodedata.normalize("NFC", parts.casefold())


def lexemes(text: str) -> str:
    """Return the words of ``text`` for PostgreSQL's index, separated by spaces."""
    return " ".join(words(fold(text)))


def slug(name: str) -> str:
    """Return ``name`` in a form for addresses: lower-case letters, digits and single hyphens.

    If no character is left, return ``skill``.
    """
    return _NOT_SLUG.sub("-", name.lower()).strip("-") or "skill"


def name_key(name: str) -> str:
    """Return the key by which names are sorted, and compared without regard to case.

    The key is the name in NFKC form, casefolded.
    """
    if name.isascii():
        return name.lower()
    return unicodedata.normalize("NFKC", name).casefold()


def skeleton(name: str) -> str:
    """Return the skeleton of a name, in which look-alike letters are the same letter.

    Names that users can confuse have the same skeleton.
    """
    plain = name_key(name)
    if not plain.isascii():
        parts = unicodedata.normalize("NFKD", plain)
        shown = (one for one in parts if unicodedata.category(one) not in _UNSEEN)
        plain = "".join(shown).translate(LIKE_LATIN)
    return plain.translate(_LIKE_LETTERS).replace("rn", "m").replace("vv", "w")


def spellings(name: str) -> list[str]:
    """Return ``name`` and its other spellings: NFC, NFD, and without a slash at the end.

    Shells add the slash when they complete a name that is also a folder.
    """
    plain = name.rstrip("/") or name
    if name.isascii():
        return list(dict.fromkeys([name, plain]))
    forms = (unicodedata.normalize(form, one) for one in (name, plain) for form in ("NFC", "NFD"))
    return list(dict.fromkeys([name, *forms]))


def tag_key(tag: str) -> str:
    """Return a tag in its stored form."""
    return " ".join(tag.casefold().split())


def folded(path: str) -> str:
    """Return a key that is equal for two paths if some file system treats them as equal."""
    if path.isascii():
        return path.lower()
    return unicodedata.normalize("NFC", _IGNORABLE.sub("", path)).casefold()


def has_unspaced(text: str) -> bool:
    """Tell whether ``text`` contains letters of a script without spaces between words."""
    return _RUN.search(beyond_ascii(text)) is not None


def beyond_ascii(text: str) -> str:
    """Return the characters of ``text`` that are outside ASCII."""
    if text.isascii():
        return ""
    data = text.encode("utf-8", "surrogatepass").translate(None, _ASCII)
    return data.decode("utf-8", "surrogatepass")


def is_encodable(text: str) -> bool:
    """Tell whether ``text`` can be encoded: it has no lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_path(text: str) -> bool:
    """Tell whether the text can only be a path, because its first characters can't begin a name."""
    return text in {".", ".."} or text.startswith(("/", "./", "../", "~"))


def utc_text(nanoseconds: int) -> str:
    """Return a UTC time as text, for a number of nanoseconds since 1970."""
    seconds = min(max(nanoseconds // 1_000_000_000, 0), 253_402_300_799)
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def utc_now() -> str:
    """Return the current UTC time as text."""
    return utc_text(time.time_ns())


def is_utc_text(value: str) -> bool:
    """Tell whether a value is a time in the format of `utc_text`."""
    return _UTC.fullmatch(value) is not None


MAX_CHOICES: Final = 20
"""Maximum number of choices that a message lists."""

MAX_NAME: Final = 120
"""Maximum length of a name in a message, in characters."""


class Fact:
    """A value in a message template.

    ``{x:q}`` quotes the value. ``{x:or}`` and ``{x:list}`` join a list of values.
    """

    def __init__(self, value: Any) -> None:
        self.value = value

    def __format__(self, spec: str) -> str:
        if spec == "q":
            return quoted(self.value)
        if spec == "or":
            names = [quoted(name) for name in self.value[:MAX_CHOICES]]
            return f"{', '.join(names[:-1])} or {names[-1]}" if names[1:] else "".join(names)
        if spec == "list":
            return ", ".join(map(str, self.value))
        return format(self.value, spec)


def quoted(name: object) -> str:
    """Quote a name; characters that could disturb a terminal become escapes."""
    text = shorten(str(name), MAX_NAME)
    return f"'{text}'" if text.isprintable() and "'" not in text else repr(text)


def is_secret(name: str, value: str) -> bool:
    """Tell whether a parameter of an address holds a password, a token or a signature."""
    from urllib.parse import unquote_plus

    for _ in range(3):  # the value may be percent-encoded more than once
        name, value = unquote_plus(name), unquote_plus(value)
    key = re.sub("(?<=[a-z0-9])(?=[A-Z])", "-", unicodedata.normalize("NFKC", name)).casefold()
    if _SECRET_PART.search(key) or _SECRET_WORD.fullmatch(key) or _TOKEN.search(value):
        return True
    if "://" in value and "@" in value:
        return True
    is_random = _RANDOM.fullmatch(value) and not _VERSION.fullmatch(value)
    return bool(key and is_random and key not in _NAMES_A_PLACE)


def without_secrets(url: str) -> str:
    """Return an address without its password and without parameters that contain secrets."""
    if not any(sign in url for sign in "?;#@"):
        return url
    path = re.split("[?#]", url, maxsplit=1)[0]
    query = _PARAMETER.sub(_without, url[len(path) :])
    path = _PATH_PARAMETER.sub(_without, path)
    if query and query[0] in "&;":  # the first parameter was removed
        query = f"?{query[1:]}"
    kept = path + query
    scheme, sign, rest = kept.partition("://")
    place, slash, path = rest.partition("/")
    user, at, host = place.rpartition("@")
    name, colon, _password = user.partition(":")
    if not sign or not at or not (colon or _TOKEN.search(user)):
        return kept
    user = "" if _TOKEN.search(name) else f"{name}@"
    return f"{scheme}://{user}{host}{slash}{path}"


def masked(text: str) -> str:
    """Return a text with asterisks in place of passwords and tokens in addresses.

    The addresses may contain typing errors, so everything that may be a secret is replaced.
    """
    if not any(sign in text for sign in ":@%\uff20\ufe6b"):
        return text
    starts = [*_START.finditer(text)]
    if not starts:
        return _NO_SCHEME.sub("***@", text)
    parts = [_NO_SCHEME.sub("***@", text[: starts[0].start()])]
    for one, following in zip(starts, [*starts[1:], None], strict=True):
        end = len(text) if following is None else following.start()
        lines = text[one.end() : end].split("\n")
        parts += [
            one[0],
            _masked_place(one[0].casefold(), lines[0]),
            *(f"\n{x}" for x in lines[1:]),
        ]
    return _TOKEN.sub("***", _PARAMETER.sub(_masked_parameter, "".join(parts)))


def _masked_place(start: str, rest: str) -> str:
    """Mask the user and password of an address, which begin after ``start``."""
    if start.startswith("file:///"):
        return rest
    kept = ""
    if not start.startswith("http"):
        user = _USER.match(rest)
        if user and not _RANDOM.fullmatch(user[0][:-1]):
            kept, rest = user[0], rest[user.end() :]
    signs = [*_AT.finditer(rest)]
    if signs and not _HOST_FIRST.fullmatch(rest[: signs[-1].start()]):
        return f"{kept}***{rest[signs[-1].start() :]}"
    return kept + _NO_PORT.sub(r"\1***", rest, count=1) if _NO_PORT.match(rest) else kept + rest


def _holds_secret(found: re.Match[str]) -> bool:
    return is_secret((found[2] or "").removesuffix("="), found[3])


def _without(found: re.Match[str]) -> str:
    return "" if _holds_secret(found) else found[0]


def _masked_parameter(found: re.Match[str]) -> str:
    return f"{found[1]}{found[2] or ''}***" if _holds_secret(found) else found[0]


def escaped(text: str) -> str:
    """Return ``text`` with escapes for characters that could disturb a terminal."""
    return text if text.isprintable() else repr(text)[1:-1]


def in_one_line(error: BaseException) -> str:
    """Return an error's message on one line, even if the error can't be converted to text."""
    from traceback import format_exception_only

    return " ".join(format_exception_only(error)[-1].split())


def shorten(text: str, limit: int, *, whole_words: bool = False) -> str:
    """Return ``text`` in at most ``limit`` characters; if it was cut, with an ellipsis.

    If ``whole_words``, it is cut at the last space in its second half, if there is one.
    """
    if len(text) <= limit:
        return text
    text = text[: limit - 1]
    if whole_words and (space := text.rfind(" ", limit // 2)) > 0:
        text = text[:space]
    return (text.rstrip() if whole_words else text) + "\N{HORIZONTAL ELLIPSIS}"
