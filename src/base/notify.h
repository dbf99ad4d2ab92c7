// Tells systemd (sd_notify(3)) what a service does: Type=notify-reload and WatchdogSec. Does
// nothing if no socket is given in NOTIFY_SOCKET. Control thread.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID, and removes them from the environment, so
// that other programs do not speak for this one. Call it once, at start.
void notify_open(void);
// The service is ready. / It begins to read its configuration again; notify_ready() says that it is
// done. / It stops.
void notify_ready(void);
void notify_reloading(void);
void notify_stopping(void);
// The service is alive; call it often: once in a quarter of WatchdogSec it is passed on.
void notify_alive(uint64_t now_ns);
