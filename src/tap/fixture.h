// For tests of the tap module: null ports, TAP interfaces in a namespace per test, and the worker's
// side of the rings. Requires root.
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
static const uint64_t wait_ns = 60000000000; // of failing tests only: others see what they wait for

extern struct port_table_settings port_settings; // two: tw0, tw1
extern struct tap_settings settings;             // per test: keep off, high rates
extern struct port_table *ports;
extern struct tap_table *taps;
extern char namespace_name[TAP_NAME_MAX];
extern uint32_t n_mbufs_free; // before tap_open

// cmocka group and test fixtures.
int open_ports(void **state);
int close_ports(void **state);
int begin(void **state);
int end(void **state);

// Runs a shell command; 0 on success.
int run(const char *format, ...) __attribute__((format(printf, 1, 2)));
uint32_t count_free(void);
void open_module(void);
void close_module(void);
// Propagates the ports' carrier to the TAP interfaces.
void bring_carrier(void);
struct netdev read_tap(unsigned port);
// Opens a packet socket on the TAP interface, inside the namespace.
int listen_to_tap(unsigned port);

// A frame of an unassigned EtherType with a number in it.
void fill_frame(uint8_t *bytes, unsigned mark);
unsigned mark_of(const uint8_t *bytes);
bool has_mark(const uint8_t *bytes);
// The next such frame on the socket; Linux's own packets are skipped.
unsigned receive_mark(int fd);
// Punts a packet with this verdict as a worker does; false: refused and freed.
bool punt(unsigned port, enum verdict verdict, unsigned mark);
// Packets counted under this verdict by the tap thread; VERDICT_FORWARD: punted.
uint64_t sum_tap(enum verdict what);
uint64_t settled(void);
// Waits until all punted packets are accounted for, while taking back used mbufs as a worker does.
void settle(void);
