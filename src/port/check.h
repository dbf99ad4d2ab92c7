// Checks files and directories before DPDK starts, because EAL ends the process or gives poor
// messages. Control thread.
#pragma once

#include "port/port.h"

// Checks that plugins are readable and acceptable to EAL, and that PCI devices, Linux interfaces
// and the directories of sockets exist. -errno with `error` set.
int check_files(const struct port_table_settings *settings, struct error *error);
// All of this, and check_served, for the device of one port that is added at run time.
int check_added(const struct port_table_settings *settings, unsigned port, struct error *error);
// Rejects EAL arguments that end the process or change its type. -errno with `error` set.
int check_eal_args(const struct port_table_settings *settings, struct error *error);

// Rejects sockets that a device would create but another program already serves, and removes those
// that none serves. Not called by --check: that program may be an instance that already runs with
// the same file.
int check_served(const struct port_table_settings *settings, struct error *error);
