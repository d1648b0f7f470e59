"""Questions to the user's source, answered by ast: which call is at this instruction, what guards this expression."""

import ast
import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import CodeType

from ddplint.record.history import Site

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)


@dataclass
class Source:
    """A file's syntax tree, looked up in the ways that are needed. Every node knows its ``parent``."""

    functions: dict[tuple[int, str], ast.AST] = field(default_factory=dict)
    """(first line, code name) -> def, lambda or comprehension."""
    classes: dict[str, list[ast.ClassDef]] = field(default_factory=dict)
    reads: dict[str, list[ast.Attribute]] = field(default_factory=dict)
    """Attribute name -> where it is read."""
    getattrs: list[ast.Call] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    """What is read by name: ``outputs["boxes"]``, ``outputs.boxes``, ``outputs.get("boxes")``."""
    items_of_self: list[ast.Subscript] = field(default_factory=list)
    """``self[...]``, in modules that are containers."""
    expressions: dict[int, list[ast.expr]] = field(default_factory=dict)
    """Line -> the expressions that start on it."""

    def add(self, node: ast.AST) -> None:
        self._add_key(node)
        if isinstance(node, ast.expr):
            self.expressions.setdefault(node.lineno, []).append(node)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            self.functions[first_line(node), node.name] = node
        elif type(node) in _CODE_NAMES:
            self.functions.setdefault((node.lineno, _CODE_NAMES[type(node)]), node)
        elif isinstance(node, ast.ClassDef):
            self.classes.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            self.reads.setdefault(node.attr, []).append(node)
        elif isinstance(node, ast.Subscript) and is_self(node.value):
            if isinstance(node.ctx, ast.Load):
                self.items_of_self.append(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr" and len(node.args) > 1:
            self.getattrs.append(node)


    def _add_key(self, node: ast.AST) -> None:
        name = None
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            name = node.slice
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("get", "pop") and node.args:
            name = node.args[0]
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and not is_self(node.value):
            self.keys.add(node.attr)
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            self.keys.add(name.value)


_CODE_NAMES = {ast.Lambda: "<lambda>", ast.ListComp: "<listcomp>", ast.SetComp: "<setcomp>", ast.DictComp: "<dictcomp>",
               ast.GeneratorExp: "<genexpr>"}


@functools.lru_cache(maxsize=512)
def source(file: str) -> Source:
    """The file's syntax; empty where it cannot be read or parsed."""
    found = Source()
    try:
        with open(file, encoding="utf-8") as stream:
            module = ast.parse(stream.read())
    except (OSError, SyntaxError, ValueError):
        return found
    for node in ast.walk(module):
        for child in ast.iter_child_nodes(node):
            child.parent = node
    for node in ast.walk(module):
        found.add(node)
    return found


def is_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def ancestors(node: ast.AST) -> Iterator[ast.AST]:
    """From the parent outwards."""
    while (node := getattr(node, "parent", None)) is not None:
        yield node


def function_of(code: CodeType) -> ast.AST | None:
    """The def (or lambda, or comprehension) that a code object was compiled from."""
    return source(code.co_filename).functions.get((code.co_firstlineno, code.co_name))


def first_line(node: ast.AST) -> int:
    decorators = getattr(node, "decorator_list", None)
    return min(d.lineno for d in decorators) if decorators else node.lineno


def enclosing_function(node: ast.AST) -> Function | None:
    return next((a for a in ancestors(node) if isinstance(a, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)), None)


def statement_of(node: ast.AST) -> ast.stmt:
    while not isinstance(node, ast.stmt):
        node = node.parent
    return node


def node_at(site: Site) -> ast.AST | None:
    """The expression that the site's instruction belongs to, by the position the compiler noted for it."""
    positions = list(site.code.co_positions())
    index = site.instruction // 2
    if index >= len(positions) or None in positions[index]:
        return None
    line, end_line, column, end_column = positions[index]
    found = None
    for node in source(site.code.co_filename).expressions.get(line, ()):
        if (node.end_lineno, node.end_col_offset) == (end_line, end_column) and node.col_offset == column:
            found = node if found is None or isinstance(node, ast.Call) else found
    return found


def call_at(site: Site | None) -> ast.Call | None:
    """The call that was running at a site."""
    node = node_at(site) if site is not None else None
    return node if isinstance(node, ast.Call) else None


def argument_for(call: ast.Call, function: ast.AST, name: str, bound: bool) -> ast.expr | None | bool:
    """What a call passes for the parameter ``name``: its expression, None if it is left at its default, False if unknown.

    ``bound`` says that the first parameter is ``self``.
    """
    names = [a.arg for a in [*function.args.posonlyargs, *function.args.args]][1 if bound else 0:]
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    starred = any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords)
    position = names.index(name) if name in names else None
    if position is not None and position < len(call.args) and not any(
            isinstance(a, ast.Starred) for a in call.args[:position + 1]):
        return call.args[position]
    return False if starred else None


def is_quiet(node: ast.AST) -> bool:
    """Whether an expression can be evaluated again without side effects and without tensors being created."""
    allowed = (ast.Name, ast.Attribute, ast.Constant, ast.Compare, ast.BoolOp, ast.UnaryOp, ast.expr_context,
               ast.cmpop, ast.boolop, ast.unaryop, ast.Subscript)
    return all(isinstance(n, allowed) for n in ast.walk(node))


def loads(node: ast.AST, name: str) -> Iterator[ast.Name]:
    """Where a name is read below ``node``, in source order."""
    found = [n for n in ast.walk(node) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)]
    yield from sorted(found, key=lambda n: (n.lineno, n.col_offset))


def tests_around(node: ast.AST, within: ast.AST) -> list[tuple[ast.AST, ast.expr]]:
    """The conditions that ``node`` stands under, innermost first: (if / ternary / and / comprehension, its test)."""
    found, child = [], node
    for parent in ancestors(node):
        if isinstance(parent, ast.If | ast.IfExp | ast.While) and child is not parent.test:
            found.append((parent, parent.test))
        elif isinstance(parent, ast.BoolOp) and child is not parent.values[0]:
            found.append((parent, parent.values[0]))
        elif isinstance(parent, _COMPREHENSIONS):
            found += [(parent, test) for g in parent.generators for test in g.ifs if not below(node, test)]
        elif isinstance(parent, ast.match_case):
            found.append((parent, parent.parent.subject))
        child = parent
        if parent is within:
            break
    return found


def below(node: ast.AST, root: ast.AST) -> bool:
    return node is root or any(a is root for a in ancestors(node))


def skips_before(node: ast.AST, within: ast.AST) -> list[ast.stmt]:
    """Returns, continues, breaks and raises that stand before ``node`` in a block that holds it, nearest first."""
    found, child = [], node
    for parent in ancestors(node):
        for block in ("body", "orelse", "finalbody"):
            statements = getattr(parent, block, None)
            if isinstance(statements, list) and child in statements:
                for earlier in reversed(statements[:statements.index(child)]):
                    found += [n for n in ast.walk(earlier) if isinstance(n, ast.Return | ast.Continue | ast.Break | ast.Raise)
                              and enclosing_function(n) is enclosing_function(node)]
        child = parent
        if parent is within:
            break
    return found
