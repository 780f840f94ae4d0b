"""CEL, the part of it that device selectors use: `compiled(text).matches(variables)`.

    syntax      text > tree; macros are told apart here
    evaluation  tree > closures over variables; errors travel as in CEL: `a || b` is true where either side is
    operators   == < + in and the rest
    functions   the standard ones and those of Kubernetes: quantities, versions, strings, lists, sets, regular expressions
    values      numbers, quantities and versions, and what is equal to what

Left out: times, messages, comprehensions of two variables and functions of addresses and URLs; who uses one is told so.
Types are checked when an expression runs, not before. Source: the CEL specification, and k8s.io/apiserver v0.36.1,
pkg/cel/library."""

from extender.core.dra.cel.evaluation import Program, compiled
from extender.core.dra.cel.values import CelError, Domains, Quantity, Semver, Value

__all__ = ["CelError", "Domains", "Program", "Quantity", "Semver", "Value", "compiled"]
