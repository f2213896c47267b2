"""Find a place in Python source by its syntax, and change it there.

A place is a function and a pattern. A pattern is Python code in which

- a single capital letter stands for any expression, or for any name; the same letter twice, for the same code twice;
- ``...`` stands for any expression, and where there may be several, in arguments, elements or statements, for any
  number of them; in a call it stands for further keywords as well;
- ``*R`` stands for such a number of arguments, elements or statements too, and remembers them as ``R``;
- ``(A := code)`` is code that is remembered as ``A``;
- ``X`` is the part that is changed; without an ``X`` it is all that the pattern matches.

Code that takes the place of another may use the letters of its pattern. So neither formatting nor the names of
variables matter, and keywords may come in any order. The rest of the file stays as it is, byte by byte.
"""

from __future__ import annotations

import ast
import builtins
import copy
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

FOCUS = "X"
"""The letter of the part that is changed."""

Scope: TypeAlias = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
Code: TypeAlias = str | ast.AST | Sequence[ast.AST]
Bound: TypeAlias = Mapping[str, Code]
"""What the letters of a pattern stand for: a name, a node, or several nodes."""

_DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_IGNORED = frozenset({"ctx", "kind", "type_comment"})
"""Fields of nodes that say nothing about what code does."""


class PlaceError(Exception):
    """A place is not there exactly once, or cannot be changed as it is said."""


@dataclass(frozen=True, slots=True)
class Replace:
    """Put other code in the place of a pattern, or of its ``X``: an expression, or one or more statements."""

    pattern: str
    new: str


@dataclass(frozen=True, slots=True)
class Drop:
    """Leave out the statements that a pattern matches, or its ``X``: an argument, a keyword or an element."""

    pattern: str


@dataclass(frozen=True, slots=True)
class Force:
    """Let the condition of an ``if`` always come out the same way."""

    condition: str
    outcome: bool


Change: TypeAlias = Replace | Drop | Force


@dataclass(frozen=True, slots=True)
class _Block:
    """Statements that follow each other."""

    statements: list[ast.stmt]
    start: int
    stop: int

    @property
    def nodes(self) -> list[ast.stmt]:
        return self.statements[self.start : self.stop]


@dataclass(frozen=True, slots=True)
class _Match:
    """Where a pattern fits, and what its letters stand for there."""

    place: _Block | ast.expr
    bound: Bound


def change_source(text: str, function: str, change: Change) -> str:
    """Change the one place of a function that fits; ``function`` is a qualified name, empty for the module level.

    Nested functions are searched along with the one that holds them. Module and class levels are searched without the
    functions and classes that are defined there.

    Raises:
        PlaceError: the function or the place is not there exactly once, or the new code speaks of names that neither
            the function nor its module knows, or nothing would change.
    """
    tree = ast.parse(text)
    scopes = find_scopes(tree, function)
    where = function or "the module level"
    found = list(_find_matches(scopes[-1], change))
    if len(found) != 1:
        raise PlaceError(f"{change} fits {len(found)} places of {where}, not one")
    _require_known(_collect_names(change) - set(found[0].bound), scopes)
    outermost = scopes[:2][-1]
    before = ast.unparse(outermost)
    first, last, new = _edit_tree(scopes[-1], text, found[0], change)
    changed = ast.unparse(outermost)
    if changed == before:
        raise PlaceError(f"{change} changes nothing in {where}")
    written = textwrap.indent(new, _get_indent(text, first)).lstrip()
    after = (text.encode()[:first] + written.encode() + text.encode()[last:]).decode()
    if _unparse_or_none(after, function.partition(".")[0]) != changed:
        raise PlaceError(f"{change} cannot be written into the lines of {where}")
    return after


def _unparse_or_none(text: str, function: str) -> str | None:
    try:
        return ast.unparse(find_scopes(ast.parse(text), function)[-1])
    except (SyntaxError, PlaceError):
        return None


def find_scopes(tree: ast.Module, function: str) -> list[Scope]:
    """Find a class or function by its qualified name, after all that it is defined in, from the module on."""
    scopes: list[Scope] = [tree]
    for name in function.split(".") if function else ():
        found = [node for node in _walk_own(scopes[-1]) if isinstance(node, _DEFINITIONS) and node.name == name]
        if len(found) != 1:
            raise PlaceError(f"{function} is defined {len(found)} times: there are {len(found)} definitions of {name}")
        scopes += found
    return scopes


def _walk_own(scope: Scope) -> Iterator[ast.AST]:
    """All nodes of a scope; of definitions in it the definition alone."""
    left: list[ast.AST] = [scope]
    while left:
        node = left.pop()
        yield node
        if node is scope or not isinstance(node, _DEFINITIONS):
            left += ast.iter_child_nodes(node)


def _find_matches(scope: Scope, change: Change) -> Iterator[_Match]:
    """All ways in which a change fits."""
    nodes = list(_walk_own(scope) if isinstance(scope, ast.Module | ast.ClassDef) else ast.walk(scope))
    if isinstance(change, Force):
        pattern = ast.parse(change.condition, mode="eval").body
        for node in nodes:
            if isinstance(node, ast.If):
                yield from (_Match(node.test, bound) for bound in _match(pattern, node.test, {}))
        return
    patterns = _parse(change.pattern)
    is_focused = any(isinstance(node, ast.Name) and node.id == FOCUS for part in patterns for node in ast.walk(part))
    whole = _get_expression(patterns)
    if whole and (is_focused or (isinstance(change, Replace) and _get_expression(_parse(change.new)))):
        found = (_Match(node, b) for node in nodes if isinstance(node, ast.expr) for b in _match(whole, node, {}))
    else:
        found = (match for node in nodes for block in _list_blocks(node) for match in _match_block(patterns, block))
    for match in found:
        yield _Match(_get_focus(match.bound), match.bound) if is_focused else match


def _parse(code: str) -> list[ast.stmt]:
    return ast.parse(textwrap.dedent(code)).body


def _get_expression(statements: list[ast.stmt]) -> ast.expr | None:
    """The expression that code is, if it is only one."""
    if len(statements) == 1 and isinstance(statements[0], ast.Expr):
        return statements[0].value
    return None


def _get_focus(bound: Bound) -> ast.expr:
    focus = bound[FOCUS]
    if not isinstance(focus, ast.expr):
        raise PlaceError(f"{FOCUS} must stand for an expression")
    return focus


def _list_blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """The lists of statements that a node holds."""
    for _, value in ast.iter_fields(node):
        if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
            yield value


def _match_block(patterns: list[ast.stmt], block: list[ast.stmt]) -> Iterator[_Match]:
    for start in range(len(block)):
        for bound, used in _match_first(patterns, block[start:], {}):
            if used:
                yield _Match(_Block(block, start, start + used), bound)


def _match(pattern: object, node: object, bound: Bound) -> Iterator[Bound]:
    """All ways in which a pattern fits a node or a field of one, as what its letters then stand for."""
    if isinstance(pattern, list):
        if isinstance(node, list):
            yield from (more for more, used in _match_first(pattern, node, bound) if used == len(node))
    elif isinstance(pattern, str):
        if pattern == node:
            yield bound
        elif _is_letter(pattern) and isinstance(node, str):
            yield from _bind(pattern, node, bound)
    elif not isinstance(pattern, ast.AST):
        if pattern == node:
            yield bound
    elif isinstance(node, ast.AST):
        yield from _match_node(pattern, node, bound)


def _match_node(pattern: ast.AST, node: ast.AST, bound: Bound) -> Iterator[Bound]:
    if _is_gap(pattern):
        if isinstance(node, ast.expr):
            yield bound
    elif isinstance(pattern, ast.Name) and _is_letter(pattern.id):
        if isinstance(node, ast.expr) and not isinstance(node, ast.Starred):
            yield from _bind(pattern.id, node, bound)
    elif isinstance(pattern, ast.NamedExpr) and _is_letter(pattern.target.id):
        for more in _match(pattern.value, node, bound):
            yield from _bind(pattern.target.id, node, more)
    elif isinstance(pattern, ast.Constant) and isinstance(node, ast.Constant):
        if type(pattern.value) is type(node.value) and pattern.value == node.value:
            yield bound
    elif isinstance(pattern, ast.Call) and isinstance(node, ast.Call):
        yield from _match_call(pattern, node, bound)
    elif type(pattern) is type(node):
        fields = [field for field in pattern._fields if field not in _IGNORED]
        pairs = [(getattr(pattern, field, None), getattr(node, field, None)) for field in fields]
        yield from _match_pairs(pairs, bound)


def _match_call(pattern: ast.Call, node: ast.Call, bound: Bound) -> Iterator[Bound]:
    """Match a call, whose keywords may come in any order."""
    given = {keyword.arg: keyword.value for keyword in node.keywords}
    wanted = {keyword.arg: keyword.value for keyword in pattern.keywords}
    if wanted.keys() <= given.keys() and (len(wanted) == len(node.keywords) or any(map(_is_gap, pattern.args))):
        keywords = [(value, given[name]) for name, value in wanted.items()]
        yield from _match_pairs([(pattern.func, node.func), (pattern.args, node.args), *keywords], bound)


def _match_pairs(pairs: Sequence[tuple[object, object]], bound: Bound) -> Iterator[Bound]:
    if not pairs:
        yield bound
        return
    for more in _match(*pairs[0], bound):
        yield from _match_pairs(pairs[1:], more)


def _match_first(
    patterns: list[ast.AST] | list[ast.stmt], nodes: list[ast.stmt], bound: Bound
) -> Iterator[tuple[Bound, int]]:
    """All ways in which patterns fit the first of some nodes, each with the number of these."""
    if not patterns:
        yield bound, 0
        return
    first, rest = patterns[0], patterns[1:]
    letter = _get_run_letter(first)
    if letter or _is_gap(first):
        for size in range(len(nodes) + 1):
            for taken in _bind(letter, nodes[:size], bound) if letter else (bound,):
                yield from ((more, size + used) for more, used in _match_first(rest, nodes[size:], taken))
    elif nodes:
        for taken in _match(first, nodes[0], bound):
            yield from ((more, 1 + used) for more, used in _match_first(rest, nodes[1:], taken))


def _is_letter(name: str) -> bool:
    return len(name) == 1 and name.isascii() and name.isupper()


def _is_gap(pattern: ast.AST) -> bool:
    """Whether a pattern is ``...``, as an expression or as a statement."""
    inner = pattern.value if isinstance(pattern, ast.Expr) else pattern
    return isinstance(inner, ast.Constant) and inner.value is ...


def _get_run_letter(pattern: ast.AST) -> str | None:
    """R if a pattern is ``*R``, as an element or as a statement."""
    inner = pattern.value if isinstance(pattern, ast.Expr) else pattern
    if isinstance(inner, ast.Starred) and isinstance(inner.value, ast.Name) and _is_letter(inner.value.id):
        return inner.value.id
    return None


def _bind(letter: str, code: Code, bound: Bound) -> Iterator[Bound]:
    """Let a letter stand for code, unless it stands for other code already."""
    if letter not in bound:
        yield {**bound, letter: code}
    elif _write_code(bound[letter]) == _write_code(code):
        yield bound


def _write_code(code: Code) -> str:
    if isinstance(code, str):
        return code
    return ast.unparse(code) if isinstance(code, ast.AST) else "\n".join(map(ast.unparse, code))


def _collect_names(change: Change) -> set[str]:
    """The names that new code reads without binding them itself."""
    if not isinstance(change, Replace):
        return set()
    names = [node for part in _parse(change.new) for node in ast.walk(part) if isinstance(node, ast.Name)]
    return {name.id for name in names} - {name.id for name in names if isinstance(name.ctx, ast.Store)}


def _require_known(names: Iterable[str], scopes: Sequence[Scope]) -> None:
    """Refuse new code that would fail for want of a name, which any test would notice."""
    known = set(dir(builtins))
    for scope in scopes:
        for node in _walk_own(scope) if isinstance(scope, ast.Module | ast.ClassDef) else ast.walk(scope):
            known |= _collect_bound(node)
    if unknown := sorted(set(names) - known):
        raise PlaceError(f"the new code speaks of {', '.join(unknown)}, which is not known in its place")


def _collect_bound(node: ast.AST) -> set[str]:
    """The names that a node itself gives a meaning to."""
    if isinstance(node, _DEFINITIONS):
        return {node.name}
    if isinstance(node, ast.arg):
        return {node.arg}
    if isinstance(node, ast.alias):
        return {(node.asname or node.name).partition(".")[0]}
    if isinstance(node, ast.ExceptHandler) and node.name:
        return {node.name}
    return {node.id} if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else set()


def _edit_tree(scope: Scope, text: str, match: _Match, change: Change) -> tuple[int, int, str]:
    """Change a tree; what is then to be written where: from which byte of the text, to which, and the new text."""
    parents = {child: node for node in ast.walk(scope) for child in ast.iter_child_nodes(node)}
    if isinstance(match.place, _Block):
        first, last = _locate(text, match.place.nodes)
        new: list[ast.stmt] = _fill_in(change.new, match.bound) if isinstance(change, Replace) else []
        if not new and len(match.place.nodes) == len(match.place.statements):
            new = [ast.Pass()]
        match.place.statements[match.place.start : match.place.stop] = new
        return first, last, "\n".join(map(ast.unparse, new))
    statement = _find_statement(match.place, parents, text)
    first, last = _locate(text, [statement])
    if isinstance(change, Drop):
        _leave_out(match.place, parents)
    else:
        filled = _fill_in(change.new if isinstance(change, Replace) else str(change.outcome), match.bound)
        expression = _get_expression(filled)
        if expression is None:
            raise PlaceError(f"{change} puts statements in the place of an expression")
        _put_in_place(match.place, expression, parents)
    return first, last, ast.unparse(statement)


def _find_statement(node: ast.AST, parents: Mapping[ast.AST, ast.AST], text: str) -> ast.stmt:
    """The innermost statement around a node; around an ``elif`` the whole ``if``."""
    while not isinstance(node, ast.stmt) or text.split("\n")[node.lineno - 1].lstrip().startswith("elif"):
        node = parents[node]
    return node


def _locate(text: str, statements: Sequence[ast.stmt]) -> tuple[int, int]:
    """The first byte of statements, and the first after them."""
    first, last = statements[0], statements[-1]
    starts = [0]
    for line in text.encode().split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    decorators = first.decorator_list if isinstance(first, _DEFINITIONS) else []
    top = min([first.lineno, *(decorator.lineno for decorator in decorators)])
    return starts[top - 1] + first.col_offset, starts[(last.end_lineno or 0) - 1] + (last.end_col_offset or 0)


def _get_indent(text: str, first: int) -> str:
    before = text.encode()[:first].decode()
    return before[before.rfind("\n") + 1 :]


def _leave_out(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> None:
    parent = parents[node]
    if isinstance(parent, ast.keyword):
        node, parent = parent, parents[parent]
    for _, value in ast.iter_fields(parent):
        if isinstance(value, list) and node in value:
            value.remove(node)
            return
    raise PlaceError(f"{ast.unparse(node)} cannot be left out of {ast.unparse(parent)}")


def _put_in_place(old: ast.expr, new: ast.expr, parents: Mapping[ast.AST, ast.AST]) -> None:
    for field, value in ast.iter_fields(parents[old]):
        if value is old:
            setattr(parents[old], field, new)
        elif isinstance(value, list) and old in value:
            value[value.index(old)] = new


def _fill_in(code: str, bound: Bound) -> list[ast.stmt]:
    """Parse new code and put in what its letters stand for."""
    module = ast.parse(textwrap.dedent(code))
    _Filler(bound).visit(module)
    return module.body


class _Filler(ast.NodeTransformer):
    """Puts what letters stand for in their place."""

    def __init__(self, bound: Bound) -> None:
        self._bound = bound

    def visit(self, node: ast.AST) -> ast.AST | list[ast.AST]:
        """Replace letters in a node; a node that stands for several becomes all of them."""
        if letter := _get_run_letter(node):
            return [copy.deepcopy(part) for part in self._look_up_several(letter)]
        if isinstance(node, ast.Name) and _is_letter(node.id):
            code = self._look_up(node.id)
            return ast.Name(code) if isinstance(code, str) else copy.deepcopy(self._look_up_one(node.id))
        for field, value in ast.iter_fields(node):
            if isinstance(value, str) and _is_letter(value) and not isinstance(node, ast.Constant):
                setattr(node, field, _write_code(self._look_up(value)))
        return self.generic_visit(node)

    def _look_up(self, letter: str) -> Code:
        if letter not in self._bound:
            raise PlaceError(f"new code speaks of {letter}, which its pattern does not")
        return self._bound[letter]

    def _look_up_one(self, letter: str) -> ast.AST:
        code = self._look_up(letter)
        if not isinstance(code, ast.AST):
            raise PlaceError(f"{letter} stands for several parts; write *{letter}")
        return code

    def _look_up_several(self, letter: str) -> Sequence[ast.AST]:
        code = self._look_up(letter)
        if isinstance(code, str | ast.AST):
            raise PlaceError(f"{letter} stands for one part; write {letter}")
        return code
