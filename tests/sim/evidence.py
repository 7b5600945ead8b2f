"""Whether the pod that a lock is bound to can hold it no more, by what the server has of pods and Jobs."""

from tests.sim.store import Json, Key, Store


def has_lost_its_pod(store: Store, lock: Json) -> bool:
    """Whether the holder's pod is gone, is through, or belongs to a Job that is."""
    holder = lock["spec"]["holder"]
    if "podUID" not in holder:
        return False
    pod = store.get(Key("", "pods", lock["metadata"]["namespace"], holder["podName"]))
    is_there = pod is not None and pod.obj["metadata"]["uid"] == holder["podUID"]
    if not is_there or pod is None or pod.obj["status"]["phase"] in ("Succeeded", "Failed"):
        return True
    return _has_finished_job(store, pod.obj)


def _has_finished_job(store: Store, pod: Json) -> bool:
    """A finished Job is evidence, unless nobody hears from the pod's node."""
    conditions = [condition["status"] for condition in pod["status"]["conditions"]]
    owners = pod["metadata"].get("ownerReferences", ())
    jobs = (store.get(Key("batch", "jobs", pod["metadata"]["namespace"], o["name"])) for o in owners)
    return "Unknown" not in conditions and any(
        condition["type"] == "Complete"
        for job in jobs
        if job is not None
        for condition in job.obj.get("status", {}).get("conditions", ())
    )
