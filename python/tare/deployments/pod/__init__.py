"""Pods as kubelet, its CNI plugins and kube-proxy make them, piece by piece and without Kubernetes."""
