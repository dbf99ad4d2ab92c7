// What can be checked of files and folders before DPDK starts, because EAL ends the process or
// mumbles. Control thread.
#pragma once

#include "port/port.h"

// Plugins readable and acceptable to EAL, PCI devices on the bus, Linux interfaces and folders of
// sockets there. -errno with `error` set.
int check_files(const struct port_table_settings *settings, struct error *error);
// No argument of EAL that ends the process or makes it another kind of one. -errno with a
// error.
int check_eal_args(const struct port_table_settings *settings, struct error *error);

// Whether another program serves a socket that a device is to make. Not for files that are only
// looked at: the program that serves it may be the one that they are for.
int check_served(const struct port_table_settings *settings, struct error *error);
