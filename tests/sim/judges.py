"""What must never be, looked at after every commit: who holds, who writes, and which tokens were given.

A lock is held from its announcement (an AssetLock's state `Held`, a Lease's token) until it is taken back: the
AssetLock gone or terminal, the Lease gone or somebody else's. Whatever is known here, the server itself knows.
"""

import dataclasses
import itertools
from collections import defaultdict
from collections.abc import Iterator

from assetlock.core import names
from assetlock.model.durations import parse_duration
from tests.sim import records
from tests.sim.kinds import MAINTENANCE_WINDOWS
from tests.sim.policies import claims_on
from tests.sim.store import Change, Json, Key, Store

TERMINAL = frozenset({"Released", "Expired", "Revoked", "Failed", "Quarantined"})
FAILURES = frozenset(
    {
        "WaitTimeout",
        "Locked",
        "HolderGone",
        "LockDelay",
        "Quarantined",
        "NothingToTakeOver",
        "Deadlock",
        "TooFewAssets",
        "Maintenance",
    }
)
SKEW = 1.0
CUT = (
    1.0  # Creation times are cut to whole seconds, so a wait may be over this much earlier than it may last.
)
PROMPT = 1.0


@dataclasses.dataclass(slots=True)
class Strictness:
    """What can be asked of this schedule besides safety. `patience` is added to every time allowed.

    `in_order`: nothing delays or misleads the controllers, so that they see all waiters. `on_time`: deadlines
    are kept, if only seconds after the last trouble. `full_terms`: no clock is off, so nobody loses time.
    """

    in_order: bool = True
    on_time: bool = True
    full_terms: bool = True
    patience: float = 0.1


class Judges:
    """All of them. `trouble_at` is kept up to date by whoever makes trouble."""

    def __init__(self, store: Store, strictness: Strictness) -> None:
        self.announced: defaultdict[str, dict[str, records.Announced]] = defaultdict(dict)
        self._told: set[str] = set()
        self._ends: dict[str, float] = {}
        self._left: defaultdict[str, dict[int, str]] = defaultdict(dict)
        self.announcements = 0
        self.leases_deleted_by_hand = False
        self._given_back: set[str] = set()
        self._sent_away: set[str] = set()
        self.assets_deleted = False
        self.trouble_at = float("-inf")
        self._now = 0.0
        self._store = store
        self._strict = strictness
        self._targets: dict[str, tuple[str, ...]] = {}
        self._scalable: dict[str, bool] = {}
        self._assets: dict[str, Json] = {}
        self._tokens: dict[str, int] = {}
        self._locks: dict[str, Json] = {}
        self._seen_at: dict[str, float] = {}
        self._terms: defaultdict[str, dict[int, records.Term]] = defaultdict(dict)
        self._half_since: dict[str, float] = {}
        self._unstamped: defaultdict[tuple[str, str], int] = defaultdict(int)
        self._bare: dict[tuple[str, str], float] = {}
        self._last: dict[tuple[str, int], records.Term] = {}
        self._ended_at: dict[str, float] = {}
        self._retargeted: set[str] = set()
        self._former: defaultdict[str, list[tuple[float, records.Term | None]]] = defaultdict(list)

    def __call__(self, change: Change) -> None:
        """Judge one commit."""
        self._now = change.time
        match change.key.plural:
            case "assets":
                self._on_asset(change)
            case "assetlocks":
                self._on_lock(change)
            case "leases" if change.key.name.startswith("asset."):
                self._on_lease(change)
            case "configmaps":
                self._on_target(change)

    def _on_asset(self, change: Change) -> None:
        name = change.key.name
        self._assets[name] = change.obj
        targets, before = change.obj["spec"]["targets"], self._targets.get(name, ())
        self._targets[name] = tuple(t["name"] for t in targets if t["kind"] == "ConfigMap")
        if change.old is not None and self._targets[name] != before:
            self._retargeted.add(names.stamp_key(name, change.key.namespace))
            new = set(self._targets[name]) - set(before)
            self._bare |= {(name, target): change.time for target in new}
        if change.old is None:
            self._begin(name, change.time)
        if change.new is None:
            self._forget(name)
        self._scalable[name] = any(t["kind"] == "Deployment" for t in targets)
        if change.old and change.new:
            old, new = (v.obj.get("status", {}).get("fencingToken", 0) for v in (change.old, change.new))
            assert new >= old, f"the high-water mark of {name} fell from {old} to {new}"
            self._check_room(name, *(records.holders(v.obj) for v in (change.old, change.new)), change.obj)

    def _begin(self, asset: str, now: float) -> None:
        """Another Asset of this name begins to count anew, and its targets to be stamped."""
        self._tokens.pop(asset, None)
        if self.assets_deleted:
            self._bare |= {(asset, target): now for target in self._targets[asset]}

    def _forget(self, asset: str) -> None:
        """Leases made by hand protect nothing until another Asset of this name has them."""
        self._retargeted.add(names.stamp_key(asset, self._assets[asset]["metadata"]["namespace"]))
        self.assets_deleted = True
        held = self.announced[asset]
        self.announced[asset] = {key: holder for key, holder in held.items() if holder.lock is not None}

    def _check_room(self, name: str, old: dict[str, str], new: dict[str, str], asset: Json) -> None:
        """Who comes onto the Asset fits, a writer alone; nobody is thrown out when the capacity shrinks."""
        capacity = asset["spec"].get("capacity", 1)
        assert len(new) <= max(capacity, len(old)), f"{new} hold {name} at a capacity of {capacity}"
        assert len(new) == 1 or "Exclusive" not in new.values(), f"a writer is not alone on {name}: {new}"

    def _on_lock(self, change: Change) -> None:
        lock, name = change.obj, change.key.name
        uid, acquisition = lock["metadata"]["uid"], records.acquisition_of(lock)
        old = change.old.obj.get("status", {}).get("state") if change.old else None
        new = lock.get("status", {}).get("state") if change.new else None
        if change.new is None:
            self._locks.pop(uid, None)
            for asset in records.assets_of(lock):
                self._end(asset, acquisition)
            return
        self._locks[uid] = lock
        self._seen_at.setdefault(uid, change.time)
        if lock["spec"].get("whenHeld") == "Revoke":
            self._sent_away.update(records.assets_of(lock))
        if old in TERMINAL:
            assert new == old, f"{name} left its terminal state {old} for {new}"
            return
        if new in TERMINAL:
            self._ended_at[uid] = change.time
            self._on_end(change, lock, str(new))
            for asset in records.assets_of(lock):
                self._end(asset, acquisition)
        if new == "Held" and old != "Held":
            user = lock["spec"]["holder"]["username"]
            alone = lock["spec"].get("mode", "Exclusive") == "Exclusive"
            for asset, token in records.tokens_of(lock).items():
                late = not alone and "assetName" not in lock["spec"]
                maintainers = records.maintainers_of(lock["spec"])
                told = records.Announced(acquisition, user, token, name, alone, late, maintainers)
                self._announce(asset, told)
            self._check_has_all(lock, acquisition)

    def _check_has_all(self, lock: Json, acquisition: str) -> None:
        """Who holds several assets has the Leases of all of them, unless somebody took one just now."""
        lacking = [a for a in records.assets_of(lock) if acquisition not in self._acquisitions_on(a)]
        name, tokens = lock["metadata"]["name"], records.tokens_of(lock)
        assert set(tokens) == set(records.assets_of(lock)), f"{name} was announced with {tokens} only"
        assert not lacking or self.leases_deleted_by_hand, f"{name} was announced without {lacking}"

    def _acquisitions_on(self, asset: str) -> set[str]:
        return {term.acquisition for term in self._terms[asset].values()}

    def _lock_of(self, acquisition: str) -> Json | None:
        return self._locks.get(acquisition.partition(".")[0])

    def _look_for_halves(self, change: Change, acquisition: str) -> None:
        """Nobody has some of several assets and not the others for long, neither before nor after."""
        lock = self._lock_of(acquisition)
        if lock is None or len(records.assets_of(lock)) <= 1:
            return
        having = [acquisition in self._acquisitions_on(asset) for asset in records.assets_of(lock)]
        if any(having) and not all(having):
            self._half_since.setdefault(acquisition, change.time)
            return
        since = self._half_since.pop(acquisition, None)
        if since is not None and self._strict.on_time:
            latest = max(since + PROMPT, self.trouble_at + 5.0) + self._strict.patience * len(having)
            name = lock["metadata"]["name"]
            assert change.time <= latest, f"{name} was half held for {change.time - since:.2f}s"

    def _on_lease(self, change: Change) -> None:
        asset = change.obj["metadata"].get("labels", {}).get(names.ASSET_LABEL, "")
        slot = names.slot_of(asset, change.key.name)
        if slot is None:
            return
        terms = self._terms[asset]
        before, after = terms.get(slot), records.term(change, self._longest_hold(asset))
        self._former[asset].append((change.time, before))
        gone = before is not None and (after is None or after.acquisition != before.acquisition)
        if before is not None and gone:
            self._left[asset][slot] = before.user
            self._on_loss(change, asset, before)
        if after is not None:
            first = after.acquisition not in {term.acquisition for term in terms.values()}
            terms[slot] = after
            self._ends[after.acquisition] = max(term.ends for term in self._terms_of(after.acquisition))
        else:
            terms.pop(slot, None)
        for acquisition in {term.acquisition for term in (before, after) if term is not None}:
            self._look_for_halves(change, acquisition)
        if after is None:
            return
        if change.user == names.CONTROLLER_USER and not after.withheld:
            self._check_kept_out(change, asset, self._last.get((asset, slot)), after)
            self._check_heir(change, self._last.get((asset, slot)), after)
        self._last[asset, slot] = after
        if first and change.user == names.CONTROLLER_USER and not after.withheld:
            self._check_turn(change, asset, after.acquisition)
        annotations = change.obj["metadata"].get("annotations", {})
        token = annotations.get(names.TOKEN_ANNOTATION)
        if token is not None and (after.withheld or names.LOCK_ANNOTATION not in annotations):
            known = self.announced[asset].get(after.acquisition)
            if known is None and self.assets_deleted and after.acquisition in self._told:
                return
            if known is None and after.withheld and not self._is_named(asset, after.acquisition):
                return  # By another controller's clock the delay is over, and nobody is told of it.
            if known is None:
                self._announce(asset, records.Announced(after.acquisition, after.user, int(token), None))
            else:
                assert known.token == int(token), f"token {known.token} became {token} while it was held"

    def _is_named(self, asset: str, acquisition: str) -> bool:
        """Whether the Asset names it as a holder."""
        holders = self._assets[asset].get("status", {}).get("holders", [])
        return acquisition in {holder["acquisition"] for holder in holders}

    def _terms_of(self, acquisition: str) -> list[records.Term]:
        """On whatever assets they are."""
        return [t for terms in self._terms.values() for t in terms.values() if t.acquisition == acquisition]

    def _on_loss(self, change: Change, asset: str, before: records.Term) -> None:
        """Somebody has a Lease no more."""
        if self._acquisitions_left(change, asset).count(before.acquisition) == 0:
            self._end(asset, before.acquisition, by_lease=True)
        self._check_promptness(change, before)
        self._check_robbery(change, asset, before)
        if change.user not in (names.CONTROLLER_USER,) and self._lock_of(before.acquisition):
            self.leases_deleted_by_hand = True

    def _acquisitions_left(self, change: Change, asset: str) -> list[str]:
        """Whose the asset's other Leases are."""
        lost = names.slot_of(asset, change.key.name)
        return [term.acquisition for slot, term in self._terms[asset].items() if slot != lost]

    def _announce(self, asset: str, new: records.Announced) -> None:
        present = self.announced[asset]
        assert not (present and new.alone), f"{new} was announced while {present} still held {asset}"
        assert not any(other.alone for other in present.values()), f"{new} was announced beside {present}"
        last = self._tokens.get(asset, 0)
        assert new.token > last or new.late, f"{new} was announced after token {last}"
        status = self._assets[asset].get("status", {})
        mark = status.get("fencingToken", 0)
        assert mark >= new.token, f"{new} was announced with the high-water mark at {mark}"
        tokens = [holder["fencingToken"] for holder in status.get("holders", [])]
        assert new.token in tokens, f"{new} was announced while the Asset named {tokens}"
        self._tokens[asset] = max(new.token, last)
        present[new.acquisition] = new
        self._told.add(new.acquisition)
        for slot, term in self._terms[asset].items():
            if term.acquisition == new.acquisition:
                self._left[asset].pop(slot, None)
        self.announcements += 1
        for target in self._targets[asset]:
            if self._is_known(asset, target):
                self._check_stamp(asset, target, new)
        if self._scalable[asset]:
            self._check_guard(asset, new)

    def _longest_hold(self, asset: str) -> float:
        longest = self._assets[asset]["spec"].get("maxHold") if asset in self._assets else None
        return parse_duration(longest).total_seconds() if longest else float("inf")

    def _is_known(self, asset: str, target: str) -> bool:
        """Whether the controllers must know by now that the target is there, and the asset's."""
        since = self._bare.get((asset, target), float("-inf"))
        prompt = since + PROMPT + self._strict.patience
        known = since == float("-inf") or (
            self._strict.on_time and self._now > max(prompt, self.trouble_at + 5)
        )
        if known:
            self._bare.pop((asset, target), None)
        return known

    def _check_stamp(self, asset: str, target: str, new: records.Announced) -> None:
        namespace = self._assets[asset]["metadata"]["namespace"]
        version = self._store.get(Key("", "configmaps", namespace, target))
        if version is not None:
            lines = claims_on(version.obj).get(names.stamp_key(asset, namespace)) or []
            self._check_lines(asset, new, lines)

    def _check_lines(self, asset: str, new: records.Announced, lines: list[str]) -> None:
        """A new holder stands in the stamp, alone if it is a writer, and with those only who hold as well."""
        holders = self._assets[asset]["status"]["holders"]
        kind = "maintenance" if new.user.startswith(names.WINDOW_USER_PREFIX) else "-"
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

    def _check_guard(self, asset: str, new: records.Announced) -> None:
        namespace = self._assets[asset]["metadata"]["namespace"]
        version = self._store.get(Key("", "namespaces", "", namespace))
        metadata = version.obj["metadata"] if version else {}
        assert names.GUARDED_LABEL in metadata.get("labels", {}), f"{namespace} is not labelled"
        value = metadata.get("annotations", {}).get(names.guard_key(asset, namespace), "")
        target, *holders = value.split("\n")
        assert target == "deployments.apps/web", f"{new} was announced while the guard was {value!r}"
        self._check_lines(asset, new, holders)

    def _end(self, asset: str, acquisition: str, *, by_lease: bool = False) -> None:
        """A lock that an AssetLock stands for ends with that; one that is just a Lease ends with it."""
        known = self.announced[asset].get(acquisition)
        if known and not (by_lease and known.lock is not None):
            del self.announced[asset][acquisition]

    def _on_target(self, change: Change) -> None:
        name = change.key.name
        if change.new is not None and change.old is not None:
            self._check_tokens_grow(change.old.obj, change.new.obj, name)
        self._note_stamps(change, name)
        if change.old is None or (
            change.new and records.content(change.new.obj) == records.content(change.old.obj)
        ):
            return
        for asset, targets in self._targets.items():
            held = self.announced[asset].values()
            if held and name in targets and (asset, name) not in self._bare:
                may = {user for holder in held for user in (holder.user, *holder.maintainers)}
                if not any(holder.alone for holder in held):
                    # Who has left is out of the stamp before anybody else is told that it holds that slot.
                    may |= {term.user for term in self._terms[asset].values()}
                    may |= set(self._left[asset].values())
                assert change.user in may, f"{change.user} wrote {name} while {held} held {asset}"

    def _note_stamps(self, change: Change, name: str) -> None:
        """What was made just now, or named by an asset just now, is fenced from when it is stamped."""
        asset_of = {names.stamp_key(asset, change.key.namespace): asset for asset in self._targets}
        if change.old is None:
            self._bare |= {(asset, name): change.time for asset in self._targets}
            for key in asset_of:
                self._unstamped.pop((name, key), None)
        elif change.new is not None:
            for key in claims_on(change.new.obj).keys() & asset_of.keys():
                self._bare.pop((asset_of[key], name), None)

    def _check_tokens_grow(self, old: Json, new: Json, name: str) -> None:
        """Who was taken out of a stamp, and who came before, is never put back, but by an asset that was changed."""
        before, after = claims_on(old), claims_on(new)
        for key in (before.keys() | after.keys()) - self._retargeted:
            was, now = (
                {int(line.partition(" ")[0]) for line in lines.get(key, ())} for lines in (before, after)
            )
            gone = max([self._unstamped[name, key], *(was - now)])
            self._unstamped[name, key] = gone
            assert all(token > gone for token in now - was), f"{name} was stamped with {now} after {gone}"

    def _check_promptness(self, change: Change, term: records.Term) -> None:
        collected = self._lock_of(term.acquisition) and term.acquisition not in self._told
        if not self._strict.on_time or collected or not term.believed:
            return
        ends = self._ends[term.acquisition]
        latest = max(ends + SKEW + PROMPT, self.trouble_at + 5.0) + self._strict.patience
        late = change.time - ends
        assert change.time <= latest, f"{change.key.name} was freed {late:.2f}s after it had run out"

    def _check_robbery(self, change: Change, asset: str, term: records.Term) -> None:
        """The controller takes a Lease from those only whose lock has ended, or whose time was up."""
        if change.user != names.CONTROLLER_USER:
            return
        lock = self._lock_of(term.acquisition)
        if term.withheld:
            self._check_withholding(change, term, lock)
        elif lock is not None:
            state = lock.get("status", {}).get("state")
            given_back = term.acquisition not in self._told and (
                self._shared(asset) or term.acquisition != records.acquisition_of(lock)
            )
            assert state in TERMINAL or given_back, (
                f"{lock['metadata']['name']} lost its Lease while it was {state}"
            )
            self._given_back.add(lock["metadata"]["uid"])
        elif asset in self._sent_away:
            return
        elif self._strict.full_terms and term.acquisition.partition(".")[0] not in self._seen_at:
            ends = min(term.ends, *self._ends_shortly_before(asset, term.acquisition, change.time))
            assert change.time >= ends, f"a Lease made by hand was taken {ends - change.time:.2f}s early"

    def _check_kept_out(
        self, change: Change, asset: str, last: records.Term | None, new: records.Term
    ) -> None:
        """Nobody follows at once where a lock was quarantined, or was not released while there is a lockDelay."""
        lock = self._lock_of(last.acquisition) if last else None
        if last is None or lock is None or new.acquisition == last.acquisition or self.assets_deleted:
            return
        if records.acquisition_of(lock) not in self._told or not self._strict.full_terms:
            return
        heir, name = self._lock_of(new.acquisition) or {"spec": {}}, lock["metadata"]["name"]
        state, taken_over = lock["status"]["state"], heir["spec"].get("takeOver") == name
        sent_away = records.reason_of(lock) == "Maintenance"
        assert state != "Quarantined" or taken_over, (
            f"{change.key.name} was passed on, quarantined with {name}"
        )
        delay = parse_duration(self._assets[asset]["spec"].get("lockDelay", "0s")).total_seconds()
        if state in ("Expired", "Revoked") and not taken_over and not sent_away:
            since = change.time - self._ended_at[lock["metadata"]["uid"]]
            assert since >= delay - CUT, f"{change.key.name} was passed on {since:.2f}s after {name}"

    def _check_heir(self, change: Change, last: records.Term | None, new: records.Term) -> None:
        """A lock that was handed over is followed by one that was to take over from it, if that still waits."""
        lock = self._lock_of(last.acquisition) if last else None
        if not self._strict.in_order or lock is None or lock["status"]["state"] not in TERMINAL:
            return
        if last is None or new.acquisition == last.acquisition or records.reason_of(lock) != "HandedOver":
            return
        name = lock["metadata"]["name"]
        heirs = [records.acquisition_of(k) for k in self._locks.values() if k["spec"].get("takeOver") == name]
        assert new.acquisition in heirs or not set(heirs) & self._waiting(), (
            f"{change.key.name} was handed over from {name} to who was not to take over"
        )

    def _waiting(self) -> set[str]:
        return {
            records.acquisition_of(lock)
            for lock in self._locks.values()
            if lock.get("status", {}).get("state") in (None, "Pending")
        }

    def _check_withholding(self, change: Change, term: records.Term, lock: Json | None) -> None:
        """What is kept from everybody goes to somebody when its time is over, or when somebody has looked."""
        if not self._strict.full_terms or self.assets_deleted:
            return
        if term.user == "assetlock:quarantine":
            heir = lock and any(
                other["spec"].get("takeOver") == lock["metadata"]["name"] for other in self._locks.values()
            )
            assert lock is None or heir, f"the quarantine of {change.key.name} was ended by nobody"
        else:
            assert change.time >= term.ends, f"lockDelay was {term.ends - change.time:.2f}s short"

    def _shared(self, asset: str) -> bool:
        """Whether the asset has several slots, or had."""
        return bool(self._assets[asset]["spec"].get("capacity", 1) > 1 or len(self._terms[asset]) > 1)

    def _check_turn(self, change: Change, asset: str, acquisition: str) -> None:
        chosen = self._lock_of(acquisition)
        if not self._strict.in_order or chosen is None:
            return
        slack = self._strict.patience
        if "takeOver" in chosen["spec"] or chosen["spec"].get("mode") == "Maintenance":
            return
        windows = list(self._store.objects(MAINTENANCE_WINDOWS))
        if any(window["spec"]["leadTime"] != "0s" for window in windows):
            return  # Who asks for too long a term before a window lets others pass.
        over = records.wait_over(chosen)
        assert over is None or change.time <= over + SKEW + slack, "granted though its wait was over"
        for other in self._locks.values():
            if asset not in records.assets_of(other) or other.get("status", {}).get("state") not in (
                None,
                "Pending",
            ):
                continue
            over = records.wait_over(other)
            taken = records.acquisition_of(other) in self._acquisitions_on(asset)
            if (
                "takeOver" in other["spec"]
                or taken
                or (windows and "assetName" not in other["spec"])  # One of its assets may be closed.
                or (over is None and (self._shared(asset) or "assetName" not in other["spec"]))
            ):
                continue
            known = change.time - self._seen_at[other["metadata"]["uid"]] > slack
            eligible = (
                known
                and (over is None or change.time < over - CUT - slack)
                and not self._has_lost_its_pod(other)
            )
            name, better = chosen["metadata"]["name"], other["metadata"]["name"]
            assert not eligible or records.rank(chosen) <= records.rank(other), (
                f"{name} was granted before {better}"
            )

    def _has_lost_its_pod(self, lock: Json) -> bool:
        holder = lock["spec"]["holder"]
        if "podUID" not in holder:
            return False
        pod = self._store.get(Key("", "pods", lock["metadata"]["namespace"], holder["podName"]))
        is_there = pod is not None and pod.obj["metadata"]["uid"] == holder["podUID"]
        if not is_there or pod is None or pod.obj["status"]["phase"] in ("Succeeded", "Failed"):
            return True
        return self._has_finished_job(pod.obj)

    def _has_finished_job(self, pod: Json) -> bool:
        """A finished Job is evidence, unless nobody hears from the pod's node."""
        conditions = [condition["status"] for condition in pod["status"]["conditions"]]
        owners = pod["metadata"].get("ownerReferences", ())
        jobs = (
            self._store.get(Key("batch", "jobs", pod["metadata"]["namespace"], o["name"])) for o in owners
        )
        return "Unknown" not in conditions and any(
            condition["type"] == "Complete"
            for job in jobs
            if job is not None
            for condition in job.obj.get("status", {}).get("conditions", ())
        )

    def _on_end(self, change: Change, lock: Json, state: str) -> None:
        name, strict = change.key.name, self._strict
        own = self._terms_of(records.acquisition_of(lock))
        if state == "Expired" and strict.full_terms and own:
            # Of several Leases the one that was renewed last says until when.
            latest = max(own, key=lambda term: term.renewed).ends
            before = (
                self._ends_shortly_before(a, own[0].acquisition, change.time) for a in records.assets_of(lock)
            )
            ends = min(latest, *itertools.chain.from_iterable(before))
            assert change.time >= ends, f"{name} ended {ends - change.time:.2f}s early"
        reason = records.reason_of(lock)
        if reason == "HolderGone":
            assert self._has_lost_its_pod(lock), f"{name} ended with a pod that lives"
        if state == "Revoked" and reason == "Maintenance":
            assert self._sent_away & set(records.assets_of(lock)), f"{name} was sent away by no window"
        elif state == "Revoked" and not (reason == "AssetDeleted" and self.assets_deleted):
            # One controller gave a slot back that another had already recorded: that lock may not be told any more.
            taken = self.leases_deleted_by_hand or lock["metadata"]["uid"] in self._given_back
            assert taken, f"{name} was revoked ({reason}) though nobody took its Lease"
        if state == "Failed" and reason == "WaitTimeout" and strict.full_terms:
            over = records.wait_over(lock)
            assert over is None or change.time >= over - 1.0, f"{name} was failed before its wait was over"
        if state == "Failed" and strict.in_order:
            assert reason in FAILURES, f"{name} failed for {reason}"

    def _ends_shortly_before(self, asset: str, acquisition: str, now: float) -> Iterator[float]:
        """When the acquisition's terms would have ended that were in force when this was decided, perhaps."""
        yield float("inf")
        for until, term in reversed(self._former[asset]):
            if until < now - self._strict.patience:
                return
            if term is not None and term.acquisition == acquisition:
                yield term.ends

    def waiting(self) -> list[str]:
        """The AssetLocks that have not ended."""
        return [
            lock["metadata"]["name"]
            for lock in self._locks.values()
            if lock.get("status", {}).get("state") not in TERMINAL
        ]
