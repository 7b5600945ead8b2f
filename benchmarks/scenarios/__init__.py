"""What is measured, a file for each part. Both sides of a ratio are taken in turn: a slow moment falls on both.

Where they can't be, because the one changes what the other is measured in, each is a multiple of a raw Lease create
of the same minute.
"""
