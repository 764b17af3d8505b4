"""Pods in a user's cluster, made through the API server and observed on the node through its `Host`."""
