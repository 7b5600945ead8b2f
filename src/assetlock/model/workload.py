"""Pods, Jobs and Nodes, as far as they tell whether the holder of a lock still lives."""

from __future__ import annotations

from pydantic import Field

from assetlock.model.base import Model
from assetlock.model.meta import ObjectMeta


class WorkloadCondition(Model):
    """A condition of a built-in kind: only what it says, not when it began to."""

    type: str = ""
    status: str = ""


class Taint(Model):
    """What keeps pods away from a node."""

    key: str = ""


class PodSpec(Model):
    """Where a pod runs."""

    node_name: str | None = None


class PodStatus(Model):
    """What the kubelet, or in its absence the control plane, says of a pod."""

    phase: str = ""
    reason: str = ""
    conditions: list[WorkloadCondition] = Field(default_factory=list)


class Pod(Model):
    """One pod."""

    metadata: ObjectMeta
    spec: PodSpec = Field(default_factory=PodSpec)
    status: PodStatus = Field(default_factory=PodStatus)


class JobStatus(Model):
    """How far a Job is."""

    conditions: list[WorkloadCondition] = Field(default_factory=list)


class Job(Model):
    """One Job."""

    metadata: ObjectMeta
    status: JobStatus = Field(default_factory=JobStatus)


class NodeSpec(Model):
    """What a node keeps away."""

    taints: list[Taint] = Field(default_factory=list)


class NodeStatus(Model):
    """Whether a node is heard of."""

    conditions: list[WorkloadCondition] = Field(default_factory=list)


class Node(Model):
    """One node."""

    metadata: ObjectMeta
    spec: NodeSpec = Field(default_factory=NodeSpec)
    status: NodeStatus = Field(default_factory=NodeStatus)
