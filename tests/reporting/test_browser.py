"""The pages in a real browser, if a Chromium is installed: apt-get install chromium."""

import re
import shutil
import subprocess

import pytest

from dpbench.reporting import explorer

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the PATH (Debian: apt-get install chromium)")

PROBE = """<script>addEventListener("load", () => {
  const images = [...document.images];
  const told = {
    images: images.length,
    broken: images.filter(i => !i.complete || i.naturalWidth === 0).length,
    silent: images.filter(i => !i.alt).length,
    styled: getComputedStyle(document.querySelector("main")).maxWidth !== "none",
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  };
  document.body.setAttribute("data-probe", JSON.stringify(told));
});</script>"""
SIZES = {"desktop": 1280, "phone": 500}  # no window of Chromium is narrower than 500 px; a frame may be


def chromium(profile, *arguments):
    run = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}",
         "--allow-file-access-from-files", "--enable-logging=stderr", "--virtual-time-budget=4000", *arguments],
        capture_output=True, text=True, timeout=120, check=True)  # fmt: skip
    told = [line for line in run.stderr.splitlines() if "CONSOLE" in line]
    return run.stdout, [line for line in told if "[bokeh " not in line]  # BokehJS says that it has drawn


@pytest.fixture
def probed(site):
    """The pages with a probe in each, and a frame as wide as a phone around each."""
    for page in list(site.rglob("*.html")):
        content = page.read_text(encoding="utf-8")
        page.write_text(content.replace("</body>", f"{PROBE}</body>"), encoding="utf-8")
    return site


def told(dom, name):
    import html
    import json

    found = re.search(r'data-probe="([^"]*)"', dom)
    assert found, f"{name}: the page did not load"
    return json.loads(html.unescape(found[1]))


@pytest.mark.parametrize("page", ["index.html", "errata.html", "privacy.html", "small/index.html"])
def test_a_page_loads_without_an_error_and_its_images_are_there(probed, tmp_path, page):
    dom, console = chromium(tmp_path / "profile", "--window-size=1280,900", "--dump-dom", (probed / page).as_uri())
    found = told(dom, page)
    assert console == []
    assert found["images"] == (page not in ("errata.html", "privacy.html"))
    assert found["broken"] == found["silent"] == 0
    assert found["styled"]
    assert found["overflow"] <= 0


@pytest.mark.parametrize("page", ["index.html", "errata.html", "privacy.html", "small/index.html"])
def test_nothing_but_tables_scrolls_sideways_on_a_phone(probed, tmp_path, page):
    frame = tmp_path / "frame.html"
    frame.write_text(
        f'<body><iframe width="390" height="844" src="{(probed / page).as_uri()}"></iframe>'
        '<script>addEventListener("load", () => setTimeout(() => document.body.setAttribute("data-probe", '
        "frames[0].document.body.dataset.probe), 50))</script></body>"
    )
    dom, console = chromium(tmp_path / "profile", "--window-size=800,900", "--dump-dom", frame.as_uri())
    assert told(dom, page)["overflow"] <= 0
    assert console == []


def test_a_page_prints(site, tmp_path):
    target = tmp_path / "page.pdf"
    chromium(tmp_path / "profile", f"--print-to-pdf={target}", (site / "small" / "index.html").as_uri())
    assert target.read_bytes().startswith(b"%PDF")
    assert target.stat().st_size > 10_000


EXPLORE = """<script>addEventListener("load", () => setTimeout(() => {
  const choose = (name, value) => {
    const select = document.querySelector(`select[name="${name}"]`);
    if (select.value === value) return;
    select.value = value;
    select.dispatchEvent(new Event("change"));
  };
  STEPS
  document.querySelector("#rows tbody tr").click();
  setTimeout(() => document.body.setAttribute("data-probe", JSON.stringify({
    hash: location.hash, y: document.querySelector('select[name="y"]').value,
    problem: document.querySelector('select[name="problem"]').value,
    rows: document.querySelectorAll("#rows tbody tr").length,
    counted: document.getElementById("counted").textContent, command: document.querySelector("#detail pre").textContent,
    axis: document.querySelector("#plot").firstElementChild !== null,
    leaving: performance.getEntriesByType("resource").map(e => e.name).filter(name => !name.startsWith("file:")),
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  })), 300);
}, 300));</script>"""
needs_bokeh = pytest.mark.skipif(explorer.library() is None, reason="no bokeh: pip install '.[explore]'")


def explored(site, tmp_path, steps, address=""):
    page = site / "explore.html"
    whole = page.read_text(encoding="utf-8")
    page.write_text(whole.replace("</body>", EXPLORE.replace("STEPS", steps) + "</body>"), encoding="utf-8")
    dom, console = chromium(tmp_path / "profile", "--window-size=1280,900", "--dump-dom", page.as_uri() + address)
    page.write_text(whole, encoding="utf-8")
    assert console == []
    return told(dom, "explore.html")


@needs_bokeh
def test_the_explorer_filters_changes_axes_and_keeps_its_state_in_the_address(site, tmp_path):
    found = explored(site, tmp_path, 'choose("problem", "a1a"); choose("y", "objective"); choose("show", "all");')
    assert "problem=a1a" in found["hash"]
    assert "y=objective" in found["hash"]
    assert found["rows"] == 1  # of two problems
    assert found["command"] == "dpbench run --algo dp-gd --dataset a1a --eps 1 --seeds 1 --set T=5"
    assert found["axis"]
    assert found["leaving"] == []
    assert found["overflow"] <= 0
    again = explored(site, tmp_path, "", "#problem=synthetic&y=accuracy&x=epsilon_planned&sort=-excess")
    assert (again["problem"], again["y"]) == ("synthetic", "accuracy")
    assert again["counted"].startswith("1 of 2 settings selected, 0 have both values")


@needs_bokeh
def test_the_explorer_fits_a_phone(site, tmp_path):
    frame = tmp_path / "frame.html"
    page = site / "explore.html"
    page.write_text(page.read_text(encoding="utf-8").replace("</body>", EXPLORE.replace("STEPS", "") + "</body>"))
    frame.write_text(
        f'<body><iframe width="390" height="844" src="{page.as_uri()}"></iframe>'
        '<script>addEventListener("load", () => setTimeout(() => document.body.setAttribute("data-probe", '
        "frames[0].document.body.dataset.probe), 900))</script></body>"
    )
    dom, console = chromium(tmp_path / "profile", "--window-size=800,900", "--dump-dom", frame.as_uri())
    assert told(dom, "explore.html")["overflow"] <= 0
    assert console == []
