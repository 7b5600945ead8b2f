"""Names that stand for an asset: each is one asset's alone, though names of assets have dots and hyphens."""

from __future__ import annotations

import subprocess
import sys

from hypothesis import example, given
from hypothesis import strategies as st

from assetlock.core import names
from assetlock.model.limits import LONGEST_ASSET_NAME, MOST_SLOTS

LABELS = st.one_of(
    st.from_regex(r"[a-z0-9]([-a-z0-9]{0,5}[a-z0-9])?", fullmatch=True),
    st.sampled_from(["asset", "asset-1", "fence", "1", "63", "guard"]),
)
ASSETS = st.lists(LABELS, min_size=1, max_size=4).map(".".join)
SLOTS = st.integers(0, MOST_SLOTS - 1)


@given(ASSETS, SLOTS, ASSETS)
@example("a.1", 0, "a")
@example("a", 1, "1.a")
@example("asset-1.vm", 0, "vm")
def test_a_lease_is_a_slot_of_one_asset_alone(asset: str, slot: int, other: str) -> None:
    lease = names.lease_name(asset, slot)
    assert names.slot_of(asset, lease) == slot
    assert (names.slot_of(other, lease) is None) == (other != asset)


@given(ASSETS, st.text("0123456789-.a١", max_size=4))
def test_no_other_lease_is_a_slot(asset: str, written: str) -> None:
    slots = {names.lease_name(asset, slot) for slot in range(MOST_SLOTS)}
    for lease in (f"asset-{written}.{asset}", f"asset.{asset}.{written}", f"asset{written}.{asset}"):
        assert (names.slot_of(asset, lease) is None) == (lease not in slots)


@given(ASSETS, LABELS)
@example("a.b", "c")
@example("a", "c")
def test_a_key_tells_asset_and_namespace_apart(asset: str, namespace: str) -> None:
    for key in (names.stamp_key(asset, namespace), names.namespace_fence_key(asset, namespace)):
        assert names.claimant(key) == (namespace, asset)


def test_a_key_without_a_namespace_is_nobodys() -> None:
    for key in (f"a{names.STAMP_SUFFIX}", names.NAMESPACE_FENCE_SUFFIX, f".b{names.STAMP_SUFFIX}", "a.b/c"):
        assert names.claimant(key) is None


def test_the_longest_names_fit_into_what_kubernetes_allows() -> None:
    asset, namespace = "a" * LONGEST_ASSET_NAME, "n" * 63
    assert len(names.lease_name(asset, MOST_SLOTS - 1)) <= 253
    for key in (names.stamp_key(asset, namespace), names.namespace_fence_key(asset, namespace)):
        assert len(key.partition("/")[0]) <= 253


def test_quick_paths_may_import_the_names_without_pydantic() -> None:
    code = "import sys, assetlock.core.names; sys.exit('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
