"""The version, alone in its file: read by the build, the command line and every report."""

VERSION = "0.1.0"
