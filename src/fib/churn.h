// Random changes of a table and of its model, and checks that both agree: in one VRF of the table,
// given by the model. Tests only.
#pragma once

#include "fib/model.h"

// The number of random changes or rounds: `all` in make test-long, which sets DL3_LONG; else a
// quarter.
unsigned churn_rounds(unsigned all);
// A model with the built-in routes only.
void churn_reset(struct model *model, uint16_t vrf);
// A table with the VRFs churn_vrf[], each with an equally empty model.
enum { CHURN_VRFS = 3 };
extern const uint16_t churn_vrf[CHURN_VRFS];
struct fib *churn_fib(struct model model[CHURN_VRFS]);
// Index of a built-in prefix, -1: it is not one.
int churn_builtin(const struct wire_prefix *prefix);

struct fib_hop churn_hop(void);
// Takes all narrow hop ids for good, a third of them for hops that churn_hop returns: the others
// will get wide ids.
void churn_take_narrow_ids(struct fib *fib);
// A change that keeps the model at about `wanted` routes; it may be an invalid one.
struct fib_change churn_change(const struct model *model, uint8_t family, size_t wanted);
// Changes the model, and returns the result that the table must return.
int churn_apply(struct model *model, const struct fib_change *change);

// Checks what workers and rib_lookup find at the edges of a prefix.
void churn_check_edges(const struct fib *fib, const struct model *model,
	const struct wire_prefix *prefix);
// Same, at random addresses.
void churn_check_some(const struct fib *fib, const struct model *model, uint8_t family, unsigned n);
// Same, for all routes.
void churn_check_all(const struct fib *fib, const struct model *model);

// Units of memory in use.
struct churn_used {
	uint32_t nodes, leaf4, tail4, wide6, leaf6, line6;
};
struct churn_used churn_used(const struct fib *fib);
void churn_expect_used(const struct fib *fib, struct churn_used wanted);
