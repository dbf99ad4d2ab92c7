// For tests of the room: ports that do nothing, TAPs in a namespace of the test's own, and the part
// of a worker. As root.
#pragma once

#include "base/bits.h"
#include "tap/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { FRAME_BYTES = 100, HIGH_RATE = 1000000 };
static const uint64_t wait_ns = 2000000000;

extern struct port_table_settings port_settings; // two: tw0, tw1
extern struct tap_settings settings;             // each test's own: keep off, high rates
extern struct port_table *ports;
extern struct tap_table *room;
extern char namespace_name[TAP_NAME_MAX];
extern uint32_t n_mbufs_free; // before there was a room

// Group and test fixtures.
int open_ports(void **state);
int close_ports(void **state);
int begin(void **state);
int end(void **state);

// A command of the shell; 0 when it succeeds.
int run(const char *format, ...) __attribute__((format(printf, 1, 2)));
uint32_t count_free(void);
void open_room(void);
void close_room(void);
// The TAP interfaces get the ports' carrier.
void bring_carrier(void);
struct netdev read_tap(unsigned port);
// A packet socket on the TAP interface, inside.
int listen_to_tap(unsigned port);

// A frame of an EtherType that nobody knows, with a number in it.
void fill_frame(uint8_t *bytes, unsigned mark);
unsigned mark_of(const uint8_t *bytes);
bool has_mark(const uint8_t *bytes);
// The next one on the socket; Linux's own chatter is passed over.
unsigned receive_mark(int fd);
// As a worker does with a packet of this verdict; false: refused and freed.
bool punt(unsigned port, enum verdict verdict, unsigned mark);
// What the room has counted as this; VERDICT_FORWARD: as punted.
uint64_t sum_tap(enum verdict what);
uint64_t settled(void);
// Waits until all that was handed over is accounted for, as a worker that takes its mbufs back.
void settle(void);
