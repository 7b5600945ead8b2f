"""The control plane's own processes, and the arguments that each is started with.

Everything listens on the loopback address only, etcd behind client certificates of an authority of its own.
"""

from __future__ import annotations

import pathlib
import socket
from dataclasses import dataclass

from assetlock.dev.binaries import Binaries

LOOPBACK = "127.0.0.1"
SERVICES = "10.0.0.0/24"


@dataclass(frozen=True, slots=True)
class Ports:
    """The ports of one try to start; another process may take one first, so a start is tried again."""

    etcd: int
    etcd_peer: int
    apiserver: int

    @classmethod
    def free(cls) -> Ports:
        """Three different ports that nobody listens on now."""
        sockets = [socket.socket() for _ in range(3)]
        try:
            for each in sockets:
                each.bind((LOOPBACK, 0))
            return cls(*(each.getsockname()[1] for each in sockets))
        finally:
            for each in sockets:
                each.close()


def etcd(binaries: Binaries, folder: pathlib.Path, ports: Ports, *, durable: bool) -> list[str]:
    """Without `durable` nothing is synced to disk: faster, and lost with the machine's power."""
    pki = folder / "pki"
    client, peer = f"https://{LOOPBACK}:{ports.etcd}", f"https://{LOOPBACK}:{ports.etcd_peer}"
    return [
        str(binaries.etcd),
        "--name=local",
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=local={peer}",
        "--client-cert-auth",
        f"--trusted-ca-file={pki / 'etcd-ca.crt'}",
        f"--cert-file={pki / 'etcd.crt'}",
        f"--key-file={pki / 'etcd.key'}",
        "--peer-client-cert-auth",
        f"--peer-trusted-ca-file={pki / 'etcd-ca.crt'}",
        f"--peer-cert-file={pki / 'etcd.crt'}",
        f"--peer-key-file={pki / 'etcd.key'}",
        "--log-level=warn",
        *(() if durable else ("--unsafe-no-fsync",)),
    ]


def apiserver(binaries: Binaries, folder: pathlib.Path, ports: Ports, *, audit: bool = False) -> list[str]:
    """RBAC, ServiceAccount admission (on by default), users by client certificate or ServiceAccount token.

    With `audit` every request is recorded in `audit.log` in the folder.
    """
    pki = folder / "pki"
    return [
        str(binaries.apiserver),
        f"--bind-address={LOOPBACK}",
        f"--advertise-address={LOOPBACK}",
        f"--secure-port={ports.apiserver}",
        "--endpoint-reconciler-type=none",
        f"--tls-cert-file={pki / 'apiserver.crt'}",
        f"--tls-private-key-file={pki / 'apiserver.key'}",
        f"--client-ca-file={pki / 'ca.crt'}",
        f"--etcd-servers=https://{LOOPBACK}:{ports.etcd}",
        f"--etcd-cafile={pki / 'etcd-ca.crt'}",
        f"--etcd-certfile={pki / 'etcd-client.crt'}",
        f"--etcd-keyfile={pki / 'etcd-client.key'}",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={pki / 'service-accounts.pub'}",
        f"--service-account-signing-key-file={pki / 'service-accounts.key'}",
        f"--service-cluster-ip-range={SERVICES}",
        f"--requestheader-client-ca-file={pki / 'front-proxy-ca.crt'}",
        "--requestheader-allowed-names=front-proxy",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={pki / 'front-proxy.crt'}",
        f"--proxy-client-key-file={pki / 'front-proxy.key'}",
        "--allow-privileged=true",
        "--profiling=false",
        *(_audited(folder) if audit else ()),
    ]


def _audited(folder: pathlib.Path) -> list[str]:
    """Who asked for what and whether it was allowed, each request once."""
    policy = folder / "audit.yaml"
    policy.write_text(
        "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n"
    )
    return [f"--audit-policy-file={policy}", f"--audit-log-path={folder / 'audit.log'}"]


def controller_manager(binaries: Binaries, folder: pathlib.Path) -> list[str]:
    """All default controllers, each as its own ServiceAccount; it serves nothing itself."""
    pki = folder / "pki"
    return [
        str(binaries.controller_manager),
        f"--kubeconfig={folder / 'controller-manager.kubeconfig'}",
        "--secure-port=0",
        "--leader-elect=false",
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={pki / 'service-accounts.key'}",
        f"--root-ca-file={pki / 'ca.crt'}",
        f"--cluster-signing-cert-file={pki / 'ca.crt'}",
        f"--cluster-signing-key-file={pki / 'ca.key'}",
        f"--service-cluster-ip-range={SERVICES}",
        "--kube-api-qps=200",
        "--kube-api-burst=400",
        "--profiling=false",
    ]
