// Random changes of the table and of its model, and whether both agree: one VRF of the table, which
// the model names. Tests only.
#pragma once

#include "fib/model.h"

// A model with the built-in routes alone.
void churn_reset(struct model *model, uint8_t vrf);
// A table with the VRFs churn_vrf[], each with a model that is as empty as it.
enum { CHURN_VRFS = 3 };
extern const uint8_t churn_vrf[CHURN_VRFS];
struct fib *churn_fib(struct model model[CHURN_VRFS]);
// Which of the built-in ones, -1: none.
int churn_builtin(const struct wire_prefix *prefix);

struct fib_hop churn_hop(void);
// A change that keeps the model at about `wanted` routes; it may be one that must fail.
struct fib_change churn_change(const struct model *model, uint8_t family, size_t wanted);
// Changes the model, and says what the table must answer.
int churn_apply(struct model *model, const struct fib_change *change);

// What workers and rib_lookup say at the edges of a prefix; / at random places; / of all routes.
void churn_check_edges(const struct fib *fib, const struct model *model,
	const struct wire_prefix *prefix);
void churn_check_some(const struct fib *fib, const struct model *model, uint8_t family, unsigned n);
void churn_check_all(const struct fib *fib, const struct model *model);

// Units of memory that something holds.
struct churn_used {
	uint32_t nodes, leaf4, tail4, wide6, leaf6, line6;
};
struct churn_used churn_used(const struct fib *fib);
void churn_expect_used(const struct fib *fib, struct churn_used wanted);
