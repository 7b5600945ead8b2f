"""The API server: a thin typed client, watches, events and access reviews.

Nothing above this layer opens a connection to the API server, and nothing here decides about locks.
Objects are plain dictionaries as the server sent them; turning them into models is the caller's business.
"""
