"""Take the pictures of docs/how-to/serve-the-web-catalogue.md: ``python -m tests.web.screenshots docs/images``.

Of the realistic home of the tests, in a Chromium that is on the PATH.
"""

import os
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from registry.api import SkillRegistry
from registry.settings import Settings
from tests.home import make
from tests.web.conftest import find_chromium, serving

PICTURES = {
    "web-start": ("/?q=review", (1000, 620)),
    "web-skill": ("/skills/claude/pdf-forms", (1000, 620)),
    "web-history": ("/history/claude/pdf-forms", (1000, 620)),
}


def take(folder: Path) -> None:
    """Write the pictures into a folder."""
    with tempfile.TemporaryDirectory() as place:
        home = Path(place) / "home"
        os.environ["HOME"] = str(home)
        make(home)
        with SkillRegistry.open(Path(place) / "registry.db", settings=Settings()) as registry:
            for agent in ("claude", "agents", "codex"):
                registry.sync(str(home / f".{agent}" / "skills"))
            registry.sync(str(home / "team" / "skills"), scope="team")
            document = home / ".claude" / "skills" / "pdf-forms" / "SKILL.md"
            text = document.read_text()
            document.write_text(text.replace("Do the work.", "Fill the form in, field by field."))
            registry.sync()
            with serving(registry) as site, sync_playwright() as running:
                browser = running.chromium.launch(
                    executable_path=find_chromium(), args=["--no-sandbox"]
                )
                for name, (path, (width, height)) in PICTURES.items():
                    page = browser.new_page(viewport={"width": width, "height": height})
                    page.goto(site.base + path)
                    page.screenshot(path=folder / f"{name}.png")
                    page.close()
                browser.close()


if __name__ == "__main__":
    take(Path(sys.argv[1]))
