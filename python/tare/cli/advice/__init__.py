"""`tare knowledge`, which keeps findings of others and of your own, and `tare advise`, which draws on them."""
