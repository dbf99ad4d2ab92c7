"""All labs by their names."""

from collections.abc import Mapping

from dl3.lab.kind import Kind
from dl3.lab.kvm_report import KVM_REPORT
from dl3.labs.contrail import CONTRAIL
from dl3.labs.kernel_notes import KERNEL_NOTES
from dl3.labs.laptop import LAPTOP
from dl3.labs.vswitch import VSWITCH

LABS: Mapping[str, Kind] = {kind.name: kind for kind in (KVM_REPORT, CONTRAIL, VSWITCH, KERNEL_NOTES, LAPTOP)}
SRIOV = "white-paper-sriov"
