"""Label and field selectors: parsed once, then asked about objects."""

import re
from collections.abc import Callable, Iterable
from typing import Any

from tests.sim import failures

Predicate = Callable[[dict[str, Any]], bool]

_TERM = re.compile(
    r"\s*(?:(?P<absent>!)\s*(?P<none>[\w./-]+)"
    r"|(?P<key>[\w./-]+)\s*(?:(?P<op>==|=|!=)\s*(?P<value>[\w.-]*)|(?P<set>in|notin)\s*\((?P<values>[^)]*)\))?)"
    r"\s*(?:,|$)"
)
ALWAYS_SELECTABLE = ("metadata.name", "metadata.namespace")


def labels(text: str) -> Predicate:
    """A predicate for a label selector such as `a=b,c in (d,e),!f`."""
    tests = [_label_test(term) for term in _terms(text)]
    if not tests:
        return lambda _: True

    def matches(obj: dict[str, Any]) -> bool:
        found = obj["metadata"].get("labels") or {}
        return all(test(found) for test in tests)

    return matches


def _terms(text: str) -> Iterable[re.Match[str]]:
    position = 0
    while text.strip() and position < len(text):
        term = _TERM.match(text, position)
        if term is None or term.end() == position:
            raise failures.bad_request(f"unable to parse requirement: {text}")
        position = term.end()
        yield term


def _label_test(term: re.Match[str]) -> Callable[[dict[str, str]], bool]:
    if term["absent"]:
        return lambda found: term["none"] not in found
    key = term["key"]
    if term["set"]:
        values = {value.strip() for value in term["values"].split(",")}
        if term["set"] == "in":
            return lambda found: key in found and found[key] in values
        return lambda found: key not in found or found[key] not in values
    if term["op"] == "!=":
        return lambda found: found.get(key) != term["value"]
    if term["op"]:
        return lambda found: found.get(key) == term["value"]
    return lambda found: key in found


def fields(text: str, selectable: Iterable[str]) -> Predicate:
    """A predicate for a field selector such as `metadata.name=x,status.state!=Held`."""
    allowed = {*ALWAYS_SELECTABLE, *selectable}
    tests: list[tuple[list[str], str, bool]] = []
    for term in filter(None, text.split(",")):
        key, operator, value = re.split(r"(!=|==|=)", term, maxsplit=1)
        if key not in allowed:
            raise failures.bad_request(f"field label not supported: {key}")
        tests.append((key.split("."), value, operator != "!="))
    return lambda obj: all((_field(obj, path) == value) is wanted for path, value, wanted in tests)


def _field(obj: Any, path: list[str]) -> str:
    for part in path:
        obj = obj.get(part) if isinstance(obj, dict) else None
    if isinstance(obj, bool):
        return str(obj).lower()
    return "" if obj is None else str(obj)
