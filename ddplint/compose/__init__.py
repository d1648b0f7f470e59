"""From a command line to a validated Spec: Hydra composes, we check.

``run_jobs`` composes and calls one function per job; ``parse`` turns a composed mapping into a Spec.
"""

from ddplint.compose.parse import check_root, parse, parse_judgement, parse_report

__all__ = ["check_root", "parse", "parse_judgement", "parse_report"]
