"""A leader election as the official Python client has it: nothing in it knows of assetlock.

Says on standard output when it leads and when it does not any more. It knows no way to give the Lease back.
"""

from __future__ import annotations

import sys

from kubernetes import config
from kubernetes.leaderelection.electionconfig import Config
from kubernetes.leaderelection.leaderelection import LeaderElection
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock


def main(kubeconfig: str, namespace: str, name: str, identity: str) -> None:
    config.load_kube_config(kubeconfig)
    LeaderElection(
        Config(
            LeaseLock(name, namespace, identity),
            lease_duration=6,
            renew_deadline=4,
            retry_period=1,
            onstarted_leading=lambda: print("leading", flush=True),
            onstopped_leading=lambda: print("stopped", flush=True),
        )
    ).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
