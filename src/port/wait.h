// How an idle worker waits for frames: woken by devices that support it, otherwise by time.
#pragma once

#include "base/error.h"
#include "port/port_fast.h"

#include <stdbool.h>
#include <stdint.h>

struct port_table;

// wait.c: creates the wakeup sources of each worker that may sleep; workers[] must be filled.
// -errno with `error` set.
int wait_open(struct port_table *ports, struct error *error);
// Adds the interrupts of devices that have started.
void wait_add_interrupts(struct port_table *ports);
// Prepares those of a port that is being added; to be called before its device is started.
void wait_add(struct port_table *ports, unsigned port);
// Frees those of a port that was removed, after a grace period.
void wait_remove(struct port_table *ports, unsigned port);
// Takes away the sources of a port whose device has vanished.
void wait_leave(struct port_table *ports, unsigned port);
// Adds those of a device that has returned.
void wait_return(struct port_table *ports, unsigned port);
// Frees everything. Control thread.
void wait_close(struct port_table *ports);

// memif.c: a ring that a memif port receives on, found by inspecting the messages between the
// driver and its peer: its address, and the eventfd with which the peer signals new frames.
// `device` is the port's text; events go to `epoll`. NULL: no memory. Owner: caller,
// memif_ring_free. Control thread.
struct memif_ring;
struct memif_ring *memif_ring_make(const char *device, uint16_t queue, int epoll);
void memif_ring_free(struct memif_ring *ring);
// False: frames may arrive without an event.
bool memif_ring_is_reported(struct memif_ring *ring);
// Enables events from the peer; false: frames have arrived since the last call but one, and events
// stay disabled.
bool memif_ring_ask(struct memif_ring *ring);
// Disables events. Worker.
void memif_ring_ask_no_more(struct memif_ring *ring);

// below.c: the socket that queue `queue` of a net_af_packet device on `netdev` reads; -1: none.
int below_socket(const char *netdev, unsigned queue);
