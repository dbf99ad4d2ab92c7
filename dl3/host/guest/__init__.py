"""Virtual machines on isolated cores: the value, as arguments of QEMU, as XML of libvirt, and pinned over QMP."""
