// The generator: streams out, stamps in, accounts of both. Control thread.
#pragma once

#include "base/complaint.h"
#include "ctl/ctl.h"
#include "port/port.h"

#include <stdbool.h>
#include <stdint.h>

struct load;

// Makes what the lanes of `ports` need (borrowed until load_close); nothing runs yet. Each port has
// one receive queue: the lane that polls it also sends on the port. `streams` is
// the file's list (borrowed, NULL: none), which the verb `send` takes when it is given none.
int load_open(struct load **out, struct port_room *ports, const struct port_room_settings *settings,
	const json_t *streams, struct complaint *why);
// Launches the lanes: they poll, and send once the verb `send` says so. / Ends them.
int load_start(struct load *load, struct complaint *why);
void load_stop(struct load *load);
void load_close(struct load *load);

// Checks a list of streams (NULL: none) without devices, for --check.
int load_check(const struct port_room_settings *settings, const json_t *streams,
	struct complaint *why);

// What verbs may touch; dl3gen.c owns it.
struct load_house {
	struct load *load;
	struct port_room *ports;
	const struct port_room_settings *settings;
	const char *file; // path of the configuration
	uint64_t started_ns;
	struct clock_pair born; // about when it started
	bool stop;              // set by the verb stop
};
const struct ctl_verb *load_verbs(size_t *n);
// What the control loop does besides serving. -errno with a complaint when a lane or device ended.
int load_tend(struct load_house *house, struct complaint *why);
// So many milliseconds it may be called later: fewer where somebody waits for answers.
int load_tend_ms(const struct load *load);
