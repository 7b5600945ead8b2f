"""Which objects a label selector selects, as Kubernetes has it, and how to find the selectors that may select one.

An object without labels is selected by NotIn and DoesNotExist; every part of a selector must be met.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from assetlock.model.selector import LabelSelector, Requirement

Anchor = tuple[str, str | None]
"""A label that an object must have to be selected: its key, and its value if that is given."""


def selects(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """Whether an object with these labels is selected."""
    return all(labels.get(key) == value for key, value in selector.match_labels.items()) and all(
        _is_met(requirement, labels) for requirement in selector.match_expressions
    )


def described(selector: LabelSelector) -> str:
    """The selector as ``kubectl --selector`` takes it."""
    parts = [f"{key}={value}" for key, value in selector.match_labels.items()]
    for requirement in selector.match_expressions:
        values = f"({','.join(requirement.values)})"
        match requirement.operator:
            case "In":
                parts.append(f"{requirement.key} in {values}")
            case "NotIn":
                parts.append(f"{requirement.key} notin {values}")
            case "Exists":
                parts.append(requirement.key)
            case "DoesNotExist":
                parts.append(f"!{requirement.key}")
    return ",".join(parts)


class SelectorIndex:
    """A set of selectors that is asked which of them select an object, without trying each.

    A selector is filed under one label that it demands; those that demand none are always tried.
    """

    def __init__(self) -> None:
        self._filed: defaultdict[Anchor | None, set[LabelSelector]] = defaultdict(set)

    def add(self, selector: LabelSelector) -> None:
        """Put a selector into the set."""
        for anchor in _anchors(selector):
            self._filed[anchor].add(selector)

    def discard(self, selector: LabelSelector) -> None:
        """Take a selector out of the set, if it is in it."""
        for anchor in _anchors(selector):
            self._filed[anchor].discard(selector)
            if not self._filed[anchor]:
                del self._filed[anchor]

    def selecting(self, labels: Mapping[str, str]) -> frozenset[LabelSelector]:
        """The selectors that select an object with these labels."""
        return frozenset(selector for selector in self._possible(labels) if selects(selector, labels))

    def _possible(self, labels: Mapping[str, str]) -> Iterator[LabelSelector]:
        anchors = [None, *labels.items(), *((key, None) for key in labels)]
        return (selector for anchor in anchors for selector in self._filed.get(anchor, ()))


def _is_met(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value is not None and value in requirement.values
        case "NotIn":
            return value is None or value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None


def _anchors(selector: LabelSelector) -> list[Anchor | None]:
    for label in selector.match_labels.items():
        return [label]
    for requirement in selector.match_expressions:
        if requirement.operator == "In":
            return [(requirement.key, value) for value in requirement.values]
        if requirement.operator == "Exists":
            return [(requirement.key, None)]
    return [None]
