"""Sources to a store: plan what they change, prepare documents, write them."""

from __future__ import annotations

from quire.ingest.plan import Item, Plan
from quire.ingest.report import Report

__all__ = ["Item", "Plan", "Report"]
