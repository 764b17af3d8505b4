"""Findings of others and of your own: `tare knowledge`, and `tare advise`, which draws on them."""
