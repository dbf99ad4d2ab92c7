// The slow audit: goes through the fib, a few routes at a time, and compares each with the kernel's
// route. A mismatch is only reported if it persists one second later, after all messages have been
// processed. All tables are then dumped again; if that does not remove the mismatch, they are once
// more after 1 second, then 2, 4, up to 64. Control thread.
#include "base/bits.h"
#include "base/clock.h"
#include "base/log.h"
#include "netlink/inside.h"

#include <errno.h>
#include <stdlib.h>

// Ten ticks a second.
enum { ROUTES_PER_TICK = 10, SUSPECTS = 16, TICKS_OF_DOUBT = 10, TICKS_BETWEEN_WORDS = 600 };
enum { FIRST_WAIT_TICKS = 10, LONGEST_WAIT_TICKS = 640 };
enum { DRAWS = 8 }; // attempts to find an address not covered by a longer prefix

struct suspect {
	struct wire_addr addr;
	struct wire_prefix prefix; // of the route
	uint16_t vrf;
};

struct audit {
	struct netlink *netlink;
	struct fib_walk walk;
	struct wire_prefix after;
	struct suspect suspect[SUSPECTS];
	unsigned n_suspects, ticks, silent_ticks;
	struct suspect drift[SUSPECTS]; // mismatches that persisted, until they are gone
	unsigned n_drift;
	unsigned wait_ticks, next_wait_ticks; // after a dump, until they are checked again
	uint64_t dumps;                       // completed when that dump was requested
	bool is_lasting;                      // they have outlasted a dump
	uint64_t audited, drifted;
	uint64_t changes;      // n_changes when the suspects were found
	uint64_t last_changes; // at the latest tick
	uint64_t random;
};

int audit_open(struct audit **out, struct netlink *netlink, struct error *error)
{
	struct audit *audit = calloc(1, sizeof(*audit));

	if (!audit)
		return error_set(error, -ENOMEM, "not enough memory for the audit");
	audit->netlink = netlink;
	audit->walk.family = 4;
	audit->random = clock_now_ns() | 1;
	audit->next_wait_ticks = FIRST_WAIT_TICKS;
	*out = audit;
	return 0;
}

void audit_close(struct audit *audit)
{
	free(audit);
}

void audit_info(const struct audit *audit, struct netlink_info *out)
{
	out->audited = audit->audited;
	out->drifted = audit->drifted;
	out->drift_lasting = audit->is_lasting ? audit->n_drift : 0;
}

// VRF 0 is always open.
static uint16_t next_vrf(const struct fib *fib, unsigned vrf)
{
	do
		vrf = (vrf + 1) % FIB_MAX_VRFS;
	while (vrf && !fib_vrf_is_open(fib, vrf));
	return vrf;
}

// The next route of the fib. After IPv6 follows the next VRF, after the last VRF the first one.
// Returns false if this table has no more routes.
static bool next_route(struct audit *audit, struct fib_route *out)
{
	if (fib_next(audit->netlink->ctx.fib, &audit->walk, out)) {
		audit->after = out->prefix;
		audit->walk.after = &audit->after;
		return true;
	}
	audit->walk.after = NULL;
	if (audit->walk.family == 6)
		audit->walk.vrf = next_vrf(audit->netlink->ctx.fib, audit->walk.vrf);
	audit->walk.family = audit->walk.family == 4 ? 6 : 4;
	return false;
}

// Whether workers forward an address as the kernel does, including the data they read.
static bool agrees(struct audit *audit, const struct suspect *at)
{
	const struct fib *fib = audit->netlink->ctx.fib;
	struct netlink_route_check check;
	struct fib_answer answer;

	rib_lookup(fib, at->vrf, &at->addr, &answer);
	if (answer.found && fib_lookup(fib, at->vrf, &at->addr) != answer.hop_id)
		return false;
	if (netlink_explain(audit->netlink, at->vrf, &at->addr, &check, NULL))
		return true; // the kernel gave no result
	return check.agrees;
}

static void tell_drift(struct audit *audit, const struct suspect *at)
{
	char text[WIRE_ADDR_TEXT];

	audit->drifted++;
	if (audit->silent_ticks < TICKS_BETWEEN_WORDS && audit->drifted > 1)
		return;
	audit->silent_ticks = 0;
	log_warn("the workers' route to %s differs from that of Linux; dumping all tables again; "
		 "see `dl3 verify` and `dl3 show route %s`",
		wire_addr_print(&at->addr, text), text);
}

// Once, until all of them are gone.
static void tell_lasting(struct audit *audit)
{
	char text[WIRE_ADDR_TEXT];

	if (audit->is_lasting)
		return;
	audit->is_lasting = true;
	log_warn("the workers' route to %s still differs from that of Linux after a dump of all "
		 "tables; dumping again at growing intervals, up to %u s; see `dl3 verify`",
		wire_addr_print(&audit->drift[0].addr, text), LONGEST_WAIT_TICKS / 10);
}

static uint64_t n_dumps(const struct audit *audit)
{
	struct listen_info info;

	listen_info(audit->netlink->listen, &info);
	return info.dumps + info.dumps_partial;
}

static void dump_again(struct audit *audit)
{
	audit->dumps = n_dumps(audit);
	audit->wait_ticks = audit->next_wait_ticks;
	audit->next_wait_ticks = MIN_OF(2 * audit->next_wait_ticks, (unsigned)LONGEST_WAIT_TICKS);
	listen_dump_again(audit->netlink->listen);
}

// Whether the route of a suspect is in a list.
static bool is_listed(const struct suspect list[], unsigned n, const struct suspect *at)
{
	for (unsigned i = 0; i < n; i++)
		if (list[i].vrf == at->vrf && list[i].prefix.len == at->prefix.len &&
			wire_addr_equal(&list[i].prefix.addr, &at->prefix.addr))
			return true;
	return false;
}

// One second after a mismatch was found: checks whether it persists.
static void check_suspects(struct audit *audit)
{
	unsigned n = audit->n_suspects;

	audit->n_suspects = 0;
	// While state is changing, a reply may be older than the mirror's state.
	if (audit->changes != audit->netlink->n_changes)
		return;
	for (unsigned i = 0; i < n; i++) {
		const struct suspect *at = &audit->suspect[i];

		if (audit->n_drift == SUSPECTS || agrees(audit, at))
			continue;
		tell_drift(audit, at);
		audit->drift[audit->n_drift++] = *at;
		if (!audit->wait_ticks)
			dump_again(audit);
	}
}

// Once its route is gone, another one decides about the address; it is checked by itself.
static bool lasts(struct audit *audit, const struct suspect *at)
{
	struct fib_answer answer;

	rib_lookup(audit->netlink->ctx.fib, at->vrf, &at->addr, &answer);
	return answer.found && answer.route.prefix.len == at->prefix.len && !agrees(audit, at);
}

// Some time after a dump: checks whether it has removed the mismatches.
static void check_drift(struct audit *audit)
{
	unsigned n = 0;

	if (audit->last_changes != audit->netlink->n_changes) {
		audit->wait_ticks = 1; // as above
		return;
	}
	for (unsigned i = 0; i < audit->n_drift; i++)
		if (lasts(audit, &audit->drift[i]))
			audit->drift[n++] = audit->drift[i];
	audit->n_drift = n;
	if (n) {
		tell_lasting(audit);
		dump_again(audit);
		return;
	}
	audit->is_lasting = false;
	audit->next_wait_ticks = FIRST_WAIT_TICKS;
}

// A random address of a prefix.
static struct wire_addr draw(struct audit *audit, const struct wire_prefix *prefix)
{
	struct wire_addr addr = prefix->addr;
	unsigned n = addr.family == 4 ? 4 : 16;

	for (unsigned i = prefix->len / 8; i < n; i++) {
		unsigned own = i == prefix->len / 8u ? prefix->len % 8u : 0;

		audit->random = audit->random * 6364136223846793005u + 1442695040888963407u;
		addr.bytes[i] |= audit->random >> 56 & 0xff >> own;
	}
	return addr;
}

// Picks an address whose lookup returns this very route. The first address of a prefix rarely does:
// longer prefixes start there, and 0.0.0.0 and :: are never forwarded.
static struct suspect pick(struct audit *audit, const struct fib_route *route)
{
	struct suspect at = {.prefix = route->prefix, .vrf = route->vrf};
	struct fib_answer answer;
	unsigned n = 0;

	do {
		at.addr = draw(audit, &route->prefix);
		rib_lookup(audit->netlink->ctx.fib, at.vrf, &at.addr, &answer);
	} while (++n < DRAWS && !(answer.found && answer.route.prefix.len == route->prefix.len));
	return at;
}

static void look_at_some(struct audit *audit)
{
	struct fib_route route;

	for (unsigned i = 0; i < ROUTES_PER_TICK && audit->n_suspects < SUSPECTS; i++) {
		struct suspect at;

		if (!next_route(audit, &route))
			continue;
		at = pick(audit, &route);
		audit->audited++;
		if (is_listed(audit->drift, audit->n_drift, &at) ||
			is_listed(audit->suspect, audit->n_suspects, &at) || agrees(audit, &at))
			continue;
		if (!audit->n_suspects) {
			audit->changes = audit->netlink->n_changes;
			audit->ticks = 0;
		}
		audit->suspect[audit->n_suspects++] = at;
	}
}

void audit_poll(struct audit *audit)
{
	audit->silent_ticks++;
	if (listen_is_dumping(audit->netlink->listen) || audit->netlink->is_flushing) {
		audit->n_suspects = 0;
		return;
	}
	if (audit->n_suspects && ++audit->ticks >= TICKS_OF_DOUBT)
		check_suspects(audit);
	if (audit->wait_ticks && n_dumps(audit) != audit->dumps && !--audit->wait_ticks)
		check_drift(audit);
	audit->last_changes = audit->netlink->n_changes;
	look_at_some(audit);
}
