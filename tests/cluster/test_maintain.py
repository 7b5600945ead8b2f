"""``assetlock maintain``: a person closes an asset, says for how long and why, and opens it again."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest
import yaml
from click.testing import CliRunner
from tests.cluster.conftest import Operated, until

from assetlock.cli.maintain import PRESETS, maintain
from assetlock.cli.revoke import revoke
from assetlock.model.durations import parse_duration


@pytest.fixture
def shop(operated: Operated) -> Operated:
    """An asset with a target, and carol, who may maintain it."""
    operated.asset("vm-1", "app")
    operated.kubectl("create", "rolebinding", "carol", "--clusterrole=assetlock-maintainer", "--user=carol")
    return operated


def run(
    shop: Operated, *args: str, user: str = "carol", asset: str = "vm-1"
) -> subprocess.CompletedProcess[str]:
    where = ("-n", shop.namespace, "--kubeconfig", str(shop.cluster.kubeconfig_for(user)))
    command = [sys.executable, "-m", "assetlock.cli.main", "maintain", asset, *where, *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)


def test_it_closes_the_asset_for_all_but_the_maintainers_and_opens_it_again(shop: Operated) -> None:
    closed = run(shop, "--for", "2h", "--reason", "new disks", "--maintainer", "alice")
    assert closed.returncode == os.EX_OK, closed.stderr
    assert "asset vm-1 is under maintenance until" in closed.stdout
    assert "under maintenance by carol" in shop.write("app", "carol").stderr
    assert "new disks" in shop.write("app", "bob").stderr
    assert shop.write("app", "alice").returncode == 0
    assert "ended AssetLock maintenance-vm-1-" in run(shop, "--end").stdout
    until(lambda: shop.write("app", "bob").returncode == 0, "open again")


def test_it_says_whom_it_waits_for_and_may_end_that_lock_instead(shop: Operated) -> None:
    shop.held("first")
    assert "maintenance of asset vm-1 begins when alice (first) is done" in run(shop).stdout
    assert "ended" in run(shop, "--end").stdout
    assert "is under maintenance until" in run(shop, "--revoke").stdout
    assert shop.get("alk", "first")["status"]["state"] == "Revoked"


def test_it_ends_nobody_elses_maintenance_and_no_other_lock_of_ones_own(shop: Operated) -> None:
    shop.held("mine", "carol")
    assert "carol has no maintenance on asset vm-1" in run(shop, "--end").stdout
    assert shop.get("alk", "mine")["status"]["state"] == "Held"


def test_who_may_not_and_what_does_not_exist_is_told_by_the_exit_code(shop: Operated) -> None:
    refused = run(shop, user="bob")
    assert refused.returncode == os.EX_NOPERM
    assert "maintain" in refused.stderr
    missing = run(shop, asset="vm-l")
    assert missing.returncode == os.EX_NOINPUT
    assert f"there is no asset vm-l in namespace {shop.namespace}; did you mean vm-1?" in missing.stderr
    for length in ("soon", "PT0S", "2d"):
        assert run(shop, "--for", length).returncode == os.EX_USAGE


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("vm-1/status", "vm-1-status"),
        ("asset/vm-1", "vm-1"),
        ("VM_1", "vm-1"),
        ("vm-1%2Fstatus", "vm-1-2fstatus"),
    ],
)
def test_a_name_that_can_not_be_one_is_refused_before_anything_is_sent(name: str, meant: str) -> None:
    for command in (maintain, revoke):
        refused = CliRunner().invoke(command, [name, "--kubeconfig", __file__])
        assert refused.exit_code == 2  # as a usage error, which the program answers with 64
        assert f"did you mean {meant}?" in refused.output


def test_several_kubeconfigs_are_merged_and_a_context_chosen_as_kubectl_does(
    shop: Operated, tmp_path: pathlib.Path
) -> None:
    own = yaml.safe_load(shop.cluster.kubeconfig_for("carol").read_text())
    [context] = own["contexts"]
    (tmp_path / "users").write_text(yaml.safe_dump({**own, "contexts": [], "current-context": ""}))
    there = {"name": "shop", "context": {**context["context"], "namespace": shop.namespace}}
    contexts = {"apiVersion": "v1", "kind": "Config", "contexts": [there], "current-context": "nowhere"}
    (tmp_path / "contexts").write_text(yaml.safe_dump(contexts))
    env = {**os.environ, "KUBECONFIG": f"{tmp_path / 'contexts'}:{tmp_path / 'users'}"}
    command = [sys.executable, "-m", "assetlock.cli.main", "maintain", "vm-1", "--end", "--context", "shop"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == os.EX_OK, done.stderr
    assert "carol has no maintenance on asset vm-1" in done.stdout


def test_lengths_from_five_minutes_to_a_day_are_offered() -> None:
    lengths = [parse_duration(preset) for preset in PRESETS]
    assert lengths == sorted(lengths)
    assert (PRESETS[0], PRESETS[-1]) == ("5m", "24h")
    told = " ".join(CliRunner().invoke(maintain, ["--help"]).output.split())
    assert ", ".join(PRESETS) in told
