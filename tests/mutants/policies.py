"""The mutants of what the API server enforces by itself: each rule of each policy left out, and subtler ones.

The tests that find them need a real API server, and each policy has its own.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import yaml

from tests.mutants.mutant import Mutant

_FOLDER = pathlib.Path(__file__).parents[2] / "manifests"
_ALONE = "tests/cluster/test_policy.py"
_GUARDED = "tests/cluster/test_guarded.py"
JUDGES = {
    "policy-assetlocks.yaml": (_ALONE, "tests/cluster/test_rights.py", "tests/cluster/test_care.py"),
    "policy-assets.yaml": (_ALONE, "tests/cluster/test_rights_on_targets.py"),
    "policy-leases.yaml": (_ALONE, "tests/cluster/test_leases.py"),
    "policy-namespaces.yaml": (_GUARDED,),
    "policy-subresources.yaml": (_ALONE, _GUARDED),
    "policy-targets.yaml": (
        _ALONE,
        "tests/cluster/test_care.py",
        "tests/cluster/matrix/test_webhook_down.py",
    ),
    "policy-windows.yaml": ("tests/cluster/test_rights.py", "tests/cluster/test_maintenance.py"),
}
"""Who finds the mutants of each policy: the policies alone first, then with the operator beside them."""


_ABOUT = {
    "policy-assetlocks": {
        "the status of an AssetLock": f"{_ALONE}::test_status_is_the_operators",
        "control characters": f"{_ALONE}::test_a_username_that_fits_on_no_line_locks_nothing",
        "locking needs the verb": f"{_ALONE}::test_locking_needs_the_verb_lock",
        "ending others' locks": "tests/cluster/test_rights.py::"
        "test_who_may_not_end_locks_may_not_have_maintenance_end_them",
        "moves it to another one": "tests/adversary/test_credentials.py::"
        "test_only_the_present_credential_moves_the_lock_to_the_next_one",
        "spec.holder must be": f"{_ALONE}::test_an_assetlock_names_who_creates_it",
        "taking over somebody's": "tests/cluster/test_care.py::test_a_lock_is_taken_over_by_who_may_delegate",
        "only its holder": f"{_ALONE}::test_a_lock_is_ended_by_its_holder_or_with_the_verb_unlock",
    },
    "policy-assets": {
        "the asset is locked": f"{_ALONE}::test_a_locked_asset_is_its_holders",
        "the status of an Asset": f"{_ALONE}::test_status_is_the_operators",
        "targets-set-by": f"{_ALONE}::test_only_oneself_is_named_as_who_set_the_targets_of_an_asset",
        "spec.exempt": f"{_ALONE}::test_exempting_others_needs_the_verb_maintain",
    },
    "policy-leases": {
        "only its owner": f"{_ALONE}::test_a_hand_made_lease_is_its_owners",
        "the label assetlock.dev/asset": f"{_ALONE}::test_what_makes_a_lease_a_lock_is_not_its_owners_to_change",
        "is named after it": f"{_ALONE}::test_a_lease_that_locks_is_named_after_its_asset",
        "leaseDurationSeconds": f"{_ALONE}::test_an_absurd_lease_duration_is_refused",
        "control characters": f"{_ALONE}::test_a_username_that_fits_on_no_line_locks_nothing",
        "can't be taken": f"{_ALONE}::test_a_lease_that_is_being_deleted_is_not_taken",
        "assetlock.dev/owner": f"{_ALONE}::test_a_hand_made_lease_is_its_owners",
        "assetlock.dev/token": f"{_ALONE}::test_what_makes_a_lease_a_lock_is_not_its_owners_to_change",
        "assetlock.dev/acquisition": f"{_ALONE}::test_what_makes_a_lease_a_lock_is_not_its_owners_to_change",
        "assetlock.dev/revoked-by": f"{_ALONE}::test_what_makes_a_lease_a_lock_is_not_its_owners_to_change",
    },
    "policy-namespaces": {
        "*.guard.assetlock.dev/targets of a namespace": "tests/adversary/test_planted.py::"
        "test_nobody_plants_what_closes_a_namespace",
        "something in the namespace": f"{_GUARDED}::"
        "test_a_namespace_is_not_deleted_over_locks_and_all_of_them_are_named",
        "the label and annotations": f"{_GUARDED}::"
        "test_what_the_operator_writes_on_a_namespace_is_put_back_and_by_the_policy_refused",
        "an asset in the namespace": f"{_GUARDED}::"
        "test_a_namespace_with_a_lock_in_it_is_not_deleted_while_all_of_ours_is_down",
    },
    "policy-subresources": {
        "a Binding carries": "tests/adversary/test_subresources.py::"
        "test_a_binding_brings_nothing_of_ours_onto_the_pod",
        "the object is locked": f"{_GUARDED}::test_by_the_policy_alone_each_of_them_is_refused_and_the_holder_works",
    },
    "policy-targets": {
        "the label and annotations": f"{_ALONE}::test_stamps_are_the_operators_also_against_the_holder",
    },
    "policy-windows": {
        "the status": "tests/cluster/test_rights.py::test_nobody_writes_the_status_of_a_window",
        "whenHeld Revoke": "tests/cluster/test_rights.py::"
        "test_who_may_not_end_locks_may_not_have_maintenance_end_them",
    },
}
"""Part of a rule's message, and the test that is about this very rule."""


def _mutant(name: str, policy: str, old: str, new: str, first: str = "") -> Mutant:
    return Mutant(name, f"manifests/{policy}", old, new, JUDGES[policy], first)


def _about(policy: str, message: str) -> str:
    return next((test for part, test in _ABOUT[policy].items() if part in message), "")


def _without_a_rule(policy: str) -> Iterator[Mutant]:
    """One for each validation, which then admits everything."""
    text = (_FOLDER / policy).read_text(encoding="utf-8")
    for document in yaml.compose_all(text):
        validations = _at(_at(document, "spec"), "validations")
        for rule in validations.value if validations else ():
            parts = {key.value: value for key, value in rule.value}
            expression = parts["expression"]
            old = text[rule.start_mark.index : expression.end_mark.index].rstrip()
            new = f'{text[rule.start_mark.index : expression.start_mark.index]}"true"'
            yield _mutant(
                f"{policy.removesuffix('.yaml')} without: {parts['message'].value}", policy, old, new
            )


def _at(node: yaml.Node | None, key: str) -> yaml.Node | None:
    pairs = node.value if isinstance(node, yaml.MappingNode) else ()
    return next((value for name, value in pairs if name.value == key), None)


MUTANTS = (
    *(mutant for policy in JUDGES for mutant in _without_a_rule(policy)),
    _mutant(
        "let the holder change the stamp, as far as the policy goes",
        "policy-targets.yaml",
        "        request.operation == 'DELETE'\n        || (variables.claims.all(",
        "        request.operation == 'DELETE' || variables.holds\n        || (variables.claims.all(",
        f"{_ALONE}::test_stamps_are_the_operators_also_against_the_holder",
    ),
    _mutant(
        "take the name from request.name",
        "policy-targets.yaml",
        "request.kind.kind + ' ' + oldObject.metadata.name",
        "request.kind.kind + ' ' + request.name",
        f"{_ALONE}::test_who_stands_against_the_deletion_of_a_whole_collection_is_named",
    ),
    _mutant(
        "let one of several claiming assets admit the write",
        "policy-targets.yaml",
        "variables.claims.all(key, variables.before[key].split('\\n').exists(line,",
        "variables.claims.size() == 0\n"
        "        || variables.claims.exists(key, variables.before[key].split('\\n').exists(line,",
        f"{_ALONE}::test_every_claiming_asset_must_name_the_writer",
    ),
    _mutant(
        "let those delete who may only update",
        "policy-targets.yaml",
        "\n          && (request.operation == 'UPDATE' || !line.startsWith('0 '))))",
        "))",
        f"{_ALONE}::test_who_is_exempt_updates_but_does_not_delete",
    ),
    _mutant(
        "take the end of a name for the whole",
        "policy-targets.yaml",
        "line.substring(line.indexOf(' ') + 1) in variables.identities",
        "variables.identities.exists(who, line.endsWith(who.substring(2)))",
        f"{_ALONE}::test_a_part_of_a_name_is_not_the_holder",
    ),
    _mutant(
        "take a copied stamp for the object's own, as far as the policy goes",
        "policy-targets.yaml",
        "variables.before.filter(key, key.endsWith(variables.suffix)\n"
        "            && variables.before[key].split('\\n', 2)[0] == oldObject.metadata.uid\n",
        "variables.before.filter(key, key.endsWith(variables.suffix)\n",
        f"{_ALONE}::test_a_copied_stamp_fences_nothing",
    ),
    _mutant(
        "heed a stamp that is known to have ended, as far as the policy goes",
        "policy-targets.yaml",
        "[?key.replace(variables.suffix, variables.endedSuffix)].orValue('')\n"
        "              != variables.before[key])",
        "[?key.replace(variables.suffix, variables.endedSuffix)].orValue('') != '')",
        "tests/adversary/test_stamps_that_stay.py::test_the_policy_alone_knows_it_too",
    ),
    _mutant(
        "take every pod of an account for the holder, as far as the policy goes",
        "policy-targets.yaml",
        "line.substring(line.indexOf(' ') + 1) in variables.identities",
        "line.split(' ', 3).size() == 3 && ('- ' + line.split(' ', 3)[2]) in variables.identities",
        f"{_ALONE}::test_a_pod_bound_holder_is_that_pod_alone",
    ),
    _mutant(
        "leave the metadata open through the status",
        "policy-targets.yaml",
        "request.?subResource.orValue('') == 'status'\n"
        "        && !variables.metadataChanges.exists(key,\n"
        "          key in ['labels', 'annotations', 'finalizers', 'ownerReferences'])",
        "request.?subResource.orValue('') == 'status'",
        f"{_ALONE}::test_status_is_open_but_not_for_metadata",
    ),
    _mutant(
        "take a change of metadata for none",
        "policy-targets.yaml",
        "variables.changes.size() == 0 && variables.metadataChanges.size() == 0",
        "variables.changes.size() == 0",
        f"{_ALONE}::test_no_verb_lets_a_cluster_admin_through",
    ),
    _mutant(
        "let anybody change what is being deleted",
        "policy-targets.yaml",
        "(variables.changes.all(key, key == 'status'\n",
        "(variables.changes.all(key, true\n",
        f"{_ALONE}::test_what_is_being_deleted_may_be_finished_but_not_changed",
    ),
    _mutant(
        "exempt all that lives in kube-system",
        "policy-targets.yaml",
        "        || (request.userInfo.username == 'system:node:' + oldObject.metadata.name",
        "        || request.userInfo.username.startsWith('system:serviceaccount:kube-system:')\n"
        "        || (request.userInfo.username == 'system:node:' + oldObject.metadata.name",
        f"{_ALONE}::test_what_begins_things_by_itself_is_not_exempt",
    ),
    _mutant(
        "let the built-in controllers delete",
        "policy-targets.yaml",
        "|| (request.operation == 'UPDATE'\n"
        "          && (variables.changesNothing || variables.changesOnlyStatus\n",
        "|| variables.isController || (request.operation == 'UPDATE'\n"
        "          && (variables.changesNothing || variables.changesOnlyStatus\n",
        f"{_ALONE}::test_controllers_may_update_but_not_delete",
    ),
    _mutant(
        "look at no status",
        "policy-targets.yaml",
        'resources: ["*/*"]\n        scope: "*"\n    exclude',
        'resources: ["*"]\n        scope: "*"\n    exclude',
        f"{_ALONE}::test_status_is_open_but_not_for_metadata",
    ),
    _mutant(
        "fence cluster-admins out of emergencies",
        "policy-targets.yaml",
        "expression: \"!('assetlock:break-glass' in request.userInfo.?groups.orValue([]))\"",
        'expression: "true"',
        f"{_ALONE}::test_breaking_the_glass_goes_through_every_policy",
    ),
    _mutant(
        "rely on the objectSelector for /scale",
        "policy-subresources.yaml",
        "          values: [kube-system]\n    resourceRules:\n",
        "          values: [kube-system]\n    objectSelector:\n      matchLabels:\n"
        '        assetlock.dev/fenced: "true"\n    resourceRules:\n',
        f"{_GUARDED}::test_by_the_policy_alone_each_of_them_is_refused_and_the_holder_works",
    ),
    _mutant(
        "forget evictions",
        "policy-subresources.yaml",
        "        operations: [CREATE]\n        resources: [pods/eviction]\n",
        "        operations: [CREATE]\n        resources: [pods/unheard-of]\n",
        f"{_GUARDED}::test_by_the_policy_alone_each_of_them_is_refused_and_the_holder_works",
    ),
    _mutant(
        "forget exec and the like",
        "policy-subresources.yaml",
        "resources: [pods/exec, pods/attach, pods/portforward, pods/proxy]",
        "resources: [pods/unheard-of]",
        f"{_GUARDED}::test_by_the_policy_alone_each_of_them_is_refused_and_the_holder_works",
    ),
    _mutant(
        "let those evict who may only update, as far as the policy goes",
        "policy-subresources.yaml",
        "\n          && (request.subResource == 'scale' || !line.startsWith('0 '))))",
        "))",
        f"{_ALONE}::test_who_is_exempt_scales_but_does_not_evict",
    ),
    _mutant(
        "close exec where the asset leaves it open",
        "policy-subresources.yaml",
        "\n            && (request.subResource in ['scale', 'eviction'] || request.subResource in line.split(' '))))",
        "))",
    ),
    _mutant(
        "let the user of an AssetLock change its Lease",
        "policy-leases.yaml",
        "!variables.isByLock && variables.before",
        "variables.before",
        f"{_ALONE}::test_the_lease_of_an_assetlock_is_the_operators",
    ),
    _mutant(
        "let collectors change Leases at will",
        "policy-leases.yaml",
        "          || (variables.isUpdate\n"
        "            && variables.changes.all(key, key in ['finalizers', 'ownerReferences'])))",
        "          || variables.isUpdate)",
        f"{_ALONE}::test_a_collector_does_not_change_a_lease",
    ),
    _mutant(
        "let who let a lock run out end its quarantine",
        "policy-assetlocks.yaml",
        "(variables.holds && !variables.isQuarantined)",
        "variables.holds",
        "tests/cluster/test_care.py::test_a_quarantined_asset_is_freed_by_who_may_unlock_and_not_by_its_last_holder",
    ),
    _mutant(
        "take what an impersonator says for the id of a pod",
        "policy-targets.yaml",
        "          .filter(uid, uid.matches('^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$'))\n",
        "",
        f"{_ALONE}::test_what_an_impersonator_says_of_pod_and_credential_is_no_word_of_another_kind",
    ),
    _mutant(
        "take what an impersonator says for the id of a credential",
        "policy-targets.yaml",
        "          .filter(id, id.matches('^[0-9A-Za-z]+=[!-~]{1,256}$'))\n",
        "",
        f"{_ALONE}::test_what_an_impersonator_says_of_pod_and_credential_is_no_word_of_another_kind",
    ),
    _mutant(
        "let any run of the account through a lock of one credential",
        "policy-targets.yaml",
        "          .map(id, id + ' ' + request.userInfo.username)\n",
        "          .map(id, '- ' + request.userInfo.username)\n",
        f"{_ALONE}::test_a_lock_of_one_credential_is_not_the_accounts",
    ),
    _mutant(
        "let any run of the account end a lock of one credential",
        "policy-assetlocks.yaml",
        "(variables.bindTo != 'Credential'",
        "(true",
        "tests/adversary/test_credentials.py::test_the_policy_alone_tells_them_apart",
    ),
    _mutant(
        "forget subresources that carry the object",
        "policy-targets.yaml",
        'resources: ["*/*"]\n        scope: "*"\n    excludeResourceRules',
        'resources: ["*", "*/status"]\n        scope: "*"\n    excludeResourceRules',
        "tests/adversary/test_subresources.py::"
        "test_every_subresource_that_carries_the_object_is_behind_the_fence",
    ),
    _mutant(
        "let controllers give a locked object to another owner",
        "policy-targets.yaml",
        "(variables.isController && !variables.changesHands)",
        "variables.isController",
        f"{_ALONE}::test_controllers_give_the_object_to_nobody",
    ),
    _mutant(
        "look at any number of annotations",
        "policy-targets.yaml",
        "          && variables.before.size() <= 500\n",
        "",
        "tests/adversary/test_planted.py::test_tens_of_thousands_of_annotations_cost_no_more_with_our_label",
    ),
    _mutant(
        "let a locked object get so many annotations that the fence falls",
        "policy-targets.yaml",
        "        && variables.after.size() <= 500\n",
        "",
        "tests/adversary/test_planted.py::test_nobody_makes_so_many_of_what_is_locked_that_the_fence_falls",
    ),
    _mutant(
        "let a lock name any pod of the account",
        "policy-assetlocks.yaml",
        "          || variables.lock.spec.holder.podUID in variables.podUIDs)\n"
        "        && (!has(variables.lock.spec.holder.podName)",
        "          || true)\n        && (!has(variables.lock.spec.holder.podName)",
        f"{_ALONE}::test_an_assetlock_names_no_pod_that_the_token_is_not_bound_to",
    ),
)
