"""Lists in pages: whole, or an error."""

import pytest

from assetlock.kube.errors import Gone, TransportError
from assetlock.kube.resources import LEASES

from .servers import answer, failure, in_turn, listing, serving


def names(listed):
    return [item["metadata"]["name"] for item in listed]


async def test_all_pages_make_one_list(connect):
    pages = in_turn(listing("a", version="5", token="t1"), listing("b", version="5"))
    async with serving(pages) as server:
        listed = await connect(server).list(LEASES, "ns", limit=1)
        assert (names(listed), listed.resource_version) == (["a", "b"], "5")
        assert [request.query.get("continue") for request in server.requests] == [None, "t1"]
        assert {request.query["limit"] for request in server.requests} == {"1"}


async def test_a_version_that_is_lost_on_the_way_starts_the_list_over(connect):
    pages = in_turn(
        listing("gone", "b", version="5", token="t1"),
        failure(410, "Expired"),
        listing("a", "b", version="9", token="t2"),
        listing("c", version="9"),
    )
    async with serving(pages) as server:
        listed = await connect(server).list(LEASES, "ns")
        assert (names(listed), listed.resource_version) == (["a", "b", "c"], "9")
        assert server.requests[2].query.get("continue") is None


async def test_a_list_that_never_gets_whole_is_an_error(connect):
    async with serving(in_turn(*[listing("a", token="t"), failure(410, "Expired")] * 4)) as server:
        with pytest.raises(Gone):
            await connect(server).list(LEASES, "ns")
        assert len(server.requests) == 8


async def test_an_empty_page_in_the_middle_does_not_end_the_list(connect):
    pages = in_turn(listing("a", token="t1"), listing(token="t2"), listing("b"))
    async with serving(pages) as server:
        assert names(await connect(server).list(LEASES, "ns")) == ["a", "b"]


async def test_of_an_item_that_comes_twice_the_later_copy_counts(connect):
    def page(rank, token):
        item = {"metadata": {"name": "a", "uid": "u"}, "rank": rank}
        return answer({"metadata": {"resourceVersion": "5", "continue": token}, "items": [item]})

    async with serving(in_turn(page(1, "t1"), page(2, ""))) as server:
        listed = await connect(server).list(LEASES, "ns")
        assert [item["rank"] for item in listed] == [2]


async def test_items_are_given_the_kind_that_the_list_leaves_out(connect):
    async with serving(in_turn(listing("a"))) as server:
        (item,) = await connect(server).list(LEASES, "ns")
        assert (item["apiVersion"], item["kind"]) == ("coordination.k8s.io/v1", "Lease")


async def test_items_of_which_only_the_metadata_came_are_not_passed_off_as_whole(connect):
    async with serving(in_turn(listing("a"))) as server:
        (item,) = await connect(server).list(LEASES, "ns", metadata_only=True)
        assert "kind" not in item


async def test_items_may_be_null(connect):
    async with serving(in_turn(answer({"metadata": {"resourceVersion": "5"}, "items": None}))) as server:
        assert not (await connect(server).list(LEASES, "ns")).items


@pytest.mark.parametrize("items", [{"a": 1}, "abc", [1], [{"metadata": None}]])
async def test_what_is_no_list_of_objects_is_an_error_and_not_an_empty_list(connect, items):
    async with serving(in_turn(answer({"metadata": {}, "items": items}))) as server:
        with pytest.raises(TransportError):
            await connect(server).list(LEASES, "ns")
