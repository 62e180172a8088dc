"""Add proposals, and record decisions about them."""

from sqlalchemy import Connection, func, insert, select, update

from registry.db.schema import proposals, revisions, sources
from registry.db.write.access import record_audit


def add_proposal(connection: Connection, **facts: object) -> None:
    """Add a proposal; on a server, the server itself adds it to the audit log."""
    connection.execute(insert(proposals).values(**facts, state="pending"))
    _tell(connection, "skill proposed", str(facts["id"]))


def set_state(
    connection: Connection,
    number: str,
    before: str,
    state: str,
    *,
    by: str | None = None,
    at: str | None = None,
    reason: str | None = None,
) -> bool:
    """Change the state of a proposal if its state is ``before``; return whether the state changed.

    ``by``, ``at`` and ``reason`` are recorded, unless the new state is applied.
    """
    decision = {} if state == "applied" else {"decided_by": by, "decided_at": at, "reason": reason}
    known = (proposals.c.id == number) & (proposals.c.state == before)
    changing = update(proposals).where(known).values(state=state, **decision)
    if not connection.execute(changing.returning(proposals.c.id)).all():
        return False
    if state != "pending":
        _tell(connection, f"proposal {state}", number)
    return True


def set_review(connection: Connection, source_id: int, *, required: bool) -> None:
    """Put a source under review, or end its review.

    Existing revisions count as approved. So the source stores the id that the next revision will
    have.
    """
    known = sources.c.id == source_id
    last = connection.execute(select(func.coalesce(func.max(revisions.c.id), 0))).scalar_one()
    since = last + 1 if required else 0
    name, before = connection.execute(select(sources.c.name, sources.c.review).where(known)).one()
    connection.execute(update(sources).where(known).values(review=since))
    told = ["required" if one else "none" for one in (before, since)]
    record_audit(connection, "source changed", name, review=told)


def _tell(connection: Connection, what: str, number: str) -> None:
    if connection.dialect.name == "postgresql":
        return
    columns = [proposals.c[name] for name in "name kind tree_hash author decided_by reason".split()]
    name, *facts = connection.execute(select(*columns).where(proposals.c.id == number)).one()
    told = dict(zip("kind tree_hash author by reason".split(), facts, strict=True))
    record_audit(connection, what, name, proposal=number, **told)
