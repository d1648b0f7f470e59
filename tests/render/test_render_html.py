"""The HTML page: one file, no script, no network, and a browser shows what it should."""

import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest

from ddplint.render import render
from ddplint.report import Box, GraphPicture, Link

VOID = {"meta", "br"}
OPEN_ENDED = {"td", "tr", "th"}           # HTML lets them close themselves; the heat map saves a megabyte by it


class Reader(HTMLParser):
    """Checks nesting, and gathers text, links and ids."""

    def __init__(self, text):
        super().__init__()
        self.stack, self.tags, self.ids, self.links, self.outside = [], [], set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        attributes = dict(attributes)
        self.ids.add(attributes.get("id"))
        self.links += [attributes["href"]] if tag == "a" else []
        self.outside += [value for name, value in attributes.items() if name in ("src", "srcset", "xlink:href")]
        assert not any(name.startswith("on") for name in attributes)
        if tag not in VOID | OPEN_ENDED:
            self.stack.append(tag)

    def handle_endtag(self, tag):
        if tag not in OPEN_ENDED:
            assert self.stack.pop() == tag


@pytest.mark.parametrize("name", ["healthy", "failing", "large", "hostile"])
def test_self_contained_and_well_formed(name, reports):
    text = render(getattr(reports, name)(), "html")
    page = Reader(text)
    assert page.stack == []
    assert not {"script", "link", "img", "iframe", "object", "form", "base"} & set(page.tags)
    assert page.outside == [] and "url(" not in text and "@import" not in text
    assert "default-src 'none'" in text


@pytest.mark.parametrize("name", ["healthy", "failing"])
def test_links_lead_somewhere(name, reports):
    page = Reader(render(getattr(reports, name)(), "html"))
    assert {link for link in page.links if link.removeprefix("#") not in page.ids} == set()


def test_the_first_screen_answers_the_questions(reports):
    text = re.sub(r"<style>.*?</style>", "", render(reports.failing(), "html"), flags=re.DOTALL)
    words = " ".join(re.sub("<[^>]+>", " ", text).split())
    pictures = words.index("Which parameters get a gradient")
    for answer in ("FAIL my_pkg.models.MultiTaskNet: 2 errors", "seg_head: no gradient on any of 2 ranks",
                   "the output seg feeds no loss term", "my_pkg/models.py:41 in forward",
                   "41 return {&#34;cls&#34;: cls, &#34;seg&#34;: seg}", "add a term that reads the output seg",
                   "typical error on rank 1 at step 1", "find_unused_parameters=true (now false)", "Checklist"):
        assert answer in words[:pictures]


def test_the_heat_map_has_signs_not_only_colours(reports):
    text = render(reports.failing(), "html")
    assert '<span>experts.1.* (2)</span><td class=a>●<td class=d>◐○' in text
    assert '<span>experts.0.* (2)</span><td class=a>●<td class=s>◐<i>67%</i>' in text
    assert '<span>seg_head.* (4)</span><td class=n>○<td class=n>○' in text


def test_the_graph_marks_what_is_cut(reports):
    text = render(reports.failing(), "html")
    assert '<g class="box module unused"><title>seg_head, SegHead, 4 parameters</title>' in text
    assert text.count('<g class="link cut">') == 3
    assert "cut: detach() my_pkg/models.py:41" in text
    assert "≠ differs by rank" in text


def test_zero_gradients_stand_below_the_scale(reports):
    text = render(reports.failing(), "html")
    assert '<g class="zero"><title>seg_head in typical: 0</title>' in text
    assert "1e-6" in text and "1e0" in text


def test_of_several_graphs_the_one_with_most_marks_is_open(reports):
    report = reports.failing()
    plain = GraphPicture("bright", [Box("backbone", "module"), Box("total", "total")],
                         [Link(("module", "backbone"), ("total", "total"))])
    report.graph.insert(0, plain)
    text = render(report, "html")
    assert "<h3>typical</h3>" in text and "<details><summary>bright</summary>" in text
    assert "Module graph of typical" in render(report, "markdown")


def test_a_deep_plot_names_its_ends(reports):
    names = re.findall(r'<text class="module" text-anchor="(\w+)"[^>]*>([^<]*)<', render(reports.large(1000, 2), "html"))
    assert names[:2] == [("start", "stage0.block0.weight"), ("end", "stage9.block99.weight")]


def test_the_gradient_by_term(reports):
    text = render(reports.failing(), "html")
    assert "<h3>What each loss term adds: typical, first step, rank 0</h3>" in text
    assert '<g class="zero"><title>backbone.0 in seg: 0</title>' in text
    assert "Not known: a backward for each term raised: no" in text


def test_what_the_model_has_nothing_of_is_folded(reports):
    report = reports.failing()
    report.items[2].absent = True
    assert re.search("<summary>1 not checked, with nothing to check</summary>\\s*<ul class=\"checklist\">\\s*<li class=\"not-checked\">",
                     render(report, "html"))


def test_equal_ledgers_share_a_table(reports):
    text = render(reports.failing(), "html")
    assert text.count('<table class="ledger">') == 1
    assert "not in the total" in text and "in the total, weight 1" in text


def test_a_large_report_stays_small(reports):
    text = render(reports.large(2000, 50), "html")
    assert len(text.encode()) < 5_000_000
    assert text.count("<details><summary>stage") == 10


def test_a_flat_model_is_folded_too(reports):
    report = reports.large(10, 2)
    report.usage = {f"layer{i}": {"s00": [1.0, float(i % 2)], "s01": [0.0, 1.0]} for i in range(1000)}
    text = render(report, "html")
    assert text.count('<table class="heat') == 5 and "layer999" in text


# In a browser

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-component-update",
         "--disable-background-networking", "--disable-sync", "--virtual-time-budget=2000"]


@pytest.fixture
def browse(tmp_path):
    """The page's DOM as the browser built it."""
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine (apt-get install chromium)")

    def dump(text):
        page = tmp_path / "report.html"
        page.write_text(text, encoding="utf-8")
        ended = subprocess.run([CHROMIUM, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", page.as_uri()],
                               check=False, capture_output=True, text=True, timeout=120)
        return ended.stdout
    return dump


def test_a_browser_shows_verdict_cause_heat_map_and_graph(browse, reports):
    dom = browse(render(reports.failing(), "html"))
    assert re.search(r'<h1><span class="badge">FAIL</span>', dom)
    assert "the output seg feeds no loss term" in dom and "my_pkg/models.py:41" in dom
    assert re.search(r'seg_head\.\* \(4\)</span></th><td class="n">○</td><td class="n">○\s*</td></tr>', dom)
    assert re.search(r'<svg class="graph"[^>]*>.*seg_head.*</svg>', dom, re.DOTALL)


def test_a_browser_runs_nothing_of_hostile_names(browse, reports):
    dom = browse(render(reports.hostile(), "html"))
    assert "<script" not in dom and "&lt;script&gt;alert(1)&lt;/script&gt;" in dom


def test_a_browser_opens_a_large_page(browse, reports):
    dom = browse(render(reports.large(2000, 50), "html"))
    assert dom.count("<tr>") > 2000 and "stage9.block199" in dom
