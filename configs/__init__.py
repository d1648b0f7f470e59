"""The shipped configuration, importable as ``ddplint.configs`` (``pkg://ddplint.configs`` in a Hydra search path)."""
