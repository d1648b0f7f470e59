"""The usage cube collapsed to modules, and the layered drawing."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddplint.render import layers, usage
from ddplint.report import Report, ScenarioResult


def rows(cube):
    names = dict.fromkeys(name for cells in cube.values() for name in cells)
    report = Report(0, scenarios=[ScenarioResult(name, "ok") for name in names], usage=cube)
    return {row.label: [usage.cell_text(cell) for cell in row.cells] for row in usage.rows(report)}


def test_a_module_that_agrees_is_one_row():
    assert rows({"a.b.w": {"s": [1.0]}, "a.b.v": {"s": [1.0]}, "a.c.w": {"s": [1.0]}, "d.w": {"s": [0.0]}}) == {
        "a.* (3)": ["always"], "d.w": ["never"]}


def test_everything_alike_is_one_row():
    assert rows({"a.w": {"s": [1.0]}, "b.w": {"s": [1.0]}}) == {"* (2)": ["always"]}


def test_siblings_that_differ_are_told_apart():
    assert rows({"a.0.w": {"s": [1.0]}, "a.1.w": {"s": [0.0]}, "a.1.b": {"s": [0.0]}}) == {
        "a.0.w": ["always"], "a.1.* (2)": ["never"]}


def test_a_parameter_beside_a_module_of_its_name():
    assert rows({"a": {"s": [0.0]}, "a.w": {"s": [1.0]}, "a.v": {"s": [1.0]}}) == {"a": ["never"], "a.* (2)": ["always"]}


@pytest.mark.parametrize(("cell", "text", "kind"), [
    ((1.0, 1.0), "always", "always"),
    ((0.0, 0.0), "never", "never"),
    ((2 / 3, 2 / 3), "67% of steps", "sometimes"),
    ((1.0, 0.0), "always on 0, never on 1", "differs"),
    ((0.0, 1.0, 1.0, 1.0, 0.5), "never on 0, always on 1-3, 50% of steps on 4", "differs"),
    ((None, None), "not seen", "unseen"),
    ((None, 0.0), "not seen on 0, never on 1", "differs"),
    ((), "not seen", "unseen"),
    ((1.0, 0.0) * 512, "always on 0, 2, 4, 6, 8, 10, 12, 14, +504 more, never on 1, 3, 5, 7, 9, 11, 13, 15, +504 more", "differs"),
])
def test_cells(cell, text, kind):
    from ddplint.report import use_kind
    assert (usage.cell_text(cell), use_kind(cell)) == (text, kind)


def test_deep_names_do_not_recurse_forever():
    deep = ".".join("a" * 5000)
    assert len(rows({f"{deep}.w": {"s": [1.0]}, f"{deep}.v": {"s": [0.0]}, "b": {"s": [1.0]}})) == 3


@given(st.dictionaries(st.from_regex(r"[ab](\.[ab]){0,4}", fullmatch=True), st.sampled_from([0.0, 0.5, 1.0]), max_size=12))
def test_rows_hold_every_parameter_once(cube):
    report = Report(0, usage={name: {"s": [share]} for name, share in cube.items()})
    found = [(name, row.cells[0][0]) for row in usage.rows(report) for name in row.parameters]
    assert sorted(found) == sorted(cube.items())
    assert all(name == row.name or row.name == "" or name.startswith(row.name) for row in usage.rows(report)
               for name in row.parameters)


def drawn(nodes, edges):
    drawing = layers.draw({node: (40.0 + len(str(node)) * 7, 30.0) for node in nodes}, edges)
    return drawing, {node: (x - 20 - len(str(node)) * 3.5, y - 15, x + 20 + len(str(node)) * 3.5, y + 15)
                     for node, (x, y) in drawing.centres.items()}


def test_a_chain_goes_straight_down():
    drawing, _ = drawn("abc", [("a", "b"), ("b", "c")])
    xs, ys = zip(*(drawing.centres[node] for node in "abc"), strict=True)
    assert max(xs) - min(xs) < 1 and list(ys) == sorted(ys)


def test_a_long_edge_passes_beside_the_boxes():
    drawing, _ = drawn("abcd", [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")])
    route = drawing.routes["a", "d"]
    assert len(route) == 2 + 2 * 2
    x = drawing.centres["b"][0]
    assert all(abs(point[0] - x) > 20 for point in route[1:-1])


def test_cycles_and_loops_are_drawn():
    drawing, _ = drawn("abc", [("a", "b"), ("b", "c"), ("c", "a"), ("a", "a")])
    assert set(drawing.routes) == {("a", "b"), ("b", "c"), ("c", "a")}
    assert drawing.routes["c", "a"][0][1] > drawing.routes["c", "a"][-1][1]


def test_boxes_without_links_stand_in_lines_below():
    nodes = ["a", "b", *(f"alone{i}" for i in range(40))]
    drawing, boxes = drawn(nodes, [("a", "b")])
    assert drawing.width < 900
    assert min(box[1] for node, box in boxes.items() if node.startswith("alone")) > boxes["b"][3]
    assert max(box[3] for box in boxes.values()) <= drawing.height


def test_nothing_is_drawn_of_nothing():
    assert layers.draw({}, []).width == 0


def test_boxes_do_not_overlap_and_stay_inside():
    draw = random.Random(4)
    nodes = [f"n{i}" for i in range(60)]
    edges = [(nodes[i], nodes[draw.randrange(i + 1, 60)]) for i in range(59) for _ in range(2)]
    drawing, boxes = drawn(nodes, edges)
    placed = sorted(boxes.values())
    for i, (left, top, right, bottom) in enumerate(placed):
        assert left >= -0.01 and right <= drawing.width + 0.01 and top >= -0.01 and bottom <= drawing.height + 0.01
        for other in placed[i + 1:]:
            assert other[0] >= right or other[2] <= left or other[1] >= bottom or other[3] <= top
    for points in drawing.routes.values():
        assert all(-0.01 <= x <= drawing.width + 0.01 for x, _ in points)
