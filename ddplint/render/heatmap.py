"""The usage cube as an HTML table: module x scenario, ranks within; a sign in each cell, not only a colour."""

from dataclasses import dataclass

from markupsafe import Markup, escape

from ddplint.render import usage
from ddplint.render.text import clean
from ddplint.report import Report, use_kind

SIGNS = {"always": "●", "sometimes": "◐", "never": "○", "differs": "≠", "unseen": "·"}
CLASSES = {"always": "a", "sometimes": "s", "never": "n", "differs": "d", "unseen": "u"}
WORDS = {"always": "a gradient at every step", "sometimes": "in some steps", "never": "never",
         "differs": "differs between ranks (one sign per rank)", "unseen": "not observed"}
FEW = 60                # rows that are shown without folding
CHUNK = 200             # rows under one fold, where the model has no few modules at its top
RANKS = 8               # ranks that fit into a cell, a sign each


@dataclass
class Table:
    title: str
    open: bool
    rows: list[Markup]


def legend() -> list[tuple[str, str, str]]:
    return [(CLASSES[kind], SIGNS[kind], WORDS[kind]) for kind in SIGNS]


def scenarios(report: Report) -> list[str]:
    return [clean(name) for name in usage.scenario_names(report)]


def tables(report: Report) -> list[Table]:
    """All rows in one open table where they are few; else a table of the top modules, and one to unfold for each."""
    rows = usage.rows(report)
    if not rows:
        return []
    if len(rows) <= FEW:
        return [Table("", True, [_row(row) for row in rows])]
    groups: dict[str, list[usage.Row]] = {}
    for row in rows:
        groups.setdefault(row.name.split(".")[0], []).append(row)
    if len(groups) > FEW:
        chunks = [rows[i:i + CHUNK] for i in range(0, len(rows), CHUNK)]
        return [Table(f"{clean(chunk[0].name)} to {clean(chunk[-1].name)}: {len(chunk):,} rows", i == 0,
                      [_row(row) for row in chunk]) for i, chunk in enumerate(chunks)]
    summary = Table("", True, [_summary(name, members) for name, members in groups.items()])
    return [summary] + [Table(f"{clean(name)}: {len(members):,} rows", False, [_row(row) for row in members])
                        for name, members in groups.items()]


def _row(row: usage.Row) -> Markup:
    return _line(row.label, [_cell(cell) for cell in row.cells])


def _line(label: str, cells: list[str]) -> Markup:
    name = escape(clean(label))
    return Markup(f'<tr><th scope="row"><span>{name}</span>{"".join(cells)}')


def _cell(cell: usage.Shares) -> str:
    """``<td class=a>●``: unclosed, for there may be a hundred thousand of them; HTML allows it."""
    kind = use_kind(cell)
    if kind == "sometimes":
        return f'<td class=s>◐<i>{cell[0]:.0%}</i>'
    if kind != "differs":
        return f"<td class={CLASSES[kind]}>{SIGNS[kind]}"
    if len(cell) <= RANKS:
        return "<td class=d>" + "".join(SIGNS[use_kind((share,))] for share in cell)
    lacking = sum(share != 1 for share in cell)
    return f"<td class=d>≠<i>{lacking}/{len(cell)}</i>"


def _summary(name: str, members: list[usage.Row]) -> Markup:
    """One row for a top module: its parameters' common state, else that they differ among themselves."""
    count = sum(len(row.parameters) for row in members)
    cells = []
    for column in zip(*(row.cells for row in members), strict=True):
        kinds = {use_kind(cell) for cell in column}
        if len(kinds) == 1 and kinds != {"differs"} and kinds != {"sometimes"}:
            cells.append(_cell(column[0]))
        elif "differs" in kinds:
            cells.append("<td class=d>≠")
        else:
            cells.append("<td class=s>◐")
    return _line(name if count == 1 else f"{name}.* ({count:,})", cells)
