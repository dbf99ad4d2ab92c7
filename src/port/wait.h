// How a worker that has no frames waits for some: devices that can wake it do, or time does.
#pragma once

#include "base/error.h"
#include "port/port_fast.h"

#include <stdbool.h>
#include <stdint.h>

struct port_table;

// wait.c: what each worker that may sleep waits for; workers[] are filled. -errno with `error` set.
// / Takes in the interrupts of devices that have started. / Frees all of it. Control thread.
int wait_open(struct port_table *room, struct error *error);
void wait_add_interrupts(struct port_table *room);
void wait_close(struct port_table *room);

// memif.c: a ring that a memif port receives on, found by listening to the driver's messages to its
// peer: where it lies, and the eventfd by which the peer tells of frames. `device` is the port's
// text; events go to `epoll`. NULL: no memory. Owner: caller, memif_ring_free. Control thread.
struct memif_ring;
struct memif_ring *memif_ring_make(const char *device, uint16_t queue, int epoll);
void memif_ring_free(struct memif_ring *ring);
// False: frames may come and nobody says so. / Asks the peer to tell of frames; false: some have
// come since the last call but one, and it is not asked. / Asks it no more. Worker.
bool memif_ring_is_told(struct memif_ring *ring);
bool memif_ring_ask(struct memif_ring *ring);
void memif_ring_ask_no_more(struct memif_ring *ring);

// below.c: the socket that queue `queue` of a net_af_packet device on `iface` reads; -1: none.
int below_socket(const char *netdev, unsigned queue);
