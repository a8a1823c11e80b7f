"""The sample page of explorers, served as the site is; the names of the site's pages."""

import contextlib

import pytest
import visits


@pytest.fixture(scope="session")
def sample_url(tmp_path_factory):
    """The address of the pages that `samples` writes, without a slash at its end."""
    import samples

    from tools import serve

    folder = tmp_path_factory.mktemp("samples")
    pages = {name: samples.page([name]) for name in samples.SAMPLES}
    pages["views"] = samples.page([function.__name__ for function in samples.VIEWS])
    pages["many"] = samples.page(["crew", "spread"], repeat=10)
    pages["strict"] = samples.page(samples.SAMPLES, head=samples.POLICY)
    pages["binder"] = samples.page(["crew"], body=samples.LAUNCH)
    samples.write(folder, pages)
    with serve.running(folder) as address:
        yield address


@pytest.fixture(scope="session")
def pages(site_dir):
    """Paths of all pages, as a link names them; 404.html is a page apart."""
    found = sorted(p.relative_to(site_dir).as_posix() for p in site_dir.rglob("*.html"))
    return [page for page in found if page != "404.html"]


@pytest.fixture(scope="session")
def chapters(pages):
    return [page for page in pages if page.startswith("chapters/")]


@pytest.fixture(scope="session")
def explorer_pages(site_dir, pages):
    data = 'class="attn-explorer-data"'
    found = [page for page in pages if data in (site_dir / page).read_text("utf-8")]
    assert found, "no page of the site has an explorer"
    return found


@pytest.fixture
def visited(browser):
    """`visited(**options)` is a page in a context of its own and the list of its complaints."""
    with contextlib.ExitStack() as opened:

        def visit(**options):
            faults = []
            return opened.enter_context(visits.listening(browser, faults, **options)), faults

        yield visit


@pytest.fixture
def open_page(browser):
    """Open an address in a context of its own; whatever the page complains about fails the test."""
    contexts, complaints = [], []

    def opened(address, **options):
        scripts = options.pop("scripts", [])
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}} | options)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "console",
            lambda message: (
                message.type in ("error", "warning") and complaints.append(message.text)
            ),
        )
        for script in scripts:
            page.add_init_script(script)
        page.goto(address)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []
