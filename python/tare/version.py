"""The version of tare, which records, reports and caches carry."""

__version__ = "0.1.0"
