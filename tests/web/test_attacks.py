"""A thousand skills of strangers in a real Chromium: no script of theirs runs, nothing leaves."""

import time
from collections.abc import Callable
from contextlib import contextmanager

import pytest
from markupsafe import Markup

from registry.web import addresses, answers, app, markdown
from registry.web.rendering import environment
from tests.web import attacks
from tests.web.conftest import serving

SKILLS = 1000
CPU = 2.0
"""Seconds of CPU time that a page may take."""


class Sentinel:
    """A tab that writes down what runs in it, what it asks of others, and what was stopped."""

    def __init__(self, browser, base):
        self.base = base
        self.ran, self.left, self.stopped = [], [], []
        self._context = browser.new_context()
        self._context.expose_binding("__ran", lambda source: self.ran.append(source["page"].url))
        self.page = self._context.new_page()
        self.page.on("dialog", self._on_dialog)
        self.page.on("console", self._on_console)
        self.page.on("request", self._on_request)
        self._context.on("page", lambda page: self.left.append(("a window", page.url)))

    def _on_dialog(self, dialog):
        self.ran.append((self.page.url, dialog.message))
        dialog.dismiss()

    def _on_console(self, said):
        # Pages that are not there are asked for, too; scripts of ours say nothing.
        if not said.text.startswith("Failed to load resource"):
            self.stopped.append((self.page.url, said.text))

    def _on_request(self, asked):
        if not asked.url.startswith(f"{self.base}/"):
            self.left.append((self.page.url, asked.url))

    def visit(self, path):
        """Open a page; return its status."""
        answer = self.page.goto(self.base + path.partition("#")[0])
        assert self.page.url.startswith(f"{self.base}/"), path
        return answer.status

    def close(self):
        self.page.evaluate("1")  # what was told before has come
        self._context.close()


@pytest.fixture
def watched(chromium):
    """Watch pages of a site: the sentinel, to be closed before it is asked."""

    @contextmanager
    def make(site):
        sentinel = Sentinel(chromium, site.base)
        try:
            yield sentinel
        finally:
            sentinel.close()

    return make


def pages_of(one, files) -> list[Callable[[], str]]:
    """Return the pages on which words of one skill stand."""
    ref = one.ref
    named = next(path for path in files if path.endswith(".md") and path != "SKILL.md")
    return [
        addresses.skill(ref),
        addresses.file(ref, named),
        addresses.history(ref),
        addresses.file(ref, "run.py"),
        f"/?q={addresses.of_ref(one.name)}",
        addresses.file(ref, "SKILL.md"),
        addresses.raw(ref, named),
        addresses.facet("tag", one.tags[0]) if one.tags else "/",
        f"/copies/{addresses.of_ref(ref)}",
        f"/why?q={addresses.of_ref(ref)}",
        addresses.file(ref, "x.svg"),
        addresses.as_json(f"/skills/{ref}"),
        addresses.raw(ref, "x.png"),
        addresses.file(ref, "x.html"),
        addresses.file(ref, "data.csv"),
        addresses.facet("kind", one.kind) if one.kind else "/",
    ]


def pages_of_all(registry, total):
    """Return the pages on which words of many skills stand."""
    yield from ("/stats", "/sources", "/changes", "/changes.atom", "/index.json", "/findings")
    yield from (f"/?all=1&limit=200&page={page}" for page in range(1, total // 200 + 2))
    for one in registry.browse().counts():
        yield from (
            f"/findings?code={one.code}&page={page}" for page in range(1, one.findings // 50 + 2)
        )


@pytest.fixture
def working(monkeypatch):
    """Count the seconds of CPU time that each page takes."""
    taken, answer = {}, answers._answer

    def measured(handler, visit, tag):
        begun = time.thread_time()
        try:
            return answer(handler, visit, tag)
        finally:
            taken[str(visit.request.url)] = time.thread_time() - begun

    monkeypatch.setattr(answers, "_answer", measured)
    return taken


def test_of_a_thousand_hostile_skills_none_runs_or_leaves(
    request, registry, root, settled, watched, working
):
    every = request.config.getoption("--all-skills") or request.config.getoption("--every-step")
    # Each payload comes in its turn in each place: this way in a third of all places.
    numbers = range(SKILLS) if every else range(0, len(attacks.PAYLOADS), 3)
    for turn in (0, 1):
        for number in numbers:
            attacks.write(root, number, turn)
        if turn:
            attacks.write_large(root)
        registry.sync(str(root), name="mine")
    shown = [one for one in registry.list(all=True) if one.folder.startswith("h-")]
    assert len(shown) == len(numbers)
    with serving(registry) as site, watched(site) as sentinel:
        paths = [*pages_of_all(registry, len(shown)), *large_pages(registry)]
        for place, one in enumerate(shown):
            files = [file.path for file in registry.get(one.ref).files]
            own = pages_of(one, files)
            # The skill's own page always, and each of the others in its turn.
            turns = (1 + (place + step) % (len(own) - 1) for step in range(3 if every else 1))
            paths += [own[0], *(own[turn] for turn in turns)]
        statuses = [(sentinel.visit(path), path) for path in paths]
    assert (sentinel.ran, sentinel.left, sentinel.stopped) == ([], [], [])
    assert [one for one in statuses if one[0] != 200] == []
    assert len(working) > len(numbers)
    assert {url: seconds for url, seconds in working.items() if seconds > CPU} == {}


def test_what_is_shown_in_a_tab_of_its_own_is_of_no_origin(registry, root, watched):
    attacks.write(root, 1)
    registry.sync(str(root), name="mine")
    (one,) = registry.list(all=True)
    with serving(registry) as site, watched(site) as sentinel:
        for path in ("SKILL.md", "x.png", "run.py"):
            assert sentinel.visit(addresses.raw(one.ref, path)) == 200
            assert sentinel.page.evaluate("origin") == "null"


def large_pages(registry):
    """Return the pages of what is large, or is no text."""
    for one in registry.list(all=True, limit=None):
        if one.folder.startswith("large-"):
            yield addresses.skill(one.ref)
            for file in registry.get(one.ref).files:
                yield addresses.file(one.ref, file.path)


@pytest.mark.parametrize("is_stopped", [True, False], ids=["by the browser", "by nothing"])
def test_it_would_be_noticed_if_something_ran(
    registry, root, settled, watched, monkeypatch, is_stopped
):
    """Without the cleaning; what browsers are told (Headers in app.py) then stops it, or nothing does."""
    for number in range(0, SKILLS, SKILLS // 5):
        attacks.write(root, number)
    registry.sync(str(root), name="mine")
    monkeypatch.setattr(markdown, "_clean", lambda dirty, _rewrite: dirty)
    monkeypatch.setitem(environment().filters, "isolated", Markup)
    if not is_stopped:
        monkeypatch.setitem(app.ALWAYS, "content-security-policy", "")
    with serving(registry) as site, watched(site) as sentinel:
        for one in registry.list(all=True):
            with_links_elsewhere = addresses.skill(one.ref)
            try:
                sentinel.visit(with_links_elsewhere)
            except Exception as error:  # noqa: BLE001  # it went elsewhere
                sentinel.left.append((with_links_elsewhere, str(error)))
    if is_stopped:
        assert sentinel.ran == []
        assert any("Content Security Policy" in text for _, text in sentinel.stopped)
    else:
        assert sentinel.ran
        assert any(attacks.ELSEWHERE in url for _, url in sentinel.left)
