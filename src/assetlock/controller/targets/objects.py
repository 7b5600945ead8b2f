"""The metadata of the objects in one place, with those at hand that carry a stamp or that a selector selects."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from assetlock.core import names
from assetlock.core.selection import SelectorIndex, selects
from assetlock.model.selector import LabelSelector

Raw = dict[str, Any]
Selectors = frozenset[LabelSelector]


class Objects:
    """Objects by name. Which of them are selected is worked out as they change, not when it is asked."""

    def __init__(self) -> None:
        self.by_name: dict[str, Raw] = {}
        self._stamped: defaultdict[str, set[str]] = defaultdict(set)
        self._selected: dict[LabelSelector, set[str]] = {}
        self._selecting: dict[str, Selectors] = {}
        self._index = SelectorIndex()

    def put(self, raw: Raw) -> None:
        """Take in a version, unless a later one is known."""
        meta = raw["metadata"]
        name, known = meta["name"], self.by_name.get(meta["name"])
        if known and version_of(known) >= version_of(raw):
            return
        self._note_stamps(name, known, raw)
        self.by_name[name] = raw
        self._file(name, self._index.selecting(labels_of(raw)))

    def drop(self, name: str) -> None:
        """Take in that a live read found no such object."""
        self._note_stamps(name, self.by_name.pop(name, None), None)
        self._file(name, frozenset())

    def remove(self, raw: Raw) -> None:
        """Take in that this version was the object's last, unless there is another one of its name since."""
        known = self.by_name.get(raw["metadata"]["name"])
        if known is None or version_of(known) <= version_of(raw):
            self.drop(raw["metadata"]["name"])

    def replace(self, raws: Iterable[Raw]) -> set[str]:
        """Take in a whole list; gives the names of all objects before and after."""
        listed = {raw["metadata"]["name"]: raw for raw in raws}
        concerned = set(self.by_name) | set(listed)
        for name in set(self.by_name) - set(listed):
            self.drop(name)
        for name, raw in listed.items():
            self._note_stamps(name, self.by_name.pop(name, None), None)
            self.put(raw)
        return concerned

    def select(self, selector: LabelSelector) -> None:
        """Begin to keep at hand what this selector selects."""
        if selector in self._selected:
            return
        self._selected[selector] = set()
        self._index.add(selector)
        for name, raw in self.by_name.items():
            if selects(selector, labels_of(raw)):
                self._file(name, self.selecting(name) | {selector})

    def deselect(self, selector: LabelSelector) -> None:
        """No longer keep at hand what this selector selects."""
        for name in tuple(self._selected.get(selector, ())):
            self._file(name, self.selecting(name) - {selector})
        self._selected.pop(selector, None)
        self._index.discard(selector)

    def selected(self, selector: LabelSelector) -> list[Raw]:
        """The objects that a selector selects that was begun with, by name."""
        return [self.by_name[name] for name in sorted(self._selected[selector])]

    @property
    def any_stamped(self) -> bool:
        """Whether any of them carries a stamp."""
        return bool(self._stamped)

    def stamped_with(self, stamp: str) -> list[Raw]:
        """Those that carry this stamp, be it their own or a copy, by name."""
        return [self.by_name[name] for name in sorted(self._stamped.get(stamp, ()))]

    def stamps(self) -> Iterator[tuple[str, str, str]]:
        """Every stamp that any of them carries: its key, the object's UID, its text."""
        for stamp in self._stamped:
            for raw in self.stamped_with(stamp):
                yield stamp, raw["metadata"]["uid"], annotations_of(raw)[stamp]

    def selecting(self, name: str) -> Selectors:
        """The selectors that select the object."""
        return self._selecting.get(name, frozenset())

    def _note_stamps(self, name: str, before: Raw | None, after: Raw | None) -> None:
        old, new = _stamps_on(before), _stamps_on(after)
        for stamp in old - new:
            self._stamped[stamp].discard(name)
            if not self._stamped[stamp]:
                del self._stamped[stamp]
        for stamp in new - old:
            self._stamped[stamp].add(name)

    def _file(self, name: str, selectors: Selectors) -> None:
        before = self._selecting.pop(name, frozenset())
        if selectors:
            self._selecting[name] = selectors
        for selector in before - selectors:
            self._selected[selector].discard(name)
        for selector in selectors - before:
            self._selected[selector].add(name)


def labels_of(raw: Raw) -> Mapping[str, str]:
    """The labels of an object."""
    return raw["metadata"].get("labels") or {}


def annotations_of(raw: Raw) -> Mapping[str, str]:
    """The annotations of an object."""
    return raw["metadata"].get("annotations") or {}


def version_of(raw: Raw) -> int:
    """The resourceVersion of an object."""
    return int(raw["metadata"]["resourceVersion"])


def _stamps_on(raw: Raw | None) -> set[str]:
    return {key for key in annotations_of(raw) if key.endswith(names.STAMP_SUFFIX)} if raw else set()
