"""Files, folders and standard input -> documents: what YAML and JSON hold, with nothing known of manifests.

YAML is read as Kubernetes reads it: times and sexagesimal numbers stay text, a key that is given twice is a mistake."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import orjson
import yaml

from extender.api.errors import UsageError
from extender.api.yaml_text import CONSTRUCTORS_FAIL_WITH, first_document, words

STDIN = "-"
_TEMPLATE = "; if this is a template of a chart, give what comes of it: helm template CHART | pumice run -"
SUFFIXES = (".yaml", ".yml", ".json")


def yaml_of(option: str, path: str) -> str:
    """The text of the YAML file, or of standard input, that an option names. Raises UsageError, which names the option."""
    with naming(option):
        text = _text(*_content(path))
        try:
            first_document(text)
        except yaml.YAMLError as error:
            raise UsageError(f"{path}: not YAML: {words(error)}") from None
    return text


@contextmanager
def naming(option: str) -> Iterator[None]:
    """What cannot be read is told with the option that named it, if one did."""
    try:
        yield
    except UsageError as error:
        raise UsageError(f"{option}: {error}") if option else error from None


def standard_input() -> BinaryIO:
    """Raises UsageError where it is closed."""
    if sys.stdin is None:  # `<&-`
        raise UsageError("standard input is closed")
    return sys.stdin.buffer


def contents(path: str) -> Iterator[tuple[str, bytes]]:
    """(source, content) of a file, of all files below a folder by name, or of standard input. Raises UsageError."""
    if not path or path == STDIN or not Path(path).is_dir():
        yield _content(path)
        return
    files = sorted(_manifests_below(Path(path)))
    if not files:
        raise UsageError(f"{path}: no {', '.join(SUFFIXES)} file in this folder")
    for file in files:
        yield _content(str(file))


def _content(path: str) -> tuple[str, bytes]:
    if not path:  # an empty variable of a shell; Path("") would be the present folder
        raise UsageError("the name of a file is empty")
    if path == STDIN:
        return "standard input", standard_input().read()
    try:
        return path, Path(path).read_bytes()
    except FileNotFoundError:
        raise UsageError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: {getattr(error, 'strerror', None) or error}") from None


def _manifests_below(folder: Path) -> Iterator[Path]:
    for file in folder.rglob("*"):
        hidden = any(part.startswith(".") for part in file.relative_to(folder).parts)
        if file.suffix in SUFFIXES and not hidden and file.is_file():
            yield file


def _text(source: str, content: bytes) -> str:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        byte = content[error.start]
        raise UsageError(f"{source}: not text: byte {error.start} is 0x{byte:02x}, which is no UTF-8") from None
    if "\0" in text:
        raise UsageError(f"{source}: not text: byte {content.index(0)} is 0x00")
    return text


def documents(source: str, content: bytes) -> Iterator[tuple[int, object]]:
    """(number, document), empty ones left out. Raises UsageError for what cannot be read."""
    text = _text(source, content)
    read = _read_json if source.endswith(".json") and text.lstrip()[:1] in ("{", "[") else _read_yaml
    for number, document in read(source, text):
        if document is not None:
            yield number, document


# --- YAML and JSON ------------------------------------------------------------------------------------------------------


class _Loader(yaml.CSafeLoader):
    """YAML as Kubernetes has it. Source: sigs.k8s.io/yaml over go-yaml v3, which follows YAML 1.2 in what we change."""

    yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag.rsplit(":", 1)[1] not in ("timestamp", "value")]
        for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }

    def number(self, node: yaml.ScalarNode) -> object:
        if ":" in node.value:
            return node.value
        return self.construct_yaml_int(node) if node.tag.endswith(":int") else self.construct_yaml_float(node)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: dict[str, yaml.Mark] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag.endswith(":merge"):
                continue
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key '{key.value}' is given twice", key.start_mark)
            seen[key.value] = key.start_mark
        return super().construct_mapping(node, deep)


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.number)
_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.number)


def _read_json(source: str, text: str) -> Iterator[tuple[int, object]]:
    try:
        yield 1, orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise UsageError(f"{source}: document 1: not JSON: {error}") from None


def _read_yaml(source: str, text: str) -> Iterator[tuple[int, object]]:
    loader = _Loader(text)
    number = 1
    try:
        while loader.check_node():
            yield number, loader.construct_document(loader.get_node())
            number += 1
    except yaml.YAMLError as error:
        rendered = _TEMPLATE if "{{" in text else ""
        raise UsageError(f"{source}: document {number}: not YAML: {words(error)}{rendered}") from None
    except CONSTRUCTORS_FAIL_WITH as error:
        raise UsageError(f"{source}: document {number}: not YAML: {error}") from None
    finally:
        loader.dispose()
