"""`vm`: the image's root file system as the disk of a virtual machine."""
