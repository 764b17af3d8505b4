"""Calibration: A/A studies and injected effects that prove what this machine and tare's intervals are worth.

A calibration is a series of ordinary studies, run, stored and analysed as any other. It stands between `analyze`
and `report`: it uses the former, and reports quote it. See docs/concepts/calibration.md.
"""
