"""See extender/__init__.py for the map."""
