"""`skill-registry serve` and `token`."""

import ipaddress
import re
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import click

from registry.cli import escape, formatting, options
from registry.cli.group import Group, needs_extra, session_command
from registry.cli.listing import Column, emit, report_personality
from registry.cli.session import Console, Session
from registry.db.read.listing import Filters

if TYPE_CHECKING:
    from registry.changes.tokens import Token
    from registry.web.app import Address


EXTRA: Final = frozenset(
    "anyio h11 jinja2 markdown_it markupsafe nh3 pygments starlette uvicorn".split()
)


PUBLISHED: Final = (
    "Requests from this machine need no token. A proxy or tunnel to this port "
    "publishes the catalogue.\n"
)
REQUIRE: Final = "To require a token from everyone, run: skill-registry serve --public-url URL"
LOOPBACK: Final = (
    "--public-url does not change that, because {url} is an address of this machine. "
    "Give the URL that others use."
)
UNENCRYPTED: Final = (
    "Tokens and skills travel unencrypted, and skill-registry on other machines refuses http "
    "addresses. Use --tls-cert and --tls-key, or a proxy with HTTPS and --public-url https://…"
)


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    """Parse an IP address, or a range of addresses such as ``10.0.0.0/8``."""
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise ValueError(f"{text!r} is not an address or a range, such as 10.0.0.0/8.") from None


@session_command(
    "skill-registry serve                        # http://127.0.0.1:8765",
    "skill-registry serve --open",
    "skill-registry token create anna --read",
    "skill-registry serve --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem",
    "skill-registry serve --public-url https://skills.example.org    # behind a proxy",
    starts_new=True,
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="The address of this machine to listen on.",
)
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    default=8765,
    show_default=True,
    help="The port to listen on.",
)
@click.option("--open", "show", is_flag=True, help="Open the catalogue in a browser.")
@click.option(
    "--public-url",
    metavar="URL",
    help=(
        "The URL that others use; it may have a path. Every request then needs a token, unless "
        "this URL is an address of this machine (localhost)."
    ),
)
@click.option("--tls-cert", metavar="FILE", help="A certificate (PEM file), to serve HTTPS.")
@click.option("--tls-key", metavar="FILE", help="The key of the certificate (PEM file).")
@click.option(
    "--trust-header",
    metavar="NAME",
    help="The header in which a proxy names the user. Requires --from.",
)
@click.option(
    "--from",
    "networks",
    metavar="CIDR",
    type=options.Parsed("cidr", _network),
    multiple=True,
    help="Accept the header only from these addresses.",
)
@options.personality_option
@click.option("--no-watch", is_flag=True, help="Don't watch the folders for changes.")
def serve(
    session: Session,
    *,
    host: str,
    port: int,
    show: bool,
    public_url: str | None,
    tls_cert: str | None,
    tls_key: str | None,
    trust_header: str | None,
    networks: tuple[Any, ...],
    personality: str | None,
    no_watch: bool,
) -> None:
    """Serve the web catalogue: pages, the same facts as JSON, and /mcp.

    By default the server listens on this machine only, and a request needs no token unless it shows
    signs of a proxy. With another --host, the --public-url that others use, or --trust-header,
    every request needs a token (see "token create"), also from this machine, or the header of the
    trusted proxy; its users then see what --personality sees. Other machines need HTTPS. To change
    skills, every user needs a token with this right. ClawHub clients use /api/v1, other clients
    /.well-known/agent-skills; docs/reference/http.md lists all addresses.
    """
    if bool(trust_header) != bool(networks):
        raise click.UsageError("--trust-header and --from require each other.")
    if personality is not None and not trust_header:
        raise click.UsageError(
            "--personality requires --trust-header; each token has its own personality."
        )
    if bool(tls_cert) != bool(tls_key):
        raise click.UsageError("--tls-cert and --tls-key require each other.")
    if public_url is not None and not options.PUBLIC.fullmatch(public_url):
        message = "--public-url must be a URL such as https://skills.example.org or https://example.org/skills."
        raise click.UsageError(message)
    console = session.console
    with needs_extra("web", "The web catalogue", EXTRA):
        from registry.web.app import Address, serve
        from registry.web.auth import Trusted
    tls = (tls_cert, tls_key) if tls_cert and tls_key else None
    address = Address(host, port, public_url and public_url.rstrip("/"), tls)
    trusted = Trusted(trust_header, networks, personality) if trust_header else None

    def begun() -> None:
        lines = [] if address.public is None else [f"Listening on {address.own}"]
        console.note("\n".join([f"Serving {address.url}; Ctrl-C ends it.", *lines]))
        _report_access(console, address, trust_header)
        if show:
            click.launch(address.url)

    serve(session.registry, address, trusted=trusted, watch=not no_watch, on_start=begun)


def _report_access(console: Console, address: "Address", trust_header: str | None) -> None:
    """Print who needs a token, and whether tokens travel unencrypted."""
    if address.is_open and trust_header is None:
        url = escape.line(address.public or "")
        console.note(PUBLISHED + (LOOPBACK.format(url=url) if url else REQUIRE))
        return
    header = f", or the header {escape.line(trust_header)}" if trust_header else ""
    console.note(f"Every request needs a token{header}, also from this machine.")
    if address.is_unencrypted:
        console.note(UNENCRYPTED, "yellow")


_LENGTH: Final = re.compile(r"([1-9][0-9]{0,4})([hdw])")
_UNITS: Final = {"h": "hours", "d": "days", "w": "weeks"}


def _length(text: str) -> timedelta | None:
    """Parse a duration such as ``90d``; return None for ``never``."""
    if text == "never":
        return None
    found = _LENGTH.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not a duration such as 12h, 90d or 8w, or 'never'.")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


@click.group(
    cls=Group,
    examples=(
        "skill-registry token create anna --read --source team",
        "skill-registry token list",
    ),
)
def token() -> None:
    """Manage the access tokens of the web catalogue and /mcp."""


@session_command(
    "skill-registry token create anna --read --source team",
    "skill-registry token create ci --read --expires 30d",
    "skill-registry token create agent --write --personality coder",
    "skill-registry token create bob --publish --source team",
    group=token,
    starts_new=True,
)
@click.argument("name")
@click.option("--read", "may_read", is_flag=True, help="Allow reading.")
@click.option("--write", is_flag=True, help="Allow reading, and changing skills over /mcp.")
@click.option("--publish", is_flag=True, help="Allow reading, and publishing skills.")
@click.option("--approve", is_flag=True, help="Allow reading, and deciding on proposals.")
@click.option("--admin", is_flag=True, help="Allow all of these, and reading the audit log.")
@options.personality_option
@options.source_option(help="Limit the token to this source.")
@click.option(
    "--expires",
    metavar="LENGTH",
    type=options.Parsed("length", _length),
    default="90d",
    show_default=True,
    help="How long the token is valid: 12h, 90d, 8w, or never.",
)
def create(
    session: Session,
    *,
    name: str,
    may_read: bool,
    write: bool,
    publish: bool,
    approve: bool,
    admin: bool,
    personality: str | None,
    source: str | None,
    expires: timedelta | None,
) -> None:
    """Create a token and print it once.

    Without --source or --personality, the token is for all sources, including personal sources.

    Send it as a bearer token, or paste it into the sign-in page. The database stores only its hash.
    """
    rights = {"write": write, "publish": publish, "approve": approve}
    if may_read == any((admin, *rights.values())):
        message = "Give --read, or --admin, or some of --write, --publish and --approve."
        if may_read:
            message = "The other rights include reading: leave out --read."
        raise click.UsageError(message)
    if admin and (personality or source):
        raise click.UsageError("--admin can't be combined with --personality or --source.")
    if admin:
        rights = dict.fromkeys(rights, True)
    token, shown = session.registry.tokens().create(
        name, **rights, personality=personality, source=source, lasts=expires
    )
    session.console.write([shown])
    until = f"valid until {token.expires_at}" if token.expires_at else "valid until it is revoked"
    session.console.note(f"The token is shown only once; {until}.")
    if personality is not None:
        session.console.note(
            "A server reads the personalities only when it starts. If you have added "
            f"{escape.line(personality)} since then, restart 'skill-registry serve'."
        )
    elif source is None and not admin:
        _report_reach(session, token)
    if personality is not None or source is not None:
        _report_sight(session, personality, source)


def _report_sight(session: Session, personality: str | None, source: str | None) -> None:
    """If a token with these limits shows no skill now, print this, and explain its personality."""
    from registry.catalog.browse import Browse

    registry = session.registry
    known = personality is None or personality in registry.core.settings.personalities
    if not known:
        return
    view = Browse(registry.core, personality, source)
    if not view.list(Filters(), sort="name", reverse=False, limit=1, offset=0).total:
        where = "" if source is None else f" of the source {escape.line(source)}"
        session.console.note(f"The token shows no skill{where} now.", "yellow")
    if personality is not None:
        report_personality(session, personality)


def _report_reach(session: Session, token: "Token") -> None:
    """Print the sources that a token without limits can change, or the personal ones it shows."""
    from registry.publish.publishing import publishable

    verbs = {"write": "change", "publish": "publish into", "approve": "decide on proposals for"}
    if may := [verbs[right] for right in _rights(token)]:
        sources = publishable(session.registry.core)
        does = f"can {formatting.listed(may)} all your sources"
    else:
        sources = [one for one in session.registry.sources() if one.scope == "personal"]
        does = "shows all sources, also the personal ones"
    if sources:
        names = formatting.some_refs([f"{one.name} ({one.scope})" for one in sources])
        session.console.note(
            f"This token {does}: {names}. To limit it to one source, run: skill-registry token "
            f"revoke {token.number}. Then create it again with --source NAME."
        )


@session_command("skill-registry token list", group=token)
@options.format_options
def list_(session: Session) -> None:
    """List the tokens, and when each was last used.

    The time of the last use may be up to ten minutes old.

    A token is valid only while the user who created it runs the server, and for a database at the
    same path or address. In a backup that you restored to another path, no token is valid.
    """
    tokens = session.registry.tokens()
    emit(session, tokens.list(), COLUMNS, name=lambda one: one.name, nothing="No tokens.")
    if ignored := tokens.ignored():
        are = "is" if ignored == 1 else "are"
        session.console.note(
            f"{formatting.count(ignored, 'token')} in this database {are} not valid here: created "
            "by another user, with another state.key, or when the database had another path or "
            "address. To create a new token, run: skill-registry token create NAME --read"
        )


@session_command("skill-registry token revoke anna", group=token)
@click.argument("name", metavar="NAME|NUMBER")
def revoke(session: Session, *, name: str) -> None:
    """Revoke a token; it stops working immediately."""
    token = session.registry.tokens().revoke(name)
    session.console.note(f"Revoked {escape.line(token.name)} ({token.number}).")


def _rights(one: "Token") -> list[str]:
    return [right for right in ("write", "publish", "approve") if getattr(one, right)]


COLUMNS: "Sequence[Column[Token]]" = (
    Column("NUMBER", lambda one: one.number),
    Column("NAME", lambda one: one.name),
    Column("MAY", lambda one: " ".join(_rights(one)) or "read"),
    Column("PERSONALITY", lambda one: one.personality or ""),
    Column("SOURCE", lambda one: one.source or ""),
    Column("EXPIRES", lambda one: one.expires_at or "never"),
    Column("USED", lambda one: one.used_at or "never"),
)
