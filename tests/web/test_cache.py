"""What is kept of the pages: within bounds, for who sees the same, until something changes."""

import threading

from registry.web import markdown
from registry.web.state import TEXTS, WORKERS, AppState, Cache
from tests.conftest import write_skill
from tests.web.conftest import rewrite, serving


def test_what_was_used_last_is_kept_and_no_more_than_may_be():
    kept = Cache(64, len)
    kept.put("a", "1234")
    for number in range(15):
        kept.put(number, "1234")
        assert kept.get("a") == "1234"
    kept.put("b", "1234")
    assert kept.get(0) is None
    assert (kept.get("a"), kept.get(1), kept.get("b")) == ("1234", "1234", "1234")
    kept.put("much", "12345")
    assert kept.get("much") is None
    kept.put("a", "")
    kept.put("c", "1234")
    assert kept.get(1) == "1234"


def test_texts_that_are_kept_count_with_the_memory_that_they_take(registry):
    state = AppState(registry)
    for name, letter in (("plain", "a"), ("emoji", "\N{GRINNING FACE}")):
        state.texts.put(name, letter * (TEXTS // 32))
    assert state.texts.get("plain") is not None
    assert state.texts.get("emoji") is None  # four bytes for each character
    state.close()


def test_a_page_that_is_kept_is_another_one_when_a_skill_is(site, registry, library):
    before = site.get("/")
    assert site.get("/").body == before.body
    rewrite(library)
    registry.sync()
    assert "Sums up" in site.get("/").text


def test_what_is_told_of_use_and_of_syncs_is_never_old(site, registry, library):
    registry.sync()
    first = site.get("/stats.json").json
    assert site.get("/stats.json").json == first
    registry.toolset("native").call("read_skill", {"name": "sums"})
    registry.core.usage.write()
    registry.sync(verify=True)
    told = site.get("/stats.json").json
    assert (told["never_read"], first["never_read"]) == (3, 4)
    assert told["stats"]["newest_sync"] == registry.stats().newest_sync


def test_a_page_that_is_kept_names_who_asks(registry, library):
    shown = {name: registry.tokens().create(name)[1] for name in ("anna", "berta")}
    with serving(registry, host="0.0.0.0") as site:
        pages = {
            name: site.ask("/", Authorization=f"Bearer {token}") for name, token in shown.items()
        }
        again = site.ask("/", Authorization=f"Bearer {shown['anna']}")
    assert again.body == pages["anna"].body
    assert "berta" not in pages["anna"].text
    assert "berta" in pages["berta"].text
    assert pages["anna"].headers["etag"] != pages["berta"].headers["etag"]


def test_pages_that_take_long_hold_up_none_that_is_kept(registry, root, monkeypatch):
    many, done = range(2 * WORKERS), []
    for number in many:
        write_skill(root / f"slow-{number}")
    registry.sync(str(root), name="mine")
    begun, may_end, rendered = threading.Semaphore(0), threading.Event(), markdown.rendered

    def slow(*arguments):
        begun.release()
        assert may_end.wait(100)
        return rendered(*arguments)

    monkeypatch.setattr(markdown, "rendered", slow)
    with serving(registry) as site:
        kept = site.get("/").body

        def ask(number):
            site.ask(f"/skills/slow-{number}")
            done.append(number)

        asking = [threading.Thread(target=ask, args=(number,)) for number in many]
        for thread in asking:
            thread.start()
        try:
            for _ in range(WORKERS):  # all threads that make pages have one
                assert begun.acquire(timeout=60)
            assert site.get("/").body == kept
            assert site.ask("/healthz").status == 200
            assert done == []
        finally:
            may_end.set()
            for thread in asking:
                thread.join()
    assert sorted(done) == list(many)
