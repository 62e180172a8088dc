"""Names of commands that users know from other programs: as aliases, or with suggestions."""

from collections.abc import Mapping, Sequence
from typing import Final

ALIASES: Final[Mapping[str, Sequence[Sequence[str]]]] = {
    "ls": (["list"],),
    "rm": (["delete"], ["remove"]),
    "mv": (["rename"],),
    "find": (["search"],),
    "outdated": (["pull", "--check"],),
}
"""Other names of commands; an alias works in each group that has its command."""

_DELETE: Final = (
    "'delete' NAME to move a skill to the trash, or 'pull --remove' NAME for an installed copy"
)
_UNINSTALL: Final = "'pull --remove' NAME for an installed copy, or 'delete' NAME for the skill"
_TAKE: Final = "'pull' NAME --agent X, 'import' FILE for an archive, or 'sync FOLDER' for a folder"
_SYNC: Final = "'sync', which updates the catalogue from the folders"
_SHOW: Final = "'show' NAME for a skill, or 'db info' for the database"
_ADD_VERSION: Final = "'version add' NAME LABEL"
_TOGETHER: Final = "'export' NAME FILE.zip for one skill, or 'pull' NAME... --to DIR for several"

SUGGESTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "": {
        **dict.fromkeys(("remove", "del", "unlink"), _DELETE),
        "uninstall": _UNINSTALL,
        **dict.fromkeys(("install", "fetch", "download"), _TAKE),
        **dict.fromkeys(("update-all", "refresh", "rescan", "scan", "index"), _SYNC),
        **dict.fromkeys(("info", "get", "view", "cat", "read", "open", "inspect"), _SHOW),
        **dict.fromkeys(("validate", "lint", "verify", "doctor"), "'check'"),
        "audit": "'history --since' 7d for changes of skills, 'db audit' for other changes, or "
        "'check' for problems of skills",
        **dict.fromkeys(("users", "roles", "rights"), "'db grants' or 'token list'"),
        **dict.fromkeys(("fix", "repair"), "'check --fix'"),
        **dict.fromkeys(("duplicates", "duplicate", "dupes"), "'copies'"),
        "usage": "'stats'",
        **dict.fromkeys(("dir", "skills", "all"), "'list'"),
        **dict.fromkeys(("grep", "query"), "'search'"),
        **dict.fromkeys(("evals", "evaluate", "test", "score"), "'eval'"),
        **dict.fromkeys(("undelete", "untrash", "recover"), "'restore'"),
        **dict.fromkeys(("log", "revisions"), "'history'"),
        "versions": "'version list' NAME, or 'history' NAME for every revision",
        **dict.fromkeys(("tag", "label", "release"), _ADD_VERSION),
        **{word: f"'version {word}' NAME@LABEL" for word in ("yank", "deprecate")},
        **{word: f"'proposal {word}' ID" for word in ("approve", "reject")},
        **dict.fromkeys(("rollback", "revert", "reset"), "'undo', or 'restore' NAME@LABEL"),
        "compare": "'diff' A B for two skills, or 'copies' NAME",
        **dict.fromkeys(("review", "reviews", "proposals", "pending"), "'proposal list'"),
        **dict.fromkeys(("propose", "push", "submit", "upload"), "'publish' FOLDER"),
        **dict.fromkeys(("bundle", "pack", "archive", "zip", "basket"), _TOGETHER),
        "move": "'rename' NAME NEW",
        **dict.fromkeys(("sources", "folders", "roots"), "'source list'"),
        **dict.fromkeys(("server", "run", "web"), "'serve' or 'mcp'"),
        "register": "'sync FOLDER'",
        "init": "'sync FOLDER' for a folder of skills, or 'create' NAME for a new skill",
        **dict.fromkeys(("new", "make"), "'create'"),
        "add": "'source add' FOLDER for a folder of skills, 'pull' ADDRESS to install skills, or "
        "'create' NAME for a new skill",
        "help": "'--help'? Put it after a command for help on that command",
        **dict.fromkeys(("settings", "options", "env"), "'config'"),
        "backup": "'db backup'",
        "upgrade": "'pull' for installed skills, 'sync' for the registry, or 'db upgrade' for the "
        "database",
        **dict.fromkeys(
            ("updates", "status"),
            "'pull --check' for installed skills, 'source list "
            "--remote' for sources, or 'stats' for the registry",
        ),
        **dict.fromkeys(
            ("which", "where", "path", "locate", "folder"),
            "'show --path' NAME for its folder, or 'why' NAME --agent X for what an agent loads",
        ),
        **dict.fromkeys(
            ("lock", "freeze"), "'pull', which records what it installs in skills.lock.json"
        ),
        **dict.fromkeys(("ci", "frozen"), "'pull --frozen'"),
        **dict.fromkeys(("clean", "prune", "gc"), "'db prune'"),
        "discover": "'source discover'",
        "trust": "'source trust' NAME",
        **dict.fromkeys(("untrust", "distrust"), "'source trust --revoke' NAME"),
        "explain": "'why'",
        **dict.fromkeys(("changes", "recent", "activity"), "'history --since' 7d, or 'diff' NAME"),
    },
    "source": {
        **dict.fromkeys(("delete", "del", "forget"), "'source remove'"),
        **dict.fromkeys(("untrust", "distrust", "revoke"), "'source trust --revoke' NAME"),
        "find": "'source discover'",
        "new": "'source add'",
        **dict.fromkeys(("set", "edit", "change", "config"), "'source update'"),
    },
    "proposal": {
        **dict.fromkeys(("diff", "view", "get", "open"), "'proposal show' ID"),
        **dict.fromkeys(("accept", "merge", "apply", "yes"), "'proposal approve' ID"),
        **dict.fromkeys(("decline", "deny", "refuse", "close"), "'proposal reject' ID"),
        **dict.fromkeys(("add", "create", "new"), "'publish' FOLDER"),
    },
    "trash": {
        **dict.fromkeys(("clear", "purge", "delete", "rm"), "'trash empty'"),
        **dict.fromkeys(("restore", "undelete"), "'restore'"),
    },
    "db": {
        **dict.fromkeys(("migrate", "update", "create", "init"), "'db upgrade'"),
        **dict.fromkeys(("move", "import"), "'db copy' FROM TO"),
        **dict.fromkeys(("path", "status", "show"), "'db info'"),
        **dict.fromkeys(("gc", "vacuum", "clean"), "'db prune'"),
        **dict.fromkeys(("dump", "export"), "'db backup'"),
        "verify": "'db check'",
        **dict.fromkeys(("roles", "rights", "permissions", "users"), "'db grants'"),
    },
    "tools": {"run": "'tools call'"},
    "version": {
        **dict.fromkeys(("create", "new", "set", "tag", "publish"), _ADD_VERSION),
        **dict.fromkeys(("restore", "checkout", "use"), "'restore' NAME@LABEL"),
        **dict.fromkeys(("diff", "show"), "'show' NAME@LABEL, or 'diff' NAME@LABEL"),
        **dict.fromkeys(("remove", "rm", "delete", "withdraw"), "'version yank' NAME@LABEL"),
    },
}
"""Suggestions for unknown commands, by group ("" means the program itself) and typed word."""

_SITE: Final = (
    "NAME FILE.zip for one skill, --well-known DIR for a web site, or 'pull' NAME --to DIR for a "
    "folder of skills"
)

_PIN: Final = "ADDRESS#v2, or 'source update' NAME --ref v2 for a source"
_PINS: Final = dict.fromkeys(("--pin", "--ref", "--tag", "--branch", "--rev", "--commit"), _PIN)

OPTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "export": dict.fromkeys(("--out", "--output", "--dir", "--to", "-o"), _SITE),
    "list": dict.fromkeys(
        ("--since", "--changed-since", "--modified-since"),
        "--updated-since, as in: list --updated-since 7d",
    ),
    "db backup": {"--force": "--overwrite"},
    "db restore": {"--force": "--overwrite"},
    "sync": _PINS,
    "source add": _PINS,
    "pull": _PINS,
    "source update": {"--pin": "--ref"},
    "tools schema": {"--format": "--style openai, anthropic or mcp"},
}
"""Suggestions for unknown options, by command and typed option."""

EXTRA: Final[Mapping[str, Mapping[str, str]]] = {
    "list": {
        "agents": "'agents', or 'list --agent' NAME for the skills of one",
        **dict.fromkeys(("sources", "folders"), "'source list'"),
        **{word: repr(word) for word in ("tags", "kinds", "categories", "copies")},
        "trash": "'trash list'",
        "installed": "'list --agent' NAME",
        "": "'search' WORD to find skills, or 'show' NAME for one",
    },
    "publish": {"": f"{_ADD_VERSION} to name a version"},
}
"""Suggestions for arguments of commands that accept none, by command and typed word.

The word "" means any other word.
"""
