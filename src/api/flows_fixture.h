// Test fixture for the methods of flows: a context with a flow table, turns of the control loop,
// changes.
#pragma once

#include "api/fixture.h"

// So many TSC cycles are a second: time passes a hundred times as fast.
enum { HZ = 20000000, PATIENCE_S = 60 };

#define PORTS                                                                                      \
	"ports:\n  - {name: left, device: x, addresses: [192.0.2.1/24]}\n"                         \
	"  - {name: right, device: y, peer: 02:00:00:00:00:99}\n"
#define FLOW "flow: {ipv4: 1000, ipv6: 100, timeouts: [30, 300]"

#define KEY(n)                                                                                     \
	"\"src\": \"10.0.0." #n "\", \"dst\": \"10.1.0.1\", \"protocol\": \"udp\", \"src_port\": " \
	"7, \"dst_port\": 53"
#define ADD(n, action) "{\"op\": \"add\", " KEY(n) ", \"action\": " action "}"
#define VIA                                                                                        \
	"{\"do\": \"via\", \"via\": \"192.0.2.2\", \"dev\": \"left\", \"dscp\": 46, \"mirror\": "  \
	"\"right\", \"subscriber\": 12}"

extern char flows_path[64], ended_path[64]; // flow: file and ended_file, in a folder of the test

void open_flows(void);
// Setup and teardown of cmocka. The table has the settings FLOW and `file`.
int make_ctx(void **state);
int make_ctx_with_ended_file(void **state);
int close_ctx(void **state);
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_ctx, close_ctx)

// One turn of the control loop.
void poll_once(void);
// Polls until a value of a result is as wanted.
void wait_for(const char *method, const char *params, const char *key, const char *json);
// Applies changes, of which so many are to be applied and none refused.
void change(const char *changes, unsigned n_applied);
// All flows that flows.list lists, in pages of `limit`; `vrf`: more parameters, or "".
unsigned count_pages(const char *vrf, unsigned limit);
