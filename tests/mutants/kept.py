"""The mutants: in which module, which text becomes which, and what that would mean to users."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "skip the stamp",
        "core/fencing.py",
        "        writes.append(PatchTarget(target, patch))\n",
        "",
    ),
    Mutant(
        "let who closed an asset write to it",
        "core/fencing.py",
        'Identity(f"{username}{why}", MAINTENANCE)',
        "Identity(username)",
    ),
    Mutant(
        "grant who waits inside a window",
        "core/granting.py",
        "        if situation.gate.refusal(lock):\n            continue\n",
        "",
    ),
    Mutant(
        "let a lock outlive the start of a window",
        "core/terms.py",
        "_in_seconds(min(asked, closes - observation.now))",
        "asked",
    ),
    Mutant(
        "take a duration for a time on the wall clock",
        "core/cron.py",
        "yield fired.astimezone(datetime.UTC)",
        "yield fired",
    ),
    Mutant(
        "free an asset before the changed lock of its window is in line",
        "core/windowlocks.py",
        "others = [lock for lock in own if lock is not present] if present else []",
        "others = [lock for lock in own if lock is not present]",
    ),
    Mutant(
        "announce before stamping",
        "core/decide.py",
        "    fencing.stamp,\n    granting.announce,\n",
        "    granting.announce,\n    fencing.stamp,\n",
    ),
    Mutant(
        "stamp for whom an old view names what was unstamped since",
        "core/fencing.py",
        "            *confirm_recorded(situation, target.resource_version),\n",
        "",
    ),
    Mutant(
        "believe a stamp that was written for another object",
        "core/stamp.py",
        "return stamp if stamp and stamp.uid == uid else None",
        "return stamp",
    ),
    Mutant(
        "drop a write although one of the assets that refuse it does not warn",
        "admission/decide_fence.py",
        "or not all(asset is not None and asset.warns for asset in known)",
        "or not any(asset is not None and asset.warns for asset in known)",
    ),
    Mutant(
        "put only the content back that the client changed, not its metadata",
        "admission/differences.py",
        ', *_put_back(("metadata",), old, fields))',
        ",)",
    ),
    Mutant(
        "take the holder's own write for broken glass",
        "admission/decide_fence.py",
        "in review.requester.groups and not _is_open(review, claims)",
        "in review.requester.groups",
    ),
    Mutant(
        "take a leader for alive because its Lease names it",
        "controller/leadership.py",
        "if not leader or (seen is not None and version != seen):",
        "if not leader or version != seen:",
    ),
    Mutant(
        "show broken glass for ever",
        "core/glass.py",
        "[entry for entry in known if entry.time + SHOWN_FOR > now]",
        "list(known)",
    ),
    Mutant(
        "grant the lock to the next in line while it is revoked by hand",
        "core/situation.py",
        "        if observation.revocation is not None:\n",
        "        if observation.revocation is not None and observation.asset is None:\n",
    ),
    Mutant(
        "revoke whoever holds the lock, and not only who held it at the beginning",
        "core/acquisition.py",
        "if revocation is not None and tenure.acquisition in revocation.acquisitions:",
        "if revocation is not None:",
    ),
    Mutant(
        "put a lower token over a higher one",
        "core/fencing.py",
        " or present.token > situation.mark",
        "",
    ),
    Mutant(
        "let planted stamps count once the label is there",
        "core/fencing.py",
        "stamps = {**_planted(target), situation.stamp_key: str(stamp)}",
        "stamps = {situation.stamp_key: str(stamp)}",
    ),
    Mutant(
        "take a label that is absent for one that is not in the list",
        "core/selection.py",
        "return value is None or value not in requirement.values",
        "return value is not None and value not in requirement.values",
    ),
    Mutant(
        "believe a proof although the policy has just changed",
        "controller/proofs.py",
        "now + min(longest, max(SHORTEST, now - self._wall.since))",
        "now + longest",
    ),
    Mutant(
        "let who changes anything of an asset stand for its targets",
        "admission/decide_assets.py",
        "    if after != before:\n        setter =",
        "    if after:\n        setter =",
    ),
    Mutant(
        "pass the Lease on before the AssetLock is terminal",
        "core/decide.py",
        "    ending.end_locks,\n    withholding.withhold,\n    granting.pass_on,\n",
        "    granting.pass_on,\n    ending.end_locks,\n    withholding.withhold,\n",
    ),
    Mutant(
        "forget the high-water mark",
        "core/situation.py",
        "return self.observation.asset.status.fencing_token if self.observation.asset else 0",
        "return 0",
    ),
    Mutant(
        "believe a renewal that lies in the future",
        "core/tenure.py",
        "return min(spec.renew_time or spec.acquire_time or observed.seen, observed.seen)",
        "return spec.renew_time or spec.acquire_time or observed.seen",
    ),
    Mutant(
        "grant a waiter whose wait is over",
        "core/queue.py",
        "        and not ran_out(observation, lock)\n",
        "",
    ),
    Mutant(
        "serve waiters without regard to priority",
        "core/queue.py",
        "-lock.spec.priority, created",
        "0, created",
    ),
    Mutant(
        "grant into a terminating Lease",
        "core/situation.py",
        "if lease is None or not lease.terminating}",
        "}",
    ),
    Mutant(
        "expire without reading the Lease again",
        "core/ending.py",
        "return confirm_leases((*acquisition.tenure.leases, *acquisition.tenure.elsewhere))",
        "return ()",
    ),
    Mutant(
        "take a holder off the Asset without looking for its Lease",
        "core/fencing.py",
        "confirm = (*confirm_slots(situation, slots), *confirm_former_gone(situation))",
        "confirm = confirm_former_gone(situation)",
    ),
    Mutant(
        "drop the waiters at a restart",
        "controller/controller.py",
        "            for key in self._cache.known():\n                self._queue.add(key)\n",
        "            pass\n",
    ),
    Mutant(
        "never list again",
        "controller/controller.py",
        "                tasks.create_task(self._keep_listing())\n",
        "",
    ),
    Mutant(
        "believe a conflict without reading what is there",
        "controller/writing.py",
        "            await self._read_again(key, write)\n            if isinstance(error, AlreadyExists)",
        "            if isinstance(error, AlreadyExists)",
    ),
    Mutant(
        "let an older version replace a later one",
        "controller/collection.py",
        " or (old is not None and version <= version_of(old))",
        "",
    ),
    Mutant(
        "take a PUT without resourceVersion",
        "kube/api.py",
        "        wire.require_version(body)\n",
        "",
    ),
    Mutant(
        "delete without preconditions",
        "kube/api.py",
        '            "preconditions": {"uid": uid, "resourceVersion": resource_version},\n',
        "",
    ),
    Mutant(
        "repeat a write whose answer was lost",
        "kube/api.py",
        "lambda: self._send(method, path, query, headers, data), retry.may_repeat_write",
        "lambda: self._send(method, path, query, headers, data), retry.may_repeat_read",
    ),
    Mutant(
        "take over a leader that is still renewing",
        "controller/leadership.py",
        "return self._clock.monotonic() > self._seen_at + float(duration)",
        "return True",
    ),
    Mutant(
        "ignore the pod's UID",
        "core/identity.py",
        "return cls(username, None if pod_uid == UNBOUND else pod_uid)",
        "return cls(username, None)",
    ),
    Mutant(
        "stamp whatever version the target has by now",
        "controller/writing.py",
        '                new = await self._api.merge_patch(resource, place, target.name or "", patch)\n',
        '                live = await self._api.get(resource, place, target.name or "")\n'
        '                patch["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"]\n'
        '                new = await self._api.merge_patch(resource, place, target.name or "", patch)\n',
    ),
    Mutant(
        "claim the Lease whatever became of it meanwhile",
        "controller/writing.py",
        '                self._put(key, "Lease", await self._api.replace(LEASES, namespace, lease, body))\n',
        "                live = await self._api.get(LEASES, namespace, lease)\n"
        '                body["metadata"] |= {k: live["metadata"][k] for k in ("uid", "resourceVersion")}\n'
        '                self._put(key, "Lease", await self._api.replace(LEASES, namespace, lease, body))\n',
    ),
    Mutant(
        "give the next acquisition the token of the last",
        "core/granting.py",
        "token = highest = highest + 1",
        "token = highest = max(1, highest)",
    ),
    Mutant(
        "leave those out of the line who were queued before",
        "core/queue.py",
        "if is_pending(lock) and acquisition_of(lock) not in besides",
        "if lock.status.state is None and acquisition_of(lock) not in besides",
    ),
    Mutant(
        "serve the youngest of equal waiters first",
        "core/queue.py",
        "-lock.spec.priority, created",
        "-lock.spec.priority, datetime.datetime.max.replace(tzinfo=datetime.UTC) - created",
    ),
    Mutant(
        "count a list whose second page was lost as whole",
        "kube/api.py",
        "                return await self._all_pages(path, params, Listing(resource, metadata_only))\n"
        "            except Gone:\n",
        "                listing = Listing(resource, metadata_only)\n"
        "                return await self._all_pages(path, params, listing)\n"
        "            except Gone:\n"
        "                if listing.resource_version:\n"
        "                    return listing.whole()\n",
    ),
    Mutant(
        "let an older deletion take out what was made since",
        "controller/collection.py",
        "        if old is not None and version_of(old) > version:\n            return None\n",
        "",
    ),
    Mutant(
        "let an older event bring back what was deleted",
        "controller/collection.py",
        "version <= self._gone.get(where, -1) or ",
        "",
    ),
    Mutant(
        "let anybody of the pod's name write",
        "core/situation.py",
        'holder.pod_uid if lock.spec.bind_to == "Pod" else None',
        "None",
    ),
    Mutant(
        "leave a recorded lock to the sleeper who may announce it",
        "core/ending.py",
        "lock.status.state is LockState.HELD or (\n"
        "        joint.acquisition_of(lock) in recorded and queue.is_pending(lock)\n    )",
        "lock.status.state is LockState.HELD",
    ),
    Mutant(
        "repair what a holder lacks without looking for its Lease",
        "core/confirming.py",
        "    told = (holder for holder in holders if holder.token_announced is not None)\n",
        "    told = (holder for holder in holders if holder.token_announced is None)\n",
    ),
    Mutant(
        "count terms from whenever they are looked at",
        "controller/observing.py",
        "return now - datetime.timedelta(seconds=monotonic - at)",
        "return now",
    ),
    Mutant(
        "leave the stamps when a lock ends",
        "core/decide.py",
        "    fencing.clear,\n",
        "",
    ),
    Mutant(
        "let the later of two deadlines count",
        "controller/workqueue.py",
        'self._due.get(key, float("inf")) <= at',
        'self._due.get(key, float("-inf")) >= at',
    ),
    Mutant(
        "hand a key out to two workers at once",
        "controller/workqueue.py",
        "        if key in self._busy:\n",
        "        if key in self._again:\n",
    ),
    Mutant(
        "stamp before the subresources are closed",
        "core/decide.py",
        "    guarding.put_up,\n    fencing.stamp,\n",
        "    fencing.stamp,\n    guarding.put_up,\n",
    ),
    Mutant(
        "leave the guard on the namespace when a lock ends",
        "core/decide.py",
        "    guarding.take_down,\n",
        "",
    ),
    Mutant(
        "open the subresources of what can't be looked at",
        "core/guarding.py",
        "        lines |= set(present.targets)\n",
        "        pass\n",
    ),
    Mutant(
        "let those evict who may only update",
        "admission/decide_subresources.py",
        '    if review.subresource != "scale":\n        return False\n',
        "",
    ),
    Mutant(
        "make an object under a locked name through the garbage collector",
        "admission/exempt.py",
        '    "ephemeral-volume-controller",\n',
        '    "ephemeral-volume-controller",\n    "generic-garbage-collector",\n',
    ),
    Mutant(
        "end a lock with its pod without looking for the pod live",
        "core/ending.py",
        "    if ending.pod is not None:\n        return (ConfirmPod(ending.pod, ended=True),)\n    if ending.reason",
        "    if ending.reason",
    ),
    Mutant(
        "take a pod of the same name for the holder",
        "core/pods.py",
        "    if pod.metadata.uid != ref.uid:\n",
        "    if pod.metadata.name != ref.name:\n",
    ),
    Mutant(
        "take a finished Job for evidence although the node is unreachable",
        "core/pods.py",
        '        return Fate(doubt=("NodeUnreachable", lost))\n',
        "        pass\n",
    ),
    Mutant(
        "delete a Lease that leader elections are pointed at",
        "core/leases.py",
        'return lease.metadata.annotations.get(names.KEEP_ANNOTATION) == "true"',
        "return False",
    ),
    Mutant(
        "reckon with times at the end of the calendar",
        "admission/facts.py",
        "return utc if _FIRST_YEAR < utc.year < datetime.MAXYEAR else None",
        "return utc",
    ),
    Mutant(
        "take the stamp that was copied from another object for the object's own",
        "admission/decide_fence.py",
        'key.endswith(names.STAMP_SUFFIX) and text.split("\\n", 1)[0] == uid',
        "key.endswith(names.STAMP_SUFFIX)",
    ),
    Mutant(
        "believe the client that the object is being deleted",
        "admission/differences.py",
        'metadata_of(review.old).get("deletionTimestamp")',
        'metadata_of(review.new or review.old).get("deletionTimestamp")',
    ),
    Mutant(
        "let one more hold than there is room for",
        "core/situation.py",
        "return len(holders) < self.observation.capacity and",
        "return len(holders) <= self.observation.capacity and",
    ),
    Mutant(
        "let a reader in beside a writer",
        "core/situation.py",
        "        if any(holder.exclusive for holder in holders):\n            return False\n",
        "",
    ),
    Mutant(
        "let a writer hold before it has every slot",
        "core/situation.py",
        "return not holders and not lacking",
        "return not holders",
    ),
    Mutant(
        "let readers overtake a writer that waits",
        "core/granting.py",
        "        if slots or queue.waits_at_all(lock):\n            return\n",
        "        if slots:\n            return\n",
    ),
    Mutant(
        "pass a quarantined asset on",
        "core/decide.py",
        "    withholding.withhold,\n",
        "",
    ),
    Mutant(
        "count the longest hold from the last renewal",
        "core/asset_status.py",
        "return min(since, recorded.acquire_time) if recorded and recorded.acquire_time else since",
        "return since",
    ),
    Mutant(
        "take over from those who do not hold",
        "core/situation.py",
        " and not self.takes_nothing(lock)",
        "",
    ),
    Mutant(
        "pass a revoked lock on at once",
        "core/withholding.py",
        "frozenset({LockState.EXPIRED, LockState.REVOKED})",
        "frozenset({LockState.EXPIRED})",
    ),
    Mutant(
        "revoke who only collects slots",
        "core/revoking.py",
        " and not _only_collects(each, observation.capacity)",
        "",
    ),
    Mutant(
        "take a pod that has failed for one that is through",
        "core/pods.py",
        'pod.status.phase == "Failed")',
        "False)",
    ),
    Mutant(
        "take an AssetLock that is not known for one that was deleted",
        "controller/cache.py",
        "return uid in self._locks_deleted",
        "return True",
    ),
    Mutant(
        "grant by merge patch",
        "controller/writing.py",
        '                self._put(key, "Lease", await self._api.replace(LEASES, namespace, lease, body))\n',
        '                body["metadata"].pop("resourceVersion")\n'
        '                self._put(key, "Lease", await self._api.merge_patch(LEASES, namespace, lease, body))\n',
    ),
    Mutant(
        "trust the client's renewTime",
        "admission/decide_leases.py",
        'format_micro_time(terms.now) if owns(review) else old.get("renewTime")',
        'mapping(review.new.get("spec")).get("renewTime")',
    ),
    Mutant(
        "trust the renewTime of who takes the Lease",
        "admission/decide_leases.py",
        '        "acquireTime": format_micro_time(terms.now),\n'
        '        "renewTime": format_micro_time(terms.now),\n',
        '        "acquireTime": format_micro_time(terms.now),\n',
    ),
    Mutant(
        "take the name from the request alone",
        "admission/review.py",
        'return str(metadata_of(self.old or self.new).get("name") or self.requested)',
        "return self.requested",
    ),
    Mutant(
        "let the holder change the stamp, as far as the webhook goes",
        "admission/decide_fence.py",
        "    after = annotations_of(review.new)\n    wanted",
        "    if claims and holds(review, claims):\n        return Admitted()\n"
        "    after = annotations_of(review.new)\n    wanted",
    ),
)
