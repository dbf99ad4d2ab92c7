// Keys, tables and random numbers. Tests and benchmarks only.
#pragma once

#include "flow/flow.h"
#include "flow/lookup.h"

// A clock of 2 GHz, which a test moves.
static const uint64_t TESTING_HZ = 2000000000;

uint64_t testing_random(void);
void testing_seed(uint64_t seed);
static inline uint32_t testing_below(uint32_t n)
{
	return testing_random() % n;
}

// Key number `number`, different from all others.
struct flow_key testing_key(uint8_t family, uint32_t number);
// Settings for so many flows; timeouts 1 to 4 are 1, 10, 60 and 300 s. / A table; ends the program
// if there is none.
struct flow_settings testing_settings(uint32_t max4, uint32_t max6, unsigned n_workers);
struct flow_table *testing_table(const struct flow_settings *settings);
// Has the table use action `number`, which it never used before, or which this has it use already:
// it drops packets of subscriber `number`. / Actions 1 to n.
void testing_use_action(struct flow_table *table, uint32_t number);
void testing_use_actions(struct flow_table *table, uint32_t n);
// One change; returns its result.
int testing_change(struct flow_table *table, const struct flow_change *change, uint64_t now);
// Has a view use lookup variant `number`, modulo their number.
void testing_use_variant(struct flow_view *view, unsigned number);
// What workers find, by the bulk lookup of this key alone; FLOW_NONE: nothing.
uint32_t testing_lookup(const struct flow_table *table, const struct flow_key *key,
	uint32_t *action);
