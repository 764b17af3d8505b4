"""Pods in a user's cluster, made through its API server and looked at on the node by its `Host`."""
