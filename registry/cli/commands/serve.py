"""`skill-registry serve` and `token`."""

import ipaddress
import re
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import click

from registry.cli import escape, options
from registry.cli.group import Group, session_command
from registry.cli.listing import Column, emit
from registry.cli.session import Session

if TYPE_CHECKING:
    from registry.changes.tokens import Token


EXTRA: Final = frozenset(
    "anyio h11 jinja2 markdown_it markupsafe nh3 pygments starlette uvicorn".split()
)

_PUBLIC: Final = re.compile(r"https?://[^/?#@\s]+/?", re.IGNORECASE)
"""Public URLs have no path: links of pages start at the root of the server."""


PUBLISHED: Final = (
    "This machine needs no token. A proxy or tunnel to this port publishes the catalogue.\n"
)
REQUIRE: Final = "To require a token from everyone, run: skill-registry serve --public-url URL"
LOOPBACK: Final = (
    "--public-url changes nothing about that, as {url} is an address of this machine: give the URL "
    "that others use."
)


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    """Read an address, or a range of them such as ``10.0.0.0/8``."""
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise ValueError(f"{text!r} is no address or range, such as 10.0.0.0/8.") from None


@session_command(
    "skill-registry serve                        # http://127.0.0.1:8765",
    "skill-registry serve --open",
    "skill-registry token create anna --read && skill-registry serve --host 0.0.0.0",
    "skill-registry serve --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem",
    starts_new=True,
)
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="The address of this machine to serve."
)
@click.option(
    "--port", type=click.IntRange(1, 65535), default=8765, show_default=True, help="The port."
)
@click.option("--open", "show", is_flag=True, help="Open it in a browser.")
@click.option(
    "--public-url",
    metavar="URL",
    help="Name the URL that others use; then every request needs a token, unless the URL is one of "
    "this machine (localhost).",
)
@click.option("--tls-cert", metavar="FILE", help="A certificate (PEM): serve HTTPS.")
@click.option("--tls-key", metavar="FILE", help="Its key (PEM).")
@click.option(
    "--trust-header", metavar="NAME", help="A header in which a proxy says who asks; with --from."
)
@click.option(
    "--from",
    "networks",
    metavar="CIDR",
    type=options.Parsed("cidr", _network),
    multiple=True,
    help="The addresses from which the header is believed.",
)
@options.personality_option
@click.option("--no-watch", is_flag=True, help="Don't follow the folders by file events.")
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

    A request from this machine needs no token, unless you give the --public-url that others use, or
    it shows a sign of a proxy. Any other request needs a token (see "token create"), or a header of
    a trusted proxy, whose users see what --personality sees. Pages only read.
    ClawHub's clients find /api/v1, others /.well-known/agent-skills;
    docs/reference/http.md has all of it.
    """
    if bool(trust_header) != bool(networks):
        raise click.UsageError("--trust-header and --from go together.")
    if personality is not None and not trust_header:
        raise click.UsageError("--personality goes with --trust-header; a token has its own.")
    if bool(tls_cert) != bool(tls_key):
        raise click.UsageError("--tls-cert and --tls-key go together.")
    if public_url is not None and not _PUBLIC.fullmatch(public_url):
        message = "--public-url is a URL without a path, such as https://skills.example.org."
        raise click.UsageError(message)
    console = session.console
    try:
        from registry.web.app import Address, serve
        from registry.web.auth import Trusted
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in EXTRA:
            raise
        message = "The web catalogue is an extra: pip install 'skill-registry[web]'"
        raise click.ClickException(message) from error
    tls = (tls_cert, tls_key) if tls_cert and tls_key else None
    address = Address(host, port, public_url and public_url.rstrip("/"), tls)
    trusted = Trusted(trust_header, networks, personality) if trust_header else None

    def begun() -> None:
        lines = [] if address.public is None else [f"A proxy forwards requests to {address.own}"]
        console.note("\n".join([f"Serving {address.url}; Ctrl-C ends it.", *lines]))
        if address.is_open and trusted is None:
            url = escape.line(address.public or "")
            console.note(PUBLISHED + (LOOPBACK.format(url=url) if url else REQUIRE))
        if show:
            click.launch(address.url)

    serve(session.registry, address, trusted=trusted, watch=not no_watch, on_start=begun)


_LENGTH: Final = re.compile(r"([1-9][0-9]{0,4})([hdw])")
_UNITS: Final = {"h": "hours", "d": "days", "w": "weeks"}


def _length(text: str) -> timedelta | None:
    """Read a length of time such as ``90d``; None: ``never``."""
    if text == "never":
        return None
    found = _LENGTH.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no length such as 12h, 90d or 8w, nor 'never'.")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


@click.group(
    cls=Group,
    examples=("skill-registry token create anna --read", "skill-registry token list"),
)
def token() -> None:
    """Let others into the web catalogue, or no longer."""


@session_command(
    "skill-registry token create anna --read",
    "skill-registry token create ci --read --source team --expires 30d",
    "skill-registry token create agent --write --personality coder",
    group=token,
    starts_new=True,
)
@click.argument("name")
@click.option("--read", "may_read", is_flag=True, help="It may read.")
@click.option("--write", is_flag=True, help="It may change skills, too, over /mcp.")
@options.personality_option
@options.source_option(help="It shows this source alone.")
@click.option(
    "--expires",
    metavar="LENGTH",
    type=options.Parsed("length", _length),
    default="90d",
    show_default=True,
    help="For how long it is valid: 12h, 90d, 8w, or never.",
)
def create(
    session: Session,
    *,
    name: str,
    may_read: bool,
    write: bool,
    personality: str | None,
    source: str | None,
    expires: timedelta | None,
) -> None:
    """Make a token and print it, this once.

    It is sent as a bearer token, or pasted into the page that asks for it. The database keeps no
    more than its hash.
    """
    if may_read == write:
        raise click.UsageError("Give --read or --write.")
    token, shown = session.registry.tokens().create(
        name, write=write, personality=personality, source=source, lasts=expires
    )
    session.console.write([shown])
    until = f"valid until {token.expires_at}" if token.expires_at else "valid until it is revoked"
    session.console.note(f"It is shown this once; {until}.")


@session_command("skill-registry token list", group=token)
@options.format_options
def list_(session: Session) -> None:
    """List the tokens that were made, and when each was used last."""
    found = session.registry.tokens().list()
    emit(session, found, COLUMNS, name=lambda one: one.name, nothing="There is no token.")


@session_command("skill-registry token revoke anna", group=token)
@click.argument("name", metavar="NAME|NUMBER")
def revoke(session: Session, *, name: str) -> None:
    """Take a token away; who shows it is turned away from now on."""
    token = session.registry.tokens().revoke(name)
    session.console.note(f"Revoked {escape.line(token.name)} ({token.number}).")


COLUMNS: "Sequence[Column[Token]]" = (
    Column("NUMBER", lambda one: one.number),
    Column("NAME", lambda one: one.name),
    Column("MAY", lambda one: "write" if one.write else "read"),
    Column("PERSONALITY", lambda one: one.personality or ""),
    Column("SOURCE", lambda one: one.source or ""),
    Column("EXPIRES", lambda one: one.expires_at or "never"),
    Column("USED", lambda one: one.used_at or "never"),
)
