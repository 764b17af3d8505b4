"""`vm-container`: a container in a virtual machine."""
