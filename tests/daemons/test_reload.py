"""scheduler.conf changes while the scheduler runs: the last good configuration stays, and somebody is told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from extender.api.errors import ConfError
from extender.api.meta import Time
from extender.cluster.clock import VirtualClock
from extender.core.conf import Conf
from extender.reload import LOOK, ConfFile, Reloads

GOOD = 'actions: "enqueue, allocate"\ntiers:\n- plugins:\n  - name: gang\n'
BETTER = 'actions: "allocate"\ntiers:\n- plugins:\n  - name: gang\n'
BAD = 'actions: "alocate"\n'


class Watched:
    """A configuration in a folder that is mounted as Kubernetes mounts a ConfigMap, and everything that is said about it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.generation = folder, 0
        self.clock = VirtualClock(1_000_000.0)
        self.counted: list[bool] = []
        self.said: list[tuple[str, str]] = []
        self.put(GOOD)
        (folder / "scheduler.conf").symlink_to("..data/scheduler.conf")
        self.file = ConfFile(str(folder / "scheduler.conf"))
        self.conf = self.file.load()
        self.reloads = Reloads(self.file, self, self.clock, self.say)

    def reloaded(self, now: Time, *, success: bool) -> None:
        del now
        self.counted.append(success)

    def say(self, type: str, reason: str, message: str) -> None:
        assert message
        self.said.append((type, reason))

    def put(self, text: str) -> None:
        """Swap the folder that ..data leads to, as the kubelet does."""
        self.generation += 1
        new = self.folder / f"..{self.generation}"
        new.mkdir()
        (new / "scheduler.conf").write_text(text)
        link = self.folder / "..data_tmp"
        link.symlink_to(new.name)
        link.rename(self.folder / "..data")

    def look(self) -> Conf | None:
        self.clock.sleep(LOOK)
        return self.reloads.look()


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path)


def actions(conf: Conf | None) -> list[str] | None:
    return None if conf is None else [entry.action.name for entry in conf.actions]


def test_what_has_not_changed_is_not_read(watched: Watched) -> None:
    assert (watched.look(), watched.counted, watched.said) == (None, [True], [])


def test_a_better_one_comes_into_force(watched: Watched) -> None:
    watched.put(BETTER)
    assert (actions(watched.look()), watched.counted, watched.said, watched.file.text) == (
        ["allocate"], [True, True], [("Normal", "ConfigReloaded")], BETTER,
    )  # fmt: skip


def test_it_is_not_looked_at_all_the_time(watched: Watched) -> None:
    watched.put(BETTER)
    watched.clock.sleep(LOOK / 2)
    assert watched.reloads.look() is None


def test_a_bad_one_does_not(watched: Watched, caplog: pytest.LogCaptureFixture) -> None:
    watched.put(BAD)
    assert (watched.look(), watched.counted, watched.said, watched.file.text) == (
        None, [True, False], [("Warning", "ConfigReloadFailed")], GOOD,
    )  # fmt: skip
    assert "did you mean 'allocate'?" in str(caplog.records[-1].__dict__["about"])


def test_a_bad_one_is_told_once(watched: Watched) -> None:
    watched.put(BAD)
    for _ in range(5):
        watched.look()
    assert (watched.counted, len(watched.said)) == ([True, False], 1)


def test_the_same_mistake_once_more_is_counted_but_not_told(watched: Watched) -> None:
    for _ in range(2):
        watched.put(BAD)
        watched.look()
    assert (watched.counted, len(watched.said)) == ([True, False, False], 1)


def test_a_mended_one_is_a_success_again(watched: Watched) -> None:
    """The words are those in force already, so nothing else happens."""
    watched.put(BAD)
    watched.look()
    watched.put(GOOD)
    assert (watched.look(), watched.counted, watched.file.error) == (None, [True, False, True], "")


def test_the_same_words_are_no_news(watched: Watched) -> None:
    watched.put(GOOD)
    assert (watched.look(), watched.counted, watched.said) == (None, [True, True], [])


def test_a_file_that_vanished_leaves_the_last_one_in_force(watched: Watched) -> None:
    (watched.folder / "..data").unlink()
    assert (watched.look(), watched.counted, watched.file.text) == (None, [True, False], GOOD)


CHANGES: dict[str, Callable[[Path], object]] = {
    "written over": lambda path: path.write_text(BETTER),
    "replaced": lambda path: (path.with_name("new").write_text(BETTER), path.with_name("new").rename(path)),
    "gone": lambda path: path.unlink(),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_plain_file(tmp_path: Path, change: Callable[[Path], object]) -> None:
    """One that is no ConfigMap."""
    path = tmp_path / "scheduler.conf"
    path.write_text(GOOD)
    file = ConfFile(str(path))
    file.load()
    before = file.changed()
    change(path)
    assert (before, file.changed()) == (False, True)


def test_the_built_in_one_never_changes() -> None:
    file = ConfFile("")
    assert (actions(file.load()), file.changed()) == (["enqueue", "allocate", "backfill"], False)


NOT_READ = {"nothing there": None, "no text": b"\xff\xfe\x00", "no YAML": b"actions: [", "no map": b"- 1"}


@pytest.mark.parametrize("content", NOT_READ.values(), ids=NOT_READ)
def test_what_cannot_be_read_names_the_file(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "scheduler.conf"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfError, match=str(path)):
        ConfFile(str(path)).load()
