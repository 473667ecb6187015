"""The pages in a real browser, if a Chromium is installed: apt-get install chromium.

It is started once for all pages: each is a frame of one page, as wide as a desktop or a phone, and tells what it is.
"""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the PATH (Debian: apt-get install chromium)"),
    pytest.mark.thorough,
]

PROBE = """<script>addEventListener("load", () => {
  const images = [...document.images];
  const told = {
    images: images.length,
    broken: images.filter(i => !i.complete || i.naturalWidth === 0).length,
    silent: images.filter(i => !i.alt).length,
    screens: document.documentElement.scrollHeight / 800,
    styled: getComputedStyle(document.querySelector("main")).maxWidth !== "none",
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  };
  document.querySelectorAll("details").forEach(one => { one.open = true; });
  const cut = one => one.scrollWidth > one.clientWidth && (one.closest("[id]") || { id: "?" }).id;
  told.cut = [...document.querySelectorAll(".scroll")].map(cut).filter(Boolean);
  const planted = document.createElement("div");
  planted.className = "scroll";
  planted.innerHTML = "<div style='width: 9999px'>.</div>";
  document.querySelector("main").append(planted);
  told.sees = Boolean(cut(planted));
  document.body.setAttribute("data-probe", JSON.stringify(told));
});</script>"""
COLLECT = """<script>addEventListener("load", () => setTimeout(() => document.body.setAttribute("data-probe",
  JSON.stringify(Array.from(frames, one => one.document.body.dataset.probe || null))), 1500))</script>"""

PAGES = ["index.html", "errata.html", "small/index.html"]
WIDTHS = {"desktop": 1280, "phone": 390}


def chromium(profile, *arguments):
    run = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}",
         "--allow-file-access-from-files", "--enable-logging=stderr", "--virtual-time-budget=4000", *arguments],
        capture_output=True, text=True, timeout=120, check=True)  # fmt: skip
    return run.stdout, [line for line in run.stderr.splitlines() if "CONSOLE" in line]


def with_probe(path, probe, target=None):
    content = path.read_text(encoding="utf-8")
    assert "</body>" in content
    (target or path).write_text(content.replace("</body>", f"{probe}</body>"), encoding="utf-8")


def in_frames(folder, pages, widths=WIDTHS):
    """(page, width) → what its probe says, and what all wrote to the console; pages: target of a frame → its file."""
    frames = [(page, width) for page in pages for width in widths]
    whole = "".join(
        f'<iframe width="{WIDTHS[width]}" height="900" src="{html.escape(pages[page])}"></iframe>'
        for page, width in frames
    )
    (folder / "frames.html").write_text(f"<body>{whole}{COLLECT}</body>", encoding="utf-8")
    dom, console = chromium(
        folder / "profile", "--window-size=1400,900", "--dump-dom", (folder / "frames.html").as_uri()
    )
    found = re.search(r'data-probe="([^"]*)"', dom)
    assert found, "the page of frames did not load"
    answers = json.loads(html.unescape(found[1]))
    return {at: json.loads(one) if one else None for at, one in zip(frames, answers, strict=True)}, console


@pytest.fixture(scope="module")
def seen(built_site, tmp_path_factory):
    """(page, width) → what it told, and what all of them wrote to the console."""
    folder = tmp_path_factory.mktemp("browser")
    site = folder / "site"
    shutil.copytree(built_site, site)
    for page in PAGES:
        with_probe(site / page, PROBE)
    return in_frames(folder, {page: f"{site.as_uri()}/{page}" for page in PAGES})


def told(seen, page, width):
    found = seen[0][page, width]
    assert found is not None, f"{page} did not load at the width of a {width}"
    return found


def test_no_page_writes_to_the_console(seen):
    assert seen[1] == []


@pytest.mark.parametrize("page", PAGES)
def test_a_page_loads_and_its_images_are_there(seen, page):
    found = told(seen, page, "desktop")
    assert (found["images"] > 0) == (page != "errata.html")
    assert found["broken"] == found["silent"] == 0
    assert found["styled"]
    assert found["overflow"] <= 0


@pytest.mark.parametrize("width", WIDTHS)
def test_no_table_is_cut(seen, width):
    found = told(seen, "small/index.html", width)
    assert found["cut"] == []
    assert found["sees"]  # a box that is too wide, put there


@pytest.mark.slow
def test_the_pages_of_the_repository_are_short_and_no_table_is_cut(tmp_path):
    """second_order had 28 screens: those of the full profile, in today's style."""
    full = ROOT / "figures" / "full"
    if not (full / "index.html").exists():
        pytest.skip("dpbench report --profile full makes the pages")
    pages = {str(path.relative_to(full)): path for path in sorted(full.glob("*/index.html"))}
    for name, path in pages.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        with_probe(path, PROBE, tmp_path / name)
        for image in path.parent.glob("*.png"):
            shutil.copy(image, (tmp_path / name).parent)
    shutil.copy(ROOT / "dpbench" / "reporting" / "style.css", tmp_path)
    found, _ = in_frames(tmp_path, {name: (tmp_path / name).as_uri() for name in pages}, ["desktop"])
    assert len(found) == 6
    assert {name: one["cut"] for (name, _), one in found.items() if one["cut"]} == {}
    assert all(one["screens"] <= 10 for one in found.values())


WIDE = """<script>addEventListener("load", () => document.body.setAttribute("data-probe", JSON.stringify({
  cut: [...document.querySelectorAll(".table-wrapper, .highlight")].filter(one =>
    !one.closest(".highlight-console") && one.querySelector("pre, table").scrollWidth > one.clientWidth + 1).length,
  tables: document.querySelectorAll(".table-wrapper").length,
  overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth})));</script>"""


@pytest.mark.slow
def test_only_what_a_terminal_prints_is_wider_than_a_phone_in_the_documentation(tmp_path):
    built = ROOT / "docs" / "_build" / "html"
    if not (built / "index.html").exists():
        pytest.skip("make docs builds the pages")
    shutil.copytree(built, tmp_path / "html")
    pages = [str(path.relative_to(built)) for path in sorted(built.rglob("*.html")) if path.parent != built]
    for page in pages:
        with_probe(tmp_path / "html" / page, WIDE)
    found, _ = in_frames(tmp_path, {page: (tmp_path / "html" / page).as_uri() for page in pages}, ["phone"])
    assert sum(one["tables"] for one in found.values()) > 100
    assert {page: one for (page, _), one in found.items() if one["cut"] or one["overflow"] > 0} == {}


@pytest.mark.parametrize("page", PAGES)
def test_nothing_but_tables_scrolls_sideways_on_a_phone(seen, page):
    assert told(seen, page, "phone")["overflow"] <= 0


def test_a_page_prints(site, tmp_path):
    target = tmp_path / "page.pdf"
    chromium(tmp_path / "profile", f"--print-to-pdf={target}", (site / "small" / "index.html").as_uri())
    assert target.read_bytes().startswith(b"%PDF")
    assert target.stat().st_size > 10_000
