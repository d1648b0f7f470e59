"""What the pictures of a report show, from the evidence: data flow by module, the loss-term ledger, gradients by depth."""

from ddplint.evidence import Evidence
from ddplint.pictures.flow import Drawer
from ddplint.pictures.parts import Parts
from ddplint.pictures.tables import depths, ledger, term_flow
from ddplint.report import Report

__all__ = ["add_pictures"]


def add_pictures(report: Report, evidence: Evidence) -> None:
    """Fill ``graph``, ``ledger``, ``depths``, ``term_flows`` and ``place`` of a report whose findings and usage are there."""
    models = [Parts(model) for model in evidence.models]
    drawer = Drawer(report, [seen.name for seen in evidence.scenarios])
    for seen in evidence.scenarios:
        if seen.model < len(models):
            drawer.add(models[seen.model], seen)
            report.ledger += ledger(models[seen.model], seen)
            report.term_flows += filter(None, [term_flow(models[seen.model], seen)])
    report.depths = depths(models[0], evidence.scenarios) if models else []
    root = next((module for model in evidence.models for module in model.modules if not module.name), None)
    report.place = report.place or (root.place if root else None)
