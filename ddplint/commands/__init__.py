"""Commands beside the Hydra run: ``ddplint rules``, ``ddplint explain RULE``, ``ddplint explain-error FILE``.

Each takes the rest of the command line and returns the exit status; none imports torch or hydra.
"""
