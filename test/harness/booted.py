"""A Debian below a folder, booted by its own systemd in namespaces of this machine: much faster than a guest."""

import os
import re
import subprocess
from pathlib import Path

from harness.wired import TOP

LOG = "log"  # in the root
# They would act on the whole machine, or need devices.
NOT_WANTED = (
    *("apt-daily.timer", "apt-daily-upgrade.timer", "bird.service", "getty@tty1.service", "console-getty.service"),
    *("systemd-sysctl.service", "systemd-udevd.service", "systemd-udev-trigger.service", "systemd-logind.service"),
    *("systemd-udevd-control.socket", "systemd-udevd-kernel.socket", "systemd-modules-load.service"),
    *("systemd-remount-fs.service", "proc-sys-fs-binfmt_misc.automount"),
)
UNIT = f"""[Unit]
After=multi-user.target
[Service]
Type=oneshot
TimeoutStartSec=infinity
ExecStart=/bin/sh -c '%s; echo "left with $?"'
ExecStopPost=/bin/systemctl --force --force poweroff
StandardOutput=append:/{LOG}
StandardError=append:/{LOG}
"""


def _make_cgroup() -> Path:
    """A control group, in which systemd has all others."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    top = next(Path(fields[1]) for fields in mounts if fields[2] == "cgroup2")
    made = top / f"dl3-test-{os.getpid()}"
    made.mkdir()
    return made


def _remove_cgroup(made: Path) -> None:
    """It, and those that systemd made in it."""
    for folder, _, _ in os.walk(made, topdown=False):
        Path(folder).rmdir()


def boot(root: Path, command: str, timeout_s: float) -> tuple[int, str]:
    """Boot, run a command at the end, power off; its status and what it printed. `root` is changed."""
    units = root / "etc" / "systemd" / "system"
    (units / "last.service").write_text(UNIT % command)
    (units / "multi-user.target.wants" / "last.service").symlink_to("/etc/systemd/system/last.service")
    for unit in NOT_WANTED:
        (units / unit).unlink(missing_ok=True)
        (units / unit).symlink_to("/dev/null")
    (root / LOG).touch()
    cgroup = _make_cgroup()
    namespaces = "unshare --cgroup --mount --pid --net --ipc --uts --fork --kill-child"
    script = f"echo $$ >{cgroup}/cgroup.procs; exec {namespaces} {TOP}/test/installed/boot.sh {root}"
    try:
        done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=timeout_s)
    finally:
        text = (root / LOG).read_text()
    _remove_cgroup(cgroup)
    left = re.search(r"^left with (\d+)$", text, re.MULTILINE)
    assert left, f"it did not come to its end: {done.stderr}{text[-4000:]}"
    return int(left[1]), text
