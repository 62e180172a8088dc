"""Print findings: as paragraphs for people, or as lines for programs."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from registry.cli import escape, formatting
from registry.cli.formatting import wrap
from registry.cli.session import Console
from registry.model import Diagnostic

if TYPE_CHECKING:
    from registry.db.read.findings import SecurityFinding

INDENT: Final = "  "


def draw_findings(console: Console, findings: Iterable[Diagnostic], width: int) -> Iterator[str]:
    """Yield a paragraph for each finding: place, severity, code, message and fix."""
    for finding in findings:
        severity = console.style(finding.severity, formatting.SEVERITY_STYLES[finding.severity])
        where = _place(finding.path, finding.line) if finding.path else ""
        security = " (security)" if finding.category == "security" else ""
        yield f"{INDENT}{where}{severity} {escape.line(finding.code)}{security}"
        texts = [finding.message]
        if finding.fix:
            texts.append(f"Fix: {finding.fix}")
        for text in texts:
            for line in wrap(escape.prose(text), width - 2 * len(INDENT)):
                yield 2 * INDENT + line


def finding_line(finding: Diagnostic, folder: str) -> str:
    """Return a finding for editors and grep: ``path:line: severity code message (fix: …)``."""
    path = f"{folder.rstrip('/')}/{finding.path}" if finding.path else folder
    fix = f" (fix: {finding.fix})" if finding.fix else ""
    what = f"{finding.severity} {finding.code} {finding.message}{fix}"
    return f"{_place(path, finding.line)}{escape.prose(what)}"


def _place(path: str, line: int | None) -> str:
    return escape.line(f"{path}:{line}: " if line else f"{path}: ")


def report_security(console: Console, ref: str, found: "Diagnostic | SecurityFinding") -> None:
    """Print a security finding of a remote skill on stderr."""
    said = f"{ref}: {found.severity} {found.code}: {found.message}"
    console.note(escape.prose(said), formatting.SEVERITY_STYLES[found.severity])
