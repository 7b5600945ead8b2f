"""What a program locks with: `needs_lock`, `lock`, `AsyncLock` and the handles they give, whatever the backend is."""
