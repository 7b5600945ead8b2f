"""What the targets say of who holds: written before anybody is told that he does, and kept to by all who write.

Targets carry a stamp, the namespace of scalable ones a guard; either has a line for each holder.
"""

from collections import defaultdict

from assetlock.core import names
from tests.sim import records
from tests.sim.ledger import Ledger
from tests.sim.policies import claims_on
from tests.sim.records import Announced
from tests.sim.store import Change, Json, Key, Store
from tests.sim.strictness import PROMPT, Strictness


class Stamps:
    """Looks at targets whenever they are written, and whenever somebody is told that he holds.

    What was made just now, or named by an asset just now, is fenced from when it is stamped: until then it is bare.
    """

    def __init__(self, ledger: Ledger, store: Store, strictness: Strictness) -> None:
        self._ledger = ledger
        self._store = store
        self._strict = strictness
        self._bare: dict[tuple[str, str], float] = {}
        self._retargeted: set[str] = set()
        self._unstamped: defaultdict[tuple[str, str], int] = defaultdict(int)

    def note_asset(self, change: Change) -> None:
        """An Asset names its targets."""
        name, targets = change.key.name, _config_maps_of(change.obj)
        before = _config_maps_of(change.old.obj) if change.old else ()
        if change.new is None or (change.old is not None and targets != before):
            self._retargeted.add(names.stamp_key(name, change.key.namespace))
        if change.old is not None or self._ledger.assets_deleted:
            self._bare |= {(name, target): change.time for target in targets if target not in before}

    def judge_announcement(self, asset: str, new: Announced, now: float) -> None:
        """Whoever is told that he holds stands on every target."""
        for target in _config_maps_of(self._ledger.assets[asset]):
            if self._must_be_stamped(asset, target, now):
                self._judge_stamp(asset, target, new)
        if any(target["kind"] == "Deployment" for target in self._ledger.assets[asset]["spec"]["targets"]):
            self._judge_guard(asset, new)

    def _must_be_stamped(self, asset: str, target: str, now: float) -> bool:
        """Whether the controllers must know by now that the target is there, and the asset's."""
        since = self._bare.get((asset, target))
        if since is None:
            return True
        known = self._strict.on_time and now > self._ledger.latest(since + PROMPT + self._strict.patience)
        if known:
            del self._bare[asset, target]
        return known

    def _judge_stamp(self, asset: str, target: str, new: Announced) -> None:
        namespace = self._namespace_of(asset)
        version = self._store.get(Key("", "configmaps", namespace, target))
        if version is not None:
            lines = claims_on(version.obj).get(names.stamp_key(asset, namespace)) or []
            self._judge_lines(asset, new, lines)

    def _judge_guard(self, asset: str, new: Announced) -> None:
        namespace = self._namespace_of(asset)
        version = self._store.get(Key("", "namespaces", "", namespace))
        metadata = version.obj["metadata"] if version else {}
        assert names.GUARDED_LABEL in metadata.get("labels", {}), f"{namespace} is not labelled"
        value = metadata.get("annotations", {}).get(names.namespace_fence_key(asset, namespace), "")
        target, *holders = value.split("\n")
        assert target == "deployments.apps/web", f"{new} was announced while the guard was {value!r}"
        self._judge_lines(asset, new, holders)

    def _namespace_of(self, asset: str) -> str:
        return str(self._ledger.assets[asset]["metadata"]["namespace"])

    def _judge_lines(self, asset: str, new: Announced, lines: list[str]) -> None:
        """A new holder stands in the stamp, alone if it is a writer, and with those only who hold as well."""
        holders = self._ledger.recorded_for(asset, new.acquisition)["holders"]
        kind = "@maintenance" if new.user.startswith(names.WINDOW_USER_PREFIX) else "-"
        known = [f"{holder['fencingToken']} {kind} {holder['identity']}" for holder in holders]
        known += [
            f"{one['fencingToken']} - {name}" for one in holders for name in records.maintainers_of(one)
        ]
        assert f"{new.token} {kind} {new.user}" in lines, (
            f"{new} was announced while {lines} were let through"
        )
        assert set(lines) <= set(known) or new.late, (
            f"{new} was announced while {lines} were let through beside {known}"
        )

    def judge_target(self, change: Change) -> None:
        """Tokens on a target grow, and its content is changed by holders."""
        if change.new is not None and change.old is not None:
            self._judge_tokens(change.old.obj, change.new.obj, change.key.name)
        self._note_stamps(change)
        is_write = change.new is None or (
            change.old is not None and records.content(change.new.obj) != records.content(change.old.obj)
        )
        if is_write:
            self._judge_writer(change.user, change.key.name)

    def _judge_tokens(self, old: Json, new: Json, name: str) -> None:
        """Who was taken out of a stamp, and who came before, is never put back, but by an asset that was changed."""
        before, after = claims_on(old), claims_on(new)
        for key in (before.keys() | after.keys()) - self._retargeted:
            was, now = (
                {int(line.partition(" ")[0]) for line in lines.get(key, ())} for lines in (before, after)
            )
            gone = max([self._unstamped[name, key], *(was - now)])
            self._unstamped[name, key] = gone
            assert all(token > gone for token in now - was), f"{name} was stamped with {now} after {gone}"

    def _note_stamps(self, change: Change) -> None:
        name, assets = change.key.name, self._ledger.assets
        asset_of = {names.stamp_key(asset, change.key.namespace): asset for asset in assets}
        if change.old is None:
            self._bare |= {(asset, name): change.time for asset in assets}
            for key in asset_of:
                self._unstamped.pop((name, key), None)
        elif change.new is not None:
            for key in claims_on(change.new.obj).keys() & asset_of.keys():
                self._bare.pop((asset_of[key], name), None)

    def _judge_writer(self, user: str, name: str) -> None:
        for asset, obj in self._ledger.assets.items():
            held = self._ledger.announced[asset].values()
            if held and name in _config_maps_of(obj) and (asset, name) not in self._bare:
                may = {each for holder in held for each in (holder.user, *holder.maintainers)}
                if not any(holder.alone for holder in held):
                    # Who has left is out of the stamp before anybody else is told that it holds that slot.
                    may |= self._ledger.users_on(asset)
                assert user in may, f"{user} wrote {name} while {held} held {asset}"


def _config_maps_of(asset: Json) -> tuple[str, ...]:
    return tuple(target["name"] for target in asset["spec"]["targets"] if target["kind"] == "ConfigMap")
