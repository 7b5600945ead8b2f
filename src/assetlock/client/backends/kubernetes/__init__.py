"""Locks in Kubernetes, with nothing but the standard library, from a kubeconfig or inside a pod."""

from assetlock.client.backends.kubernetes.backend import KubernetesBackend

__all__ = ["KubernetesBackend"]
