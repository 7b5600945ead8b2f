"""What came of a run, in words and numbers."""

from __future__ import annotations

from collections import Counter, defaultdict

from tests.chaos.play import Outcome

_SECOND = 1_000_000_000


def table(outcome: Outcome) -> str:
    """The run as Markdown."""
    writes = Counter(one.result for one in outcome.operations if one.kind == "write")
    reads = sum(one.kind == "read" for one in outcome.operations)
    seconds = (outcome.ended - outcome.began) / _SECOND
    audit = outcome.audit
    linearizable = ", ".join(
        f"{v['asset']}: {v['result']} ({v['operations']} operations of {v['clients']} clients)"
        for v in outcome.verdicts
    )
    told = sum(grant.told is not None for grant in outcome.grants)
    lines = [
        "| what | seen |",
        "| --- | --- |",
        f"| length | {seconds:.0f} s, {len(outcome.faults)} troubles |",
        f"| grants | {told} that a client was told of, {audit.grants} in all |",
        f"| writes | {writes['ok']} admitted, {writes['refused']} refused, {writes['']} whose answer was lost |",
        f"| reads | {reads} |",
        f"| Porcupine | {linearizable} |",
        f"| etcd's history | {audit.revisions} revisions; content changed {audit.by_holders} times by holders, "
        f"{audit.while_free} times while nobody held, {len(audit.broken)} times against the promise |",
        f"| complaints | {len(outcome.complaints)} |",
        "",
        *_troubles(outcome),
    ]
    return "\n".join(lines)


def _troubles(outcome: Outcome) -> list[str]:
    by_name: defaultdict[str, list[float]] = defaultdict(list)
    for fault in outcome.faults:
        by_name[fault.name].append((fault.ended - fault.began) / _SECOND)
    rows = [f"| {name} | {len(long)} | {sum(long):.0f} s |" for name, long in sorted(by_name.items())]
    return ["| trouble | times | in all |", "| --- | --- | --- |", *rows]
