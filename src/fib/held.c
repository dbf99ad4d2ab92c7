// Held next hops: numbers that users outside of the routing tables, such as flows, keep over
// changes of routes and over reloads. Control thread; workers read `hop`.
#include "fib/held.h"

#include "fib/table.h"

#include <errno.h>
#include <string.h>

static_assert(FIB_MAX_HELD == FIB_MAX_HOPS, "arrays by id have an element for each number");

int held_open(struct held *held)
{
	memset(held, 0, sizeof(*held));
	held->hop = hops_alloc_by_id(sizeof(*held->hop));
	held->n_holds = hops_alloc_by_id(sizeof(*held->n_holds));
	held->unused = hops_alloc_by_id(sizeof(*held->unused));
	if (held->hop && held->n_holds && held->unused)
		return 0;
	held_close(held);
	return -ENOMEM;
}

void held_close(struct held *held)
{
	hops_free_by_id(held->hop, sizeof(*held->hop));
	hops_free_by_id(held->n_holds, sizeof(*held->n_holds));
	hops_free_by_id(held->unused, sizeof(*held->unused));
}

void held_reuse(struct held *held, uint32_t number)
{
	held->unused[held->n_unused++] = number;
}

static bool can_be_held(const struct fib_hop *hop)
{
	if (hop->iface >= IFACE_MAX || hop->n_labels > FIB_MAX_PUSHED)
		return false;
	if (hop->kind == FIB_VIA)
		return hop->via.family == 4 || hop->via.family == 6;
	return hop->kind == FIB_PEER;
}

static uint32_t take_number(struct fib *fib)
{
	struct held *held = &fib->held;

	if (!held->n_unused && held->max == FIB_MAX_HELD)
		rcu_defer_drain(&fib->defer); // deferred frees may include numbers
	if (held->n_unused)
		return held->unused[--held->n_unused];
	return held->max < FIB_MAX_HELD ? ++held->max : 0;
}

// The number leads to a hop, whose reference it takes over.
static void lead_to(struct fib *fib, uint32_t number, uint32_t id)
{
	fib->hops.hop[id].held = number;
	fib->held.n++;
	__atomic_store_n(&fib->held.hop[number], id, __ATOMIC_RELAXED);
}

static int full_error(struct error *error)
{
	return error_set(error, -ENOSPC,
		"no space for another next hop: the table holds at most %u", FIB_MAX_HOPS);
}

int fib_hold(struct fib *fib, const struct fib_hop *hop, uint32_t *held, struct error *error)
{
	if (!can_be_held(hop))
		return error_set(error, -EINVAL,
			"a held next hop needs an interface, and a neighbour or its peer");
	const uint32_t id = change_acquire_hop(fib, hop);
	if (!id)
		return full_error(error);
	*held = fib->hops.hop[id].held;
	if (*held) {
		hops_release(&fib->hops, id); // the number has a reference already
		fib->held.n_holds[*held]++;
		return 0;
	}
	*held = take_number(fib);
	if (!*held) {
		hops_release(&fib->hops, id);
		hops_sweep(&fib->hops);
		return full_error(error);
	}
	lead_to(fib, *held, id);
	fib->held.n_holds[*held] = 1;
	return 0;
}

void fib_release(struct fib *fib, uint32_t held)
{
	const uint32_t id = fib->held.hop[held];

	assert(fib->held.n_holds[held]);
	if (--fib->held.n_holds[held])
		return;
	fib->hops.hop[id].held = 0;
	fib->held.n--;
	rcu_defer_add(&fib->defer,
		(struct rcu_block){.kind = DEFERRED_HELD, .first = held, .n = 1});
	hops_release(&fib->hops, id);
	change_publish(fib, NULL, 0);
}

bool fib_held_hop(const struct fib *fib, uint32_t held, struct fib_hop *out)
{
	if (!held || held > fib->held.max || !fib->held.n_holds[held])
		return false;
	*out = fib->hops.hop[fib->held.hop[held]].key;
	return true;
}

int fib_copy_held(struct fib *to, const struct fib *from, struct error *error)
{
	assert(!to->held.max);
	for (uint32_t number = 1; number <= from->held.max; number++) {
		struct fib_hop hop;

		to->held.max = number;
		if (!fib_held_hop(from, number, &hop)) {
			held_reuse(&to->held, number);
			continue;
		}
		const uint32_t id = change_acquire_hop(to, &hop);
		if (!id)
			return full_error(error);
		lead_to(to, number, id);
		to->held.n_holds[number] = from->held.n_holds[number];
	}
	return 0;
}
