"""Files and kernel parameters that a tuning may set."""

GRUB = "/etc/default/grub.d/90-dl3.cfg"
SYSCTL = "/etc/sysctl.d/90-dl3.conf"
TMPFILES = "/etc/tmpfiles.d/90-dl3.conf"
MODULES = "/etc/modules-load.d/90-dl3.conf"
UNMANAGED = "/etc/NetworkManager/conf.d/90-dl3.conf"
DRIVERS = "/etc/driverctl.d/pci-"  # driverctl looks for BUS-ADDRESS: one file per network card
OWN_FILES = (GRUB, SYSCTL, TMPFILES, MODULES, UNMANAGED)

PARAMETERS = ("isolcpus", "nohz_full", "rcu_nocbs", "irqaffinity", "intel_iommu", "iommu", "hugepagesz", "hugepages")
