"""The sections of a report: `report → Section`, one function each, in the order of every format."""

from __future__ import annotations
