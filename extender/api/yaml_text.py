"""YAML of people, read so that whatever is wrong with it is a yaml.YAMLError."""

from __future__ import annotations

import yaml

# PyYAML's constructors let these through: a 13th month, `!!bool perhaps`, `!!timestamp soon`, numbers without end.
CONSTRUCTORS_FAIL_WITH = (ValueError, ArithmeticError, LookupError, AttributeError, TypeError, RecursionError)


def only_document(text: str) -> object:
    """The one document of the text. Raises yaml.YAMLError."""
    try:
        return yaml.load(text, yaml.CSafeLoader)
    except CONSTRUCTORS_FAIL_WITH as error:
        raise _unusable(error) from None


def first_document(text: str) -> object:
    """The first document, None where there is none; what follows it is not read. Raises yaml.YAMLError."""
    try:
        return next(yaml.load_all(text, yaml.CSafeLoader), None)
    except CONSTRUCTORS_FAIL_WITH as error:
        raise _unusable(error) from None


def _unusable(error: Exception) -> yaml.YAMLError:
    return yaml.YAMLError(f"a value is not what its form or tag says: {error}")
