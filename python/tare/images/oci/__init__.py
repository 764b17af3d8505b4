"""OCI images: layouts, archives and layers."""
