"""The page in a real browser: sorts, slides, fits, follows the system's dark mode, and says nothing on the console."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from sigmapca_cli.report.build import write_report

SWITCHES = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
)  # fmt: skip


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator:
    """Headless Chromium, or a skip that says what is missing."""
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if browser is None or driver is None:
        pytest.skip(
            "skipped: no chromium and chromedriver here (Debian: apt-get install chromium chromium-driver)"
        )
    webdriver = pytest.importorskip("selenium.webdriver")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for switch in (*SWITCHES, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    running = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield running
    running.quit()


@pytest.fixture
def page(chromium, sweep: Path) -> Iterator:
    """The report of the sweep, opened from disk; afterwards the console must be empty."""
    target = sweep / "browser.html"
    if not target.exists():
        write_report([str(sweep)], target)
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    narrow(chromium, 1200)
    chromium.get(target.as_uri())
    yield chromium
    assert chromium.get_log("browser") == []


def narrow(browser, width: int) -> None:
    """Make the window as wide as that."""
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False},
    )


def column(browser, name: str) -> list[str]:
    """The cells below a header of the sortable table."""
    return browser.execute_script(
        """const table = document.querySelector('table.sortable');
        const at = [...table.querySelectorAll('th')].findIndex((th) => th.textContent === arguments[0]);
        return [...table.tBodies[0].rows].map((row) => row.cells[at].textContent);""",
        name,
    )


def header(browser, name: str):
    """The button in a header of the sortable table, and its cell."""
    button = browser.find_element(
        "xpath", f"//table[contains(@class,'sortable')]//th/button[text()='{name}']"
    )
    return button, button.find_element("xpath", "..")


def test_a_header_sorts_up_then_down_by_click_enter_and_space(page):
    before = column(page, "a")
    button, cell = header(page, "a")
    assert cell.get_attribute("aria-sort") == "none"
    button.click()
    assert column(page, "a") == sorted(before, key=float) == ["1", "1", "2", "2", "10", "10", "16"]
    assert cell.get_attribute("aria-sort") == "ascending"
    button.send_keys("\ue007")  # Enter
    assert column(page, "a") == sorted(before, key=float, reverse=True)
    assert cell.get_attribute("aria-sort") == "descending"
    loss, loss_cell = header(page, "loss")
    loss.send_keys(" ")
    values = column(page, "loss")
    assert values[-1] == "–" and [float(v) for v in values[:-1]] == sorted(float(v) for v in values[:-1])
    assert (loss_cell.get_attribute("aria-sort"), cell.get_attribute("aria-sort")) == ("ascending", "none")
    loss.send_keys(" ")
    assert column(page, "loss")[-1] == "–"  # a gap is last both ways


def visible(browser) -> list[str]:
    """The headings of the gallery's panels that are shown."""
    return [
        p.find_element("tag name", "h3").text
        for p in browser.find_elements("css selector", ".panel")
        if p.is_displayed()
    ]


def test_arrow_keys_move_through_the_runs(page):
    a, seed = page.find_elements("css selector", ".slider input")
    assert visible(page) == ["1: a=10, seed=0"] and a.get_attribute("aria-valuetext") == "10"
    a.send_keys("\ue012")  # left
    assert visible(page) == ["5: a=2, seed=0"]
    seed.send_keys("\ue014")  # right
    assert visible(page) == ["6: a=2, seed=1"]
    assert (a.get_attribute("aria-valuetext"), seed.get_attribute("aria-valuetext")) == ("2", "1")
    outputs = [o.text for o in page.find_elements("css selector", ".slider output")]
    assert outputs == ["2", "1"]
    marked = page.execute_script(
        "return [...document.querySelectorAll('svg.many .series.on')].map((line) => line.dataset.run)"
    )
    assert set(marked) == {"6"}
    a.send_keys("\ue010")  # End: a=16 has no seed 1
    assert visible(page) == [] and page.find_element("css selector", ".none").is_displayed()
    seed.send_keys("\ue011")  # Home
    assert visible(page) == ["7: a=16, seed=0"]
    assert "no filters (status failed)" in page.find_element("css selector", ".gallery").text


def test_everything_can_be_reached_with_tab_and_has_a_name(page):
    names = page.execute_script(
        """const all = document.querySelectorAll('input, button, a, [tabindex], summary, svg, img');
        const words = (e) => e.getAttribute('aria-label') || e.alt || e.textContent.trim();
        return [...all].map((e) => [e.tagName, words(e) || (e.labels && e.labels[0].textContent.trim())])"""
    )
    assert len(names) > 20 and all(name for _, name in names)
    body = page.find_element("tag name", "body")
    body.send_keys("\ue004")
    reached = set()
    for _ in range(60):
        reached.add(page.execute_script("return document.activeElement.tagName"))
        page.switch_to.active_element.send_keys("\ue004")
    assert {"A", "BUTTON", "INPUT", "SUMMARY"} <= reached


def test_a_run_in_the_table_leads_to_its_configuration(page):
    page.find_element("css selector", 'td a[href="#run-3"]').click()
    details = page.find_element("id", "run-3")
    from selenium.webdriver.support.wait import WebDriverWait

    WebDriverWait(page, 10).until(lambda _: details.get_attribute("open") is not None)
    assert "tol: 0.02" in details.text


@pytest.mark.parametrize("width", [380, 768, 1200])
def test_the_page_is_no_wider_than_the_window(page, width: int):
    narrow(page, width)
    assert page.execute_script("return document.documentElement.scrollWidth") <= width


def test_wide_tables_scroll_at_400_pixels_and_keep_their_first_column(page):
    narrow(page, 400)
    boxes = page.execute_script(
        """return [...document.querySelectorAll('.scroll')].filter((box) => box.scrollWidth > box.clientWidth + 1)
        .map((box) => {
          box.scrollLeft = 10000;
          const caption = box.querySelector('caption span').getBoundingClientRect();
          const first = box.querySelector('tbody td').getBoundingClientRect(), frame = box.getBoundingClientRect();
          return {moved: box.scrollLeft, caption: caption.right - frame.right, first: first.left - frame.left,
                  sorts: box.querySelector('table').classList.contains('sortable')};
        })"""
    )
    assert any(box["sorts"] for box in boxes)
    for box in boxes:
        assert box["moved"] > 0 and box["caption"] <= 0
        assert (abs(box["first"]) < 1) == box["sorts"]


def test_dark_mode_is_dark_and_legible(page):
    def luminance(of: str) -> float:
        colour = page.execute_script(f"return getComputedStyle(document.body).{of}")
        rgb = [float(part) / 255 for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]
        linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in rgb]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    found = {}
    for scheme in ("light", "dark"):
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        back, ink = luminance("backgroundColor"), luminance("color")
        assert (max(back, ink) + 0.05) / (min(back, ink) + 0.05) > 7
        found[scheme] = back
    assert found["dark"] < 0.05 and found["light"] > 0.9


def test_texts_from_a_run_are_only_texts(page):
    assert "<script>alert(1)</script>" in page.find_element("tag name", "body").get_attribute("textContent")
    assert page.execute_script("return document.scripts.length") == 1


def test_nothing_is_loaded(page):
    loaded = page.execute_script("return performance.getEntriesByType('resource').map((entry) => entry.name)")
    assert [name for name in loaded if not name.startswith("data:")] == []
