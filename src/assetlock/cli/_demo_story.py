"""The demo's story, act by act. Each shows one promise, and fails if it does not see it kept."""

from __future__ import annotations

import json
import re
import time

from assetlock.cli._demo_stage import Shown, Stage
from assetlock.cli.stack import Stack

ADMIN, PIPELINE, ALICE, BOB = "admin", "pipeline", "alice", "bob"
PIPELINE_USER = "system:serviceaccount:shop:pipeline"
ON_THE_SPOT = 3.0
"""Seconds within which a waiter must have the lock after a release, kubectl's own start included."""


def tell(stage: Stage, stack: Stack) -> None:
    """Play all acts."""
    assets(stage, stack)
    taking(stage)
    refusing(stage)
    queueing(stage)
    leasing(stage)
    crashing(stage, stack)
    expiring(stage)


def assets(stage: Stage, stack: Stack) -> None:
    """An asset is a name for objects that go together."""
    cluster = stack.cluster
    stage.enter(ADMIN, cluster.exports())
    for person in (ALICE, BOB):
        stage.enter(person, cluster.exports(cluster.kubeconfig_for(person)))
    stage.begin("Things to lock: assets, each with the objects it stands for")
    stage.run(ADMIN, "kubectl apply -f shop.yaml", says=["asset.assetlock.dev/web created"])
    stage.say("a pipeline's ServiceAccount, alice and bob may all change the shop, and lock it")
    stage.run(ADMIN, "kubectl apply -f people.yaml", says=["rolebinding.rbac.authorization.k8s.io"])
    stage.enter(PIPELINE, cluster.exports(cluster.kubeconfig_for_service_account("shop", PIPELINE)))
    stage.run(ADMIN, "kubectl -n shop wait --for=condition=Ready assets --all --timeout=20s")
    stage.run(ADMIN, "kubectl -n shop get assets", says=["Unlocked"], lacks=["Locked "])


def taking(stage: Stage) -> None:
    """A lock is an object: create it, wait for it, work."""
    stage.begin("The pipeline takes the lock, and works")
    stage.run(PIPELINE, "cat release-42.yaml")
    stage.run(PIPELINE, "kubectl create -f release-42.yaml", says=["created"])
    stage.run(PIPELINE, _wait("release-42", "Acquired"), says=["condition met"])
    stage.run(PIPELINE, "kubectl -n shop set image deployment/web web=nginx:1.29", says=["image updated"])
    stage.run(PIPELINE, "kubectl -n shop get assets,assetlocks", says=["Locked", PIPELINE_USER, "Held"])
    stage.saw("the holder works", "its ServiceAccount changed the Deployment")


def refusing(stage: Stage) -> None:
    """What is refused says who holds it, since when, until when, and why."""
    stage.begin("Everybody else is refused: HTTP 423, with who, since when and until when")
    refusal = ["(Locked)", PIPELINE_USER, "since", "until", "rolling out version 42"]
    stage.run(ALICE, _banner("SALE"), fails=True, says=refusal)
    stage.run(ALICE, "kubectl -n shop delete deployment web", fails=True, says=refusal)
    status = f"""{_banner("SALE")} -v=6 2>&1 | grep -o 'status="[^"]*"' | tail -1"""
    stage.run(ALICE, status, says=['status="423 '])
    stage.say("not even the administrator of the cluster gets past it by accident")
    stage.run(ADMIN, "kubectl -n shop label configmap web-settings a=b", fails=True, says=refusal)
    stage.say("what is not locked is not slowed down, and not in anybody's way")
    free = (
        """kubectl -n shop patch configmap db-settings --type merge -p '{"data":{"max_connections":"200"}}'"""
    )
    stage.run(ALICE, free, says=["patched"])
    stage.saw("strangers are refused", "423 Locked for a patch, a delete, and the administrator")


def queueing(stage: Stage) -> None:
    """A lock that waits is granted the moment it can be."""
    stage.begin("alice queues, and has the lock the moment it is released")
    stage.run(ALICE, "cat hotfix.yaml")
    stage.run(ALICE, "kubectl create -f hotfix.yaml", says=["created"])
    stage.run(ALICE, "kubectl -n shop wait --for=jsonpath={.status.queuePosition}=1 alk/hotfix --timeout=10s")
    stage.run(ALICE, "kubectl -n shop get assetlocks", says=["Held", "Pending"])
    with stage.meanwhile(ALICE, _wait("hotfix", "Acquired"), says=["condition met"]):
        stage.run(PIPELINE, "kubectl -n shop delete assetlock release-42", says=["deleted"])
        released = time.monotonic()
    seconds = time.monotonic() - released
    if seconds > ON_THE_SPOT:
        raise stage.fail(f"the hand-over took {seconds:.1f} s")
    stage.say(f"granted at most {seconds:.2f} s after the release")
    stage.run(ALICE, _banner("SALE"), says=["patched"])
    stage.say("and now the pipeline is the stranger")
    again = "kubectl -n shop set image deployment/web web=nginx:1.30"
    stage.run(PIPELINE, again, fails=True, says=["is locked", "alice", "wrong price on the front page"])
    stage.saw("waiters are served in order", f"{seconds:.2f} s after the release, seen through kubectl")


def leasing(stage: Stage) -> None:
    """A Lease made by hand is a lock of the same kind: 201 is yes, 409 is no."""
    stage.begin("A Job needs no custom resource: it creates a Lease")
    stage.run(PIPELINE, "cat lease.yaml")
    stage.run(PIPELINE, "kubectl create -f lease.yaml", says=["created"])
    stage.say("the announcement of its fencing token says that the fence is up")
    announced = r"jsonpath='{.metadata.annotations.assetlock\.dev/token}'"
    stage.run(
        PIPELINE,
        f"kubectl -n shop wait --for={announced} lease/asset.db --timeout=10s",
        says=["condition met"],
    )
    stage.run(BOB, "kubectl create -f lease.yaml", fails=True, says=["(AlreadyExists)"])
    settings = (
        """kubectl -n shop patch configmap db-settings --type merge -p '{"data":{"max_connections":"9"}}'"""
    )
    stage.run(BOB, settings, fails=True, says=["(Locked)", PIPELINE_USER])
    stage.run(BOB, "kubectl -n shop delete lease asset.db", fails=True, says=["(Locked)"])
    stage.run(PIPELINE, "kubectl -n shop delete lease asset.db", says=["deleted"])
    stage.say("the fence comes down a moment after the lock has ended")
    fenced = "kubectl -n shop get configmaps -l assetlock.dev/fenced=true -o name"
    stage.run(ADMIN, f"while {fenced} | grep db-settings; do sleep 0.1; done")
    stage.saw("a plain Lease is a lock", "the second create got 409 AlreadyExists")


def crashing(stage: Stage, stack: Stack) -> None:
    """The wall is in the API server, and needs no process of ours."""
    stage.begin("Both of the operator's processes are killed; the lock holds")
    pids = " ".join(str(process.pid) for process in stack.running.values())
    stage.run(ADMIN, f"ps -o pid,args -p {pids.replace(' ', ',')} | cut -c 1-110", says=["operator"])
    stage.run(ADMIN, f"kill -9 {pids}")
    stage.run(
        BOB,
        _banner("bob was here"),
        fails=True,
        says=["(Forbidden)", "Locked: ConfigMap web-settings", "alice"],
    )
    stage.say("while its holder works on")
    stage.run(ALICE, _banner("closing-down sale"), says=["patched"])
    stage.say("and what nobody locked is open, as ever")
    stage.run(BOB, "kubectl -n shop label configmap db-settings seen-by=bob", says=["labeled"])
    stage.say("both processes are started again, and know everything: it is all in the API server")
    begun = time.monotonic()
    stack.restart()
    stage.say(f"serving again after {time.monotonic() - begun:.1f} s")
    stage.run(BOB, _banner("bob was here"), fails=True, says=["(Locked)", "alice"])
    stage.saw(
        "no process is needed to refuse", "403 Forbidden with both killed, 423 again after their return"
    )


def expiring(stage: Stage) -> None:
    """A lock that nobody releases ends by itself, and the next one gets it with a higher token."""
    stage.begin("A lock that is forgotten runs out, and the next one gets it")
    stage.run(ALICE, "kubectl -n shop delete assetlock hotfix", says=["deleted"])
    stage.run(BOB, "kubectl create -f forgotten.yaml", says=["created"])
    before = _token(stage.run(BOB, f"{_wait('forgotten', 'Acquired')} && {_show_token('forgotten')}"))
    stage.run(PIPELINE, "kubectl create -f release-43.yaml", says=["created"])
    waited = stage.run(PIPELINE, _wait("release-43", "Acquired", seconds=20), says=["condition met"])
    stage.say(f"waited {waited.seconds:.1f} s")
    after = _token(stage.run(PIPELINE, _show_token("release-43")))
    stage.run(PIPELINE, "kubectl -n shop get assetlocks", says=["Expired", "Held"])
    if after <= before:
        raise stage.fail(f"the fencing token went from {before} to {after}")
    stage.run(BOB, _banner("bob was here"), fails=True, says=["(Locked)", PIPELINE_USER])
    stage.run(ADMIN, "kubectl -n shop events --for asset/web")
    stage.saw("a forgotten lock ends", f"Expired; the fencing token went from {before} to {after}")


def _banner(text: str) -> str:
    patch = json.dumps({"data": {"banner": text}})
    return f"kubectl -n shop patch configmap web-settings --type merge -p '{patch}'"


def _wait(lock: str, condition: str, *, seconds: int = 10) -> str:
    return f"kubectl -n shop wait --for=condition={condition} alk/{lock} --timeout={seconds}s"


def _show_token(lock: str) -> str:
    return f"kubectl -n shop get alk {lock} -o jsonpath='token {{.status.fencingToken}}'"


def _token(shown: Shown) -> int:
    found = re.search(r"token (\d+)", shown.output)
    return int(found[1]) if found else 0
