"""A worker in a process of its own: ``python -m tests.client.temporal.worker ADDRESS QUEUE``; says when it polls."""

from __future__ import annotations

import asyncio
import concurrent.futures
import sys

from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from assetlock.temporal import LockInterceptor
from tests.client.temporal import work


async def main(address: str, queue: str) -> None:
    client = await Client.connect(address)
    worker = Worker(
        client,
        task_queue=queue,
        max_cached_workflows=0,  # the server would keep to a worker that is gone
        activities=[work.blocking_at_first, work.in_loop],
        workflows=[work.Fan],
        activity_executor=concurrent.futures.ThreadPoolExecutor(4),
        workflow_runner=UnsandboxedWorkflowRunner(),
        interceptors=[LockInterceptor()],
    )
    async with worker:
        print("polling", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
