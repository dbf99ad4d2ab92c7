// Test fixture for methods: fake ports, workers, TAP interfaces and netlink; a context made from a
// configuration; requests and checks of their results.
#pragma once

#include "api/api.h"

#include <jansson.h>

// State set and read by the test.
struct fake {
	int refuse_change_of; // port whose port_change fails; -1: none
	unsigned mtu[PORT_MAX];
	unsigned n_changes, n_polled, n_ports_restored;
	bool worker_has_ended, device_is_gone;
	int refuse_add_of;          // port whose port_add fails; -1: none
	struct port_settings added; // by port_add
	char port_calls[64];        // a letter and the port's number for each call
	bool begun_with_list;       // the last port had an input list when workers got it
	// Linux
	struct stats_tap taps;
	unsigned n_taps_polled, n_restored, n_steps; // n_steps: calls of netlink_poll
	bool refuse_tap;                             // tap_add
	bool netlink_has_more, is_dumping, refuse_restore, refuse_start;
	struct tap_class_settings class[N_CLASSES];
	struct netlink_route_check route_check;
	unsigned n_differences, n_unsupported;
	uint32_t sample; // last passed to netlink_verify
	bool is_promiscuous[PORT_MAX];
	char calls[64]; // one letter for each module opened or closed
	// The datapath: what datapath_trace tells; NULL: there is no memory. What it was asked.
	const struct trace *trace;
	unsigned traced_port;
	size_t n_traced;
	uint8_t traced[TRACE_FRAME_MAX];
};
extern struct fake fake;

void fake_reset(void);
struct stats_worker *fake_stat(unsigned worker);
struct port_state *fake_state(unsigned port);
enum { FAKE_HZ = 1 << 30 }; // of the TSC
// Fake TAP interfaces and netlink: interfaces 0 and 1 are the ports; VRF 3 is "blue".
struct tap_table *fake_taps(void);
struct netlink *fake_sync(void);

extern struct api_ctx ctx;
extern char file[]; // its configuration

void write_file(const char *text);
// Creates a context from a configuration text, with a table and its rcu; resets the fakes. Returns
// 0, as required by cmocka.
int fixture_open(const char *text);
int fixture_close(void **state);

// The result of a method, or {"error": message}. Owner: caller.
json_t *call(const char *method, const char *params);
// Compares a nested value in a result: `path` "verdicts.2.packets".
void expect(const json_t *reply, const char *path, const char *json);
// Calls a method and compares one value of its result.
void check(const char *method, const char *params, const char *path, const char *json);
struct wanted {
	const char *path, *json;
};
void check_all(const char *method, const char *params, const struct wanted rows[]);
