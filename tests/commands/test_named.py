"""Options that name files, folders and namespaces: what cannot be read is a fault of the command line, in every subcommand."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from extender.api.errors import ConfError, UsageError
from extender.ctl.pumice import pumice

KUBECONFIG = ("up", "down", "bench cluster", "bench webhook")
CONF = ("up", "bench session")
UNREADABLE = {
    "missing": ("nowhere", "nowhere: no such file"),
    "a folder": (".", ".: Is a directory"),
    "not UTF-8": ("binary", "binary: not text: byte 0 is 0xff, which is no UTF-8"),
    "not YAML": ("torn", "torn: not YAML: while parsing a flow node, did not find expected node content (line 2, column 1)"),
}
PLACES = [(words, "--kubeconfig") for words in KUBECONFIG] + [(words, "--conf") for words in CONF]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    Path("binary").write_bytes(b"\xff")
    Path("torn").write_text("[")
    Path("slip").write_text("actions: alocate")


def said(words: str) -> BaseException | None:
    return CliRunner().invoke(pumice, words).exception


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(("words", "option"), PLACES)
@pytest.mark.parametrize(("name", "why"), UNREADABLE.values(), ids=UNREADABLE)
def test_a_file_that_cannot_be_read(words: str, option: str, name: str, why: str) -> None:
    error = said(f"{words} {option} {name}")
    assert (type(error), str(error)) == (UsageError, f"{option}: {why}")


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(("words", "option"), PLACES)
def test_a_file_of_something_else_is_refused(words: str, option: str) -> None:
    kubeconfig = " --kubeconfig slip" if option == "--conf" and words == "up" else ""
    assert isinstance(said(f"{words} {option} slip{kubeconfig}"), ConfError)


@pytest.mark.usefixtures("files")
def test_nothing_is_said_before_the_cluster_has_answered() -> None:
    assert CliRunner().invoke(pumice, "up --kubeconfig slip").output == ""


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("words", ["up", "bench session"])
def test_a_folder_that_is_not_there(words: str) -> None:
    error = said(f"{words} --plugins-dir nowhere")
    assert (type(error), str(error)) == (UsageError, "--plugins-dir: nowhere: there is no such folder")


@pytest.mark.parametrize("words", ["up --conf -", "down --kubeconfig -"])
def test_what_is_read_again_is_no_standard_input(words: str) -> None:
    assert isinstance(said(words), UsageError)


@pytest.mark.usefixtures("files")
def test_of_several_kubeconfigs_one_must_be_there() -> None:
    """Those that are there are merged, as those of KUBECONFIG."""
    assert isinstance(said("down --kubeconfig nowhere:nor-here"), UsageError)
    assert isinstance(said("down --kubeconfig nowhere:slip"), ConfError)


@pytest.mark.parametrize("words", ["up", "down"])
@pytest.mark.parametrize("name", ["'A B'", "Wrong", "-a", "''", "a.b", "a" * 64])
def test_a_name_that_no_namespace_has(words: str, name: str) -> None:
    error = said(f"{words} --namespace {name}")
    assert isinstance(error, UsageError)
    assert str(error).startswith(f"--namespace: '{name.strip(chr(39))}' is no name of a namespace (")


@pytest.mark.usefixtures("files")
def test_a_program_that_is_not_there() -> None:
    assert str(said("bench cluster --scheduler ./nowhere")) == "--scheduler: ./nowhere: no such program"
    assert str(said("bench cluster --extender --kube-scheduler ./no")) == "--kube-scheduler: ./no: no such program"
