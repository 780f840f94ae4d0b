"""Selectors and tolerations match what Kubernetes 1.36 lets them match."""

from __future__ import annotations

import pytest

from extender.api.errors import InvalidObject
from extender.api.selectors import LabelSelector, NodeSelector, NodeSelectorTerm, Requirement, Taint, Toleration, parse_selector
from extender.api.views import view


def needs(key: str, operator: str, *values: str) -> Requirement:
    return Requirement(key=key, operator=operator, values=values)


LABELS = {"app": "web", "empty": "", "cores": "64", "temperature": "-5", "huge": "9223372036854775808", "padded": " 7"}

REQUIREMENTS = {
    "In": (needs("app", "In", "db", "web"), True),
    "In another": (needs("app", "In", "db"), False),
    "In missing": (needs("tier", "In", "db"), False),
    "In empty value": (needs("empty", "In", ""), True),
    "In missing is not the empty value": (needs("tier", "In", ""), False),
    "In without values": (needs("app", "In"), False),
    "NotIn": (needs("app", "NotIn", "db"), True),
    "NotIn the same": (needs("app", "NotIn", "web"), False),
    "NotIn missing": (needs("tier", "NotIn", "db"), True),
    "NotIn without values is refused": (needs("app", "NotIn"), False),
    "Exists": (needs("empty", "Exists"), True),
    "Exists missing": (needs("tier", "Exists"), False),
    "Exists with values is refused": (needs("app", "Exists", "web"), False),
    "DoesNotExist": (needs("tier", "DoesNotExist"), True),
    "DoesNotExist there": (needs("app", "DoesNotExist"), False),
    "DoesNotExist with values is refused": (needs("tier", "DoesNotExist", "x"), False),
    "Gt": (needs("cores", "Gt", "63"), True),
    "Gt is strict": (needs("cores", "Gt", "64"), False),
    "Gt with a sign": (needs("cores", "Gt", "+63"), True),
    "Lt": (needs("cores", "Lt", "65"), True),
    "Lt negative": (needs("temperature", "Lt", "-4"), True),
    "Gt missing": (needs("tier", "Gt", "1"), False),
    "Gt on a word": (needs("app", "Gt", "1"), False),
    "Gt a word": (needs("cores", "Gt", "many"), False),
    "Gt a fraction": (needs("cores", "Gt", "1.5"), False),
    "Gt with underscores": (needs("cores", "Gt", "1_0"), False),
    "Gt with a blank": (needs("padded", "Gt", "1"), False),
    "Gt past 64 bits": (needs("huge", "Gt", "1"), False),
    "Gt two values": (needs("cores", "Gt", "1", "2"), False),
    "unknown operator": (needs("app", "Like", "web"), False),
    "operators are case sensitive": (needs("app", "in", "web"), False),
}


@pytest.mark.parametrize(("requirement", "want"), REQUIREMENTS.values(), ids=REQUIREMENTS)
def test_requirement(requirement: Requirement, want: bool) -> None:
    assert requirement.matches(LABELS) is want


LABEL_SELECTORS = {
    "empty matches all": (LabelSelector(), True),
    "labels": (LabelSelector(match_labels={"app": "web"}), True),
    "labels differ": (LabelSelector(match_labels={"app": "db"}), False),
    "labels missing": (LabelSelector(match_labels={"tier": ""}), False),
    "labels and expressions": (LabelSelector({"app": "web"}, (needs("cores", "Exists"),)), True),
    "both must hold": (LabelSelector({"app": "web"}, (needs("cores", "DoesNotExist"),)), False),
    "Gt belongs to node selectors": (LabelSelector(None, (needs("cores", "Gt", "1"),)), False),
    "one refused line refuses all": (LabelSelector({"app": "web"}, (needs("app", "NotIn"),)), False),
}


@pytest.mark.parametrize(("selector", "want"), LABEL_SELECTORS.values(), ids=LABEL_SELECTORS)
def test_label_selector(selector: LabelSelector, want: bool) -> None:
    assert selector.matches(LABELS) is want


def term(*expressions: Requirement, fields: tuple[Requirement, ...] = ()) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_expressions=expressions, match_fields=fields)


NODE_SELECTORS = {
    "no terms match nothing": ((), False),
    "an empty term matches nothing": ((term(),), False),
    "terms are alternatives": ((term(needs("app", "In", "db")), term(needs("app", "In", "web"))), True),
    "lines of a term are not": ((term(needs("app", "In", "web"), needs("cores", "Lt", "64")),), False),
    "name": ((term(fields=(needs("metadata.name", "In", "n1"),)),), True),
    "another name": ((term(fields=(needs("metadata.name", "NotIn", "n1"),)),), False),
    "two names are refused": ((term(fields=(needs("metadata.name", "In", "n1", "n2"),)),), False),
    "NotIn two names is refused": ((term(fields=(needs("metadata.name", "NotIn", "n2", "n3"),)),), False),
    "Exists is not for fields": ((term(fields=(needs("metadata.name", "Exists"),)),), False),
    "an unknown field is empty": ((term(fields=(needs("spec.podCIDR", "NotIn", "x"),)),), True),
    "fields and labels": ((term(needs("app", "In", "db"), fields=(needs("metadata.name", "In", "n1"),)),), False),
    "a refused term leaves the others": ((term(needs("cores", "Gt", "x")), term(needs("app", "Exists"))), True),
}


@pytest.mark.parametrize(("terms", "want"), NODE_SELECTORS.values(), ids=NODE_SELECTORS)
def test_node_selector(terms: tuple[NodeSelectorTerm, ...], want: bool) -> None:
    assert NodeSelector(terms).matches("n1", LABELS) is want


TAINT = {"key": "gpu", "value": "a100", "effect": "NoSchedule"}
TOLERATIONS: dict[str, tuple[dict[str, str], bool]] = {
    "equal": ({"key": "gpu", "operator": "Equal", "value": "a100", "effect": "NoSchedule"}, True),
    "no operator means Equal": ({"key": "gpu", "value": "a100"}, True),
    "another value": ({"key": "gpu", "value": "h100"}, False),
    "another key": ({"key": "tpu", "operator": "Exists"}, False),
    "another effect": ({"key": "gpu", "operator": "Exists", "effect": "NoExecute"}, False),
    "no effect means every effect": ({"key": "gpu", "operator": "Exists"}, True),
    "Exists looks at no value": ({"key": "gpu", "operator": "Exists", "value": "h100"}, True),
    "Exists without a key tolerates all": ({"operator": "Exists"}, True),
    "Exists without a key, of one effect": ({"operator": "Exists", "effect": "NoExecute"}, False),
    "Equal without a key compares the value": ({"value": "a100"}, True),
    "nothing is Equal to the empty value": ({}, False),
    "unknown operator": ({"key": "gpu", "operator": "Like", "value": "a100"}, False),
}


@pytest.mark.parametrize(("toleration", "want"), TOLERATIONS.values(), ids=TOLERATIONS)
def test_toleration(toleration: dict[str, str], want: bool) -> None:
    assert view(Toleration, toleration).tolerates(view(Taint, TAINT)) is want


COMPARISONS = {
    "Gt": ("Gt", "5", "6", True),
    "Gt is strict": ("Gt", "5", "5", False),
    "Lt": ("Lt", "5", "-6", True),
    "a word": ("Gt", "x", "6", False),
    "a taint of words": ("Gt", "5", "x", False),
    "leading zeros are refused": ("Gt", "05", "6", False),
    "a plus is refused": ("Gt", "+5", "6", False),
    "past 64 bits": ("Lt", "9999999999999999999", "1", False),
}


@pytest.mark.parametrize(("operator", "value", "taint", "want"), COMPARISONS.values(), ids=COMPARISONS)
def test_comparing_tolerations_wait_for_their_gate(operator: str, value: str, taint: str, want: bool) -> None:
    toleration = Toleration(key="price", operator=operator, value=value)
    tainted = Taint(key="price", value=taint, effect="NoSchedule")
    assert toleration.tolerates(tainted, comparisons=True) is want
    assert not toleration.tolerates(tainted)


TEXTS: dict[str, tuple[Requirement, ...]] = {
    "": (),
    "  ": (),
    "a=b": (needs("a", "In", "b"),),
    "a==b": (needs("a", "In", "b"),),
    "a!=b": (needs("a", "NotIn", "b"),),
    "a=": (needs("a", "In", ""),),
    "a": (Requirement(key="a", operator="Exists"),),
    "! a": (Requirement(key="a", operator="DoesNotExist"),),
    "cores>4,cores<9": (needs("cores", "Gt", "4"), needs("cores", "Lt", "9")),
    "e in (y, x,x)": (needs("e", "In", "x", "y"),),
    "e notin(x,)": (needs("e", "NotIn", "", "x"),),
    "e in ()": (needs("e", "In", ""),),
    "in in (in)": (needs("in", "In", "in"),),
    "example.com/app=b , !f": (needs("example.com/app", "In", "b"), Requirement(key="f", operator="DoesNotExist")),
}


@pytest.mark.parametrize(("text", "want"), TEXTS.items(), ids=TEXTS)
def test_selector_texts(text: str, want: tuple[Requirement, ...]) -> None:
    assert parse_selector(text) == want


BAD_TEXTS = {
    "a,": "expected a key after ',', found the end",
    ",a": "expected a key, found ','",
    "a b": "expected one of =, ==, !=, in, notin, >, <, found 'b'",
    "!a=b": "expected ',' or the end, found '='",
    "a=b c": "expected ',' or the end, found 'c'",
    "a=(b)": r"expected a value, found '\('",
    "a in b": r"expected '\(', found 'b'",
    "a in (b": r"expected ',' or '\)', found the end",
    "a in (b c)": r"expected ',' or '\)', found 'c'",
    "a>b": "expected an integer, found 'b'",
    "a=-b": "expected a label value, found '-b'",
    "a in (b,c.)": r"expected a label value, found 'c\.'",
    "-a=b": "expected a label key such as app or example.com/app, found '-a'",
    "Example.com/a": "expected a label key",
    "a/b/c": "expected a label key",
    f"{'a' * 64}": "expected a label key",
}


@pytest.mark.parametrize(("text", "message"), BAD_TEXTS.items(), ids=BAD_TEXTS)
def test_a_selector_text_that_cannot_be_read_says_what_was_expected(text: str, message: str) -> None:
    with pytest.raises(InvalidObject, match=rf"^label selector '.*': .*{message}"):
        parse_selector(text)
