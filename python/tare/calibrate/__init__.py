"""Calibration: A/A studies and injected effects that test how far this machine's intervals can be trusted.

A calibration is a series of ordinary studies, run, stored and analysed as any other. It stands between `analyze`
and `report`: it uses the former, and reports quote it. See docs/guides/calibration.md.
"""
