"""Pods as kubelet, its CNI plug-ins and kube-proxy make them, piece by piece and without Kubernetes."""
