"""``python -m ddplint``."""

from ddplint.start import entry

if __name__ == "__main__":
    entry()
