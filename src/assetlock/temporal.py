"""Locks for Temporal activities (extra ``temporal``)::

@activity.defn
@needs_lock("vm-{vm_id}", max_locks=2)
async def patch(vm_id: str) -> None: ...

Worker(client, task_queue="vms", activities=[patch], interceptors=[LockInterceptor()])
"""

from assetlock.client.temporal.interceptor import LockInterceptor

__all__ = ["LockInterceptor"]
