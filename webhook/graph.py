"""What waits for what: cycles among named things that depend on each other. Linear, and without recursion."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence


def edges(named: Iterable[tuple[str, Sequence[str]]]) -> dict[str, list[str]]:
    """Names and what they need; what a name needs that comes twice is taken together."""
    needs: dict[str, list[str]] = {}
    for name, needed in named:
        needs.setdefault(name, []).extend(needed)
    return needs


def cycle(needs: Mapping[str, Sequence[str]]) -> list[str]:
    """One ring of names that wait for each other, its first name repeated at the end; empty where there is none."""
    done: set[str] = set()
    for start in needs:
        path = [start] if start not in done else []
        on_path = set(path)
        pending = [iter(needs[start])] if path else []
        while pending:
            name = next(pending[-1], None)
            if name is None:
                pending.pop()
                on_path.discard(path[-1])
                done.add(path.pop())
            elif name in on_path:
                return [*path[path.index(name) :], name]
            elif name in needs and name not in done:
                path.append(name)
                on_path.add(name)
                pending.append(iter(needs[name]))
    return []
