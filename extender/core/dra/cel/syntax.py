"""Text > tree. A recursive descent over CEL's grammar, binary operators by precedence."""

from __future__ import annotations

import re
from dataclasses import dataclass

from extender.core.dra.cel.values import INT64, UINT64, CelError, Unsigned, Value

_DEEPEST = 40  # how far expressions may nest
_TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*)
    |(?P<number>0x[0-9a-fA-F]+[uU]?|[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|[0-9]+[uU]?)
    |(?P<string>[rRbB]{0,2}(?:\"{3}(?:[^\\]|\\.)*?\"{3}|'{3}(?:[^\\]|\\.)*?'{3}|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'))
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<sign>==|!=|<=|>=|&&|\|\||[-+*/%!<>?:.,()\[\]{}])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|X[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2}|.)", re.DOTALL)
_PLAIN = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"} | {c: c for c in "\\?\"'`"}
_WORDS: dict[str, Value] = {"true": True, "false": False, "null": None}
_RESERVED = frozenset((
    "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package", "namespace",
    "return", "var", "void", "while",
))  # fmt: skip
_BINARY = (("||",), ("&&",), ("==", "!=", "<", "<=", ">", ">=", "in"), ("+", "-"), ("*", "/", "%"))  # loosest first


@dataclass(frozen=True, slots=True)
class Literal:
    value: Value


@dataclass(frozen=True, slots=True)
class Name:
    name: str


@dataclass(frozen=True, slots=True)
class Select:
    """`of.field`; `optional`: `of.?field`."""

    of: Node
    field: str
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Index:
    of: Node
    key: Node
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """`target` None: a function. Operators are calls too, of functions named as they are written; && and || take many."""

    function: str
    arguments: tuple[Node, ...]
    target: Node | None = None


@dataclass(frozen=True, slots=True)
class Sequence:
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Entries:
    items: tuple[tuple[Node, Node], ...]


Node = Literal | Name | Select | Index | Call | Sequence | Entries


def parse(text: str) -> Node:
    """Raises CelError where the text is no expression."""
    reader = _Reader(_tokens(text))
    node = reader.expression()
    reader.expect("")
    return node


def _tokens(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise CelError(f"cannot read {text[at : at + 12]!r} at character {at + 1}")
        at = token.end()
        if token.lastgroup != "skip":
            found.append((str(token.lastgroup), token[0]))
    return [*found, ("end", "")]


class _Reader:
    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self._tokens, self._at, self._depth = tokens, 0, 0

    @property
    def _next(self) -> str:
        kind, text = self._tokens[self._at]
        return text if kind in ("sign", "name", "end") else f"<{kind}>"

    def _take(self) -> tuple[str, str]:
        self._at += 1
        return self._tokens[self._at - 1]

    def _accept(self, text: str) -> bool:
        if self._next != text:
            return False
        self._at += 1
        return True

    def expect(self, text: str) -> None:
        if self._next != text:
            raise CelError(f"expected {text or 'the end'!r}, found {self._tokens[self._at][1] or 'the end'!r}")
        self._at = min(self._at + 1, len(self._tokens) - 1)

    def expression(self) -> Node:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise CelError("nests too deep")
        node = self._binary(0)
        if self._accept("?"):
            chosen = self._binary(0)
            self.expect(":")
            node = Call("?:", (node, chosen, self.expression()))
        self._depth -= 1
        return node

    def _binary(self, level: int) -> Node:
        if level == len(_BINARY):
            return self._unary()
        node = self._binary(level + 1)
        while self._next in _BINARY[level]:
            operator = self._take()[1]
            right = self._binary(level + 1)
            chained = operator in ("&&", "||") and isinstance(node, Call) and node.function == operator
            before = node.arguments if chained and isinstance(node, Call) else (node,)
            node = Call(operator, (*before, right))
        return node

    def _unary(self) -> Node:
        signs = []
        while self._next in ("!", "-"):
            signs.append(self._take()[1])
        kind, text = self._tokens[self._at]
        if signs and signs[-1] == "-" and kind == "number":
            signs.pop()
            self._at += 1
            node = self._suffixes(Literal(_number(text, negative=True)))
        else:
            node = self._suffixes(self._primary())
        for sign in reversed(signs):
            node = Call(sign, (node,))
        return node

    def _suffixes(self, node: Node) -> Node:
        while True:
            if self._accept("."):
                optional = self._accept("?")
                kind, name = self._take()
                if kind != "name" or name in _WORDS or name == "in":
                    raise CelError(f"expected a name after '.', found {name or 'the end'!r}")
                if not optional and self._accept("("):
                    node = Call(name, self._listed(")"), node)
                else:
                    node = Select(node, name, optional)
            elif self._accept("["):
                optional = self._accept("?")
                node = Index(node, self.expression(), optional)
                self.expect("]")
            else:
                return node

    def _primary(self) -> Node:
        kind, text = self._take()
        if kind == "number":
            return Literal(_number(text))
        if kind == "string":
            return Literal(_string(text))
        if kind == "name":
            if text in _WORDS:
                return Literal(_WORDS[text])
            if text in _RESERVED or text == "in":
                raise CelError(f"{text!r} is a reserved word")
            return Call(text, self._listed(")")) if self._accept("(") else Name(text)
        if text == "(":
            node = self.expression()
            self.expect(")")
            return node
        if text == "[":
            return Sequence(self._listed("]"))
        if text == "{":
            return Entries(self._entries())
        raise CelError(f"expected a value, found {text or 'the end'!r}")

    def _listed(self, end: str) -> tuple[Node, ...]:
        items: list[Node] = []
        while not self._accept(end):
            items.append(self.expression())
            if not self._accept(","):
                self.expect(end)
                break
        return tuple(items)

    def _entries(self) -> tuple[tuple[Node, Node], ...]:
        items: list[tuple[Node, Node]] = []
        while not self._accept("}"):
            key = self.expression()
            self.expect(":")
            items.append((key, self.expression()))
            if not self._accept(","):
                self.expect("}")
                break
        return tuple(items)


def _number(text: str, *, negative: bool = False) -> Value:
    digits = text.rstrip("uU") if not text.startswith("0x") or text[-1] in "uU" else text
    sign = -1 if negative else 1
    if not digits.startswith("0x") and any(c in digits for c in ".eE"):
        return sign * float(digits)
    value = sign * int(digits, 0) if digits.startswith("0x") else sign * int(digits)
    unsigned = digits != text
    if value not in (UINT64 if unsigned else INT64):
        raise CelError(f"{text} is out of range")
    return Unsigned(value) if unsigned else value


def _string(text: str) -> str | bytes:
    start = min(i for i, c in enumerate(text) if c in "\"'")
    marks, body = text[:start].lower(), text[start:]
    width = 3 if body[:3] in ('"""', "'''") else 1
    body = body[width:-width]
    if "r" not in marks:
        body = _ESCAPE.sub(_unescaped, body)
    return body.encode() if "b" in marks else body


def _unescaped(escape: re.Match[str]) -> str:
    code = escape[1]
    if len(code) > 1:
        return chr(int(code, 8)) if code.isdecimal() else chr(int(code[1:], 16))
    if code not in _PLAIN:
        raise CelError(f"'\\{code}' is no escape")
    return _PLAIN[code]
