"""The changes as an Atom feed (RFC 4287)."""

from xml.etree import ElementTree as ET

from starlette.responses import Response

from registry.db.read.history import Change
from registry.web import addresses
from registry.web.answers import Visit, compressed
from registry.web.overview import recent

ATOM = "http://www.w3.org/2005/Atom"
_NOT_IN_XML = dict.fromkeys((*range(9), 11, 12, *range(14, 32), *range(55296, 57344), 65534, 65535))


def feed(visit: Visit) -> Response:
    """Return the last changes as a feed."""
    found = recent(visit, None)
    root = ET.Element("feed", {"xmlns": ATOM})
    _add(root, "title", "Skills: what changed")
    _add(root, "id", f"{visit.base}/changes")
    ET.SubElement(root, "link", {"href": f"{visit.base}/changes"})
    ET.SubElement(root, "link", {"rel": "self", "href": f"{visit.base}/changes.atom"})
    _add(root, "updated", found[0].at if found else "1970-01-01T00:00:00Z")
    author = ET.SubElement(root, "author")
    _add(author, "name", "Skill registry")
    for change in found:
        root.append(_entry(visit, change))
    body = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return compressed(visit.request, body, "application/atom+xml; charset=utf-8", {})


def _entry(visit: Visit, change: Change) -> ET.Element:
    entry = ET.Element("entry")
    _add(entry, "title", f"{change.name}: {change.kind}")
    # Of one skill each content is new once, and it goes at a time.
    _add(entry, "id", f"urn:skill-registry:{change.uid}:{change.revision or change.at}")
    _add(entry, "updated", change.at)
    path = addresses.history(change.ref) if change.kind != "added" else addresses.skill(change.ref)
    ET.SubElement(entry, "link", {"href": f"{visit.base}{path}"})
    _add(entry, "summary", change.description or change.ref)
    return entry


def _add(parent: ET.Element, tag: str, text: str) -> None:
    ET.SubElement(parent, tag).text = text.translate(_NOT_IN_XML)
