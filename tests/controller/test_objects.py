"""What is selected is kept at hand as objects come, change and go."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from assetlock.controller.targets.objects import Objects
from assetlock.core import names
from assetlock.core.selection import selects
from assetlock.model.selector import LabelSelector, Requirement

RED = LabelSelector(match_labels={"colour": "red"})
COLOURED = LabelSelector(match_expressions=[Requirement(key="colour", operator="Exists")])
PLAIN = LabelSelector(match_expressions=[Requirement(key="colour", operator="DoesNotExist")])
SELECTORS = (RED, COLOURED, PLAIN)


def raw(name: str, version: int, colour: str | None = None) -> dict[str, Any]:
    labels = {"colour": colour} if colour else {}
    return {"metadata": {"name": name, "uid": name, "resourceVersion": str(version), "labels": labels}}


def chosen(objects: Objects, selector: LabelSelector) -> list[str]:
    return [found["metadata"]["name"] for found in objects.selected(selector)]


def test_a_relabelled_object_leaves_one_selection_and_comes_into_another() -> None:
    objects = Objects()
    objects.select(RED)
    objects.select(PLAIN)
    objects.put(raw("a", 1, "red"))
    assert (chosen(objects, RED), chosen(objects, PLAIN)) == (["a"], [])
    objects.put(raw("a", 2))
    assert (chosen(objects, RED), chosen(objects, PLAIN)) == ([], ["a"])


STAMPS = [names.stamp_key(asset, "shop") for asset in ("web", "db")]
STAMPED = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from("abc"), st.sets(st.sampled_from([*STAMPS, "note"]))),
        st.tuples(st.just("drop"), st.sampled_from("abc")),
        st.tuples(st.just("list"), st.dictionaries(st.sampled_from("abc"), st.sets(st.sampled_from(STAMPS)))),
    ),
    max_size=25,
)


@given(STAMPED)
def test_whatever_happens_those_with_a_stamp_are_those_that_carry_it(steps: list[Any]) -> None:
    objects, carried = Objects(), dict[str, set[str]]()
    for version, (step, *arguments) in enumerate(steps, start=1):
        match step:
            case "put":
                carried[arguments[0]] = arguments[1]
                objects.put(annotated(arguments[0], version, arguments[1]))
            case "drop":
                carried.pop(arguments[0], None)
                objects.drop(arguments[0])
            case "list":
                carried = dict(arguments[0])
                objects.replace([annotated(name, version, keys) for name, keys in carried.items()])
        for stamp in STAMPS:
            found = [raw["metadata"]["name"] for raw in objects.stamped_with(stamp)]
            assert found == sorted(name for name, keys in carried.items() if stamp in keys)
        assert objects.any_stamped == any(set(STAMPS) & keys for keys in carried.values())


def annotated(name: str, version: int, keys: set[str]) -> dict[str, Any]:
    found = raw(name, version)
    found["metadata"]["annotations"] = dict.fromkeys(keys, "")
    return found


NAMES, COLOURS = st.sampled_from("abc"), st.sampled_from(["red", "blue", None])
STEPS = st.one_of(
    st.tuples(st.just("put"), NAMES, COLOURS),
    st.tuples(st.just("drop"), NAMES),
    st.tuples(st.just("list"), st.dictionaries(NAMES, COLOURS)),
    st.tuples(st.sampled_from(["select", "deselect"]), st.sampled_from(SELECTORS)),
)


@given(st.lists(STEPS, max_size=25))
def test_whatever_happens_the_selections_are_those_of_the_objects_that_there_are(steps: list[Any]) -> None:
    objects, begun = Objects(), set()
    for version, (step, *arguments) in enumerate(steps, start=1):
        match step:
            case "put":
                objects.put(raw(arguments[0], version, arguments[1]))
            case "drop":
                objects.drop(arguments[0])
            case "list":
                objects.replace([raw(name, version, colour) for name, colour in arguments[0].items()])
            case "select":
                objects.select(arguments[0])
                begun.add(arguments[0])
            case "deselect":
                objects.deselect(arguments[0])
                begun.discard(arguments[0])
        for selector in begun:
            known = objects.by_name.items()
            assert chosen(objects, selector) == sorted(
                name for name, found in known if selects(selector, found["metadata"]["labels"])
            )
