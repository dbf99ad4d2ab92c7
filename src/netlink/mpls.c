// The kernel's routes of MPLS labels, and what workers do with each: labels are re-evaluated when
// they or an interface change, some thousands at a time. Control thread.
#include "netlink/hop_sets.h"
#include "netlink/mirror_inside.h"

#include "base/bits.h"
#include "base/pages.h"
#include "fib/fib_fast.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 4096, EXPLICIT_NULL4 = 0, EXPLICIT_NULL6 = 2 };
enum { LO = 1 }; // its ifindex, in every namespace

static const size_t ALL_BYTES = (FIB_MAX_LABEL + 1) * sizeof(void *);

// A route as reported, owned by the table.
struct label_route {
	uint32_t next_dirty; // label + 1; 0: none
	uint8_t generation;  // of the last dump, or event since, that reported it
	int8_t propagates;
	bool is_dirty, too_many_hops;
	bool is_linux; // in the fib as left to Linux
	uint16_t n_hops;
	struct event_hop hop[];
};

struct mpls {
	struct mirror *mirror;
	struct label_route **route; // by label
	uint32_t end;               // labels from here on have never had one
	uint32_t first_dirty;       // label + 1; 0: none
	uint32_t cursor;            // labels from here on are to be evaluated again
	uint32_t n_linux;           // left to Linux
	uint8_t generation;
	bool is_known;        // the kernel has MPLS
	bool lo_takes_labels; // what follows a label that leads to `lo` may be another label
	struct mirror_mpls settings;
};

int mpls_open(struct mpls **out, struct mirror *mirror, struct error *error)
{
	struct mpls *mpls = calloc(1, sizeof(*mpls));

	if (mpls)
		mpls->route = pages_alloc(ALL_BYTES);
	if (!mpls || !mpls->route) {
		free(mpls);
		return error_set(error, -ENOMEM, "not enough memory for Linux's MPLS labels");
	}
	pages_keep_small(mpls->route, ALL_BYTES);
	mpls->mirror = mirror;
	mpls->cursor = UINT32_MAX;
	mpls->settings.propagates_ttl = true;
	*out = mpls;
	return 0;
}

void mpls_close(struct mpls *mpls)
{
	for (uint32_t label = 0; label < mpls->end; label++)
		free(mpls->route[label]);
	pages_free(mpls->route, ALL_BYTES);
	free(mpls);
}

static void touch(struct mpls *mpls, uint32_t label)
{
	struct label_route *route = mpls->route[label];

	if (route->is_dirty)
		return;
	route->is_dirty = true;
	route->next_dirty = mpls->first_dirty;
	mpls->first_dirty = label + 1;
}

void mpls_ifaces_changed(struct mpls *mpls)
{
	if (mpls && mpls->end)
		mpls->cursor = 0;
}

// --- what workers do

static bool is_usable(const struct mpls *mpls, const struct event_hop *hop,
	struct ifaces_state *state)
{
	*state = ifaces_state(mpls->mirror, hop->ifindex);
	return state->is_known && state->is_up && state->has_carrier;
}

// The packet is received again by `lo`, or sent by the VRF of a device, which takes no labels.
// False: that is Linux's.
static bool take_lookup(const struct mpls *mpls, const struct event_hop *hop,
	const struct ifaces_state *state, struct fib_label *out)
{
	const uint16_t vrf = ifaces_vrf_of_device(mpls->mirror, hop->ifindex);

	if (hop->n_labels || (!state->is_loopback && vrf == IFACES_NO_VRF))
		return false;
	out->op = FIB_LABEL_LOOKUP;
	out->vrf = state->is_loopback ? 0 : vrf;
	out->loops = state->is_loopback;
	out->ends_stack = !state->is_loopback || !mpls->lo_takes_labels;
	return true;
}

// A port needs to know whom to send to, and a tunnel has one other end only.
static bool take_member(const struct mpls *mpls, const struct event_hop *hop,
	const struct ifaces_state *state, struct fib_hop *out)
{
	const struct iface *iface = state->iface == IFACE_NONE
	                                    ? NULL
	                                    : fib_iface(mpls->mirror->settings.fib, state->iface);
	const bool is_tunnel = iface && iface_is_tunnel(iface);

	if (hop->has_encap || !iface ||
		(is_tunnel ? hop->n_labels && !(iface->tunnel.flags & IFACE_TUNNEL_MPLS)
			   : !hop->via.family))
		return false;
	*out = (struct fib_hop){.iface = state->iface,
		.kind = is_tunnel ? FIB_PEER : FIB_VIA,
		.n_labels = hop->n_labels};
	if (!is_tunnel)
		out->via = hop->via;
	memcpy(out->label, hop->label, sizeof(out->label));
	return true;
}

static bool take_group(const struct mpls *mpls, struct fib_member members[], uint32_t weight[],
	unsigned n, struct fib_hop *out)
{
	if (n == 1) {
		*out = members[0].hop;
		return true;
	}
	hop_sets_scale_weights(weight, n);
	for (unsigned i = 0; i < n; i++)
		members[i].weight = weight[i];
	return !fib_group(mpls->mirror->settings.fib, members, n, out, NULL);
}

// Hops that are not usable have no share, as in Linux (mpls_select_multipath).
static bool take_hops(const struct mpls *mpls, const struct event_hop hops[], unsigned n_hops,
	struct fib_label *out)
{
	struct fib_member members[EVENT_MAX_HOPS];
	uint32_t weight[EVENT_MAX_HOPS];
	unsigned n = 0;

	for (unsigned i = 0; i < n_hops; i++) {
		const struct event_hop *hop = &hops[i];
		struct ifaces_state state;

		if (!is_usable(mpls, hop, &state))
			continue;
		if (n_hops == 1 && !hop->via.family && !hop->has_encap &&
			take_lookup(mpls, hop, &state, out))
			return true;
		if (!take_member(mpls, hop, &state, &members[n].hop))
			return false;
		weight[n++] = hop->weight;
	}
	out->op = FIB_LABEL_FORWARD;
	return n && take_group(mpls, members, weight, n, &out->hop);
}

static bool is_pipe(const struct mpls *mpls, int propagates)
{
	return propagates < 0 ? !mpls->settings.propagates_ttl : !propagates;
}

static struct fib_label resolve(const struct mpls *mpls, uint32_t label)
{
	const struct label_route *route = mpls->route[label];
	struct fib_label out = {.label = label};

	if (route->too_many_hops || !take_hops(mpls, route->hop, route->n_hops, &out))
		out = (struct fib_label){.label = label, .op = FIB_LABEL_LINUX};
	out.is_pipe = is_pipe(mpls, route->propagates);
	return out;
}

bool mpls_wanted(const struct mpls *mpls, const struct event_label *reported, struct fib_label *out)
{
	*out = (struct fib_label){.label = reported->label};
	if (reported->too_many_hops || !take_hops(mpls, reported->hop, reported->n_hops, out))
		return false;
	out->is_pipe = is_pipe(mpls, reported->propagates);
	return true;
}

bool mpls_is_known(const struct mpls *mpls)
{
	return mpls->is_known;
}

// --- reports

static void forget(struct mpls *mpls, uint32_t label)
{
	struct label_route *route = mpls->route[label];
	uint32_t *at = &mpls->first_dirty;

	while (route->is_dirty && *at != label + 1)
		at = &mpls->route[*at - 1]->next_dirty;
	if (route->is_dirty)
		*at = route->next_dirty;
	mpls->n_linux -= route->is_linux;
	mpls->route[label] = NULL;
	free(route);
	fib_label_delete(mpls->mirror->settings.fib, label);
}

static void store(struct mpls *mpls, const struct event_label *reported)
{
	const size_t bytes = reported->n_hops * sizeof(reported->hop[0]);
	struct label_route *route = mpls->route[reported->label];
	const struct mirror_ops *ops = &mpls->mirror->settings.ops;
	struct label_route *made = calloc(1, sizeof(*made) + bytes);

	if (!made) {
		ops->lost(ops->ops, EVENT_LABEL);
		return;
	}
	if (route) {
		*made = *route;
		free(route);
	}
	made->generation = mpls->generation;
	made->propagates = reported->propagates;
	made->too_many_hops = reported->too_many_hops;
	made->n_hops = reported->n_hops;
	memcpy(made->hop, reported->hop, bytes);
	mpls->route[reported->label] = made;
	mpls->end = MAX_OF(mpls->end, reported->label + 1);
	touch(mpls, reported->label);
}

void mpls_event(struct mpls *mpls, const struct event *event)
{
	const uint32_t label = event->label.label;

	if (label > FIB_MAX_LABEL)
		return;
	if (!event->is_delete)
		store(mpls, &event->label);
	else if (mpls->route[label])
		forget(mpls, label);
}

void mpls_dump_begins(struct mpls *mpls)
{
	mpls->generation++;
}

void mpls_dump_ends(struct mpls *mpls)
{
	for (uint32_t label = 0; label < mpls->end; label++)
		if (mpls->route[label] && mpls->route[label]->generation != mpls->generation)
			forget(mpls, label);
}

// --- changes

// A label for which there is no space is left to Linux.
static void apply(struct mpls *mpls, uint32_t label)
{
	struct label_route *route = mpls->route[label];
	struct fib *fib = mpls->mirror->settings.fib;
	struct fib_label wanted = resolve(mpls, label);

	if (fib_label_set(fib, &wanted, NULL)) {
		wanted.op = FIB_LABEL_LINUX;
		fib_label_set(fib, &wanted, NULL);
	}
	mpls->n_linux -= route->is_linux;
	route->is_linux = wanted.op == FIB_LABEL_LINUX;
	mpls->n_linux += route->is_linux;
}

bool mpls_flush(struct mpls *mpls)
{
	unsigned n = 0;

	for (; mpls->first_dirty && n < BATCH; n++) {
		const uint32_t label = mpls->first_dirty - 1;
		struct label_route *route = mpls->route[label];

		mpls->first_dirty = route->next_dirty;
		route->is_dirty = false;
		apply(mpls, label);
	}
	for (; mpls->cursor < mpls->end && n < BATCH; mpls->cursor++)
		if (mpls->route[mpls->cursor]) {
			apply(mpls, mpls->cursor);
			n++;
		}
	return mpls->first_dirty || mpls->cursor < mpls->end;
}

// Linux's own routes, which it does not report: they lead to `lo`.
static void set_explicit_null(struct mpls *mpls, uint32_t label)
{
	struct fib *fib = mpls->mirror->settings.fib;
	const struct fib_label null = {.label = label,
		.op = FIB_LABEL_LOOKUP,
		.loops = true,
		.ends_stack = !mpls->lo_takes_labels,
		.is_pipe = !mpls->settings.propagates_ttl};

	if (mpls->is_known && label < mpls->settings.n_labels)
		fib_label_set(fib, &null, NULL);
	else
		fib_label_delete(fib, label);
}

static bool same_settings(const struct mirror_mpls *a, const struct mirror_mpls *b)
{
	return a->n_labels == b->n_labels && a->propagates_ttl == b->propagates_ttl &&
	       a->default_ttl == b->default_ttl;
}

// MPLS that comes later has labels that were not dumped. Its settings are not notified.
void mpls_poll(struct mpls *mpls)
{
	const struct mirror_ops *ops = &mpls->mirror->settings.ops;
	struct mirror_mpls now = {.propagates_ttl = true};
	const bool is_known = ops->mpls && ops->mpls(ops->ops, &now);
	const bool lo_takes_labels = ifaces_take_labels(mpls->mirror, LO);

	if (is_known == mpls->is_known && lo_takes_labels == mpls->lo_takes_labels &&
		same_settings(&now, &mpls->settings))
		return;
	if (is_known && !mpls->is_known)
		ops->dump_again(ops->ops);
	mpls->is_known = is_known;
	mpls->lo_takes_labels = lo_takes_labels;
	mpls->settings = now;
	set_explicit_null(mpls, EXPLICIT_NULL4);
	set_explicit_null(mpls, EXPLICIT_NULL6);
	mpls_ifaces_changed(mpls);
	routes_label_ttl_changed(mpls->mirror->routes, now.propagates_ttl ? 0 : now.default_ttl);
}

void mpls_unsupported(const struct mpls *mpls,
	bool (*cb)(void *arg, const struct netlink_unsupported *one), void *arg)
{
	struct netlink_unsupported one = {.n = mpls->n_linux,
		.what = "MPLS labels whose routes workers do not support",
		.effect = "their frames are punted to Linux, which forwards them"};

	if (!mpls->n_linux)
		return;
	for (uint32_t label = 0; label < mpls->end; label++)
		if (mpls->route[label] && mpls->route[label]->is_linux) {
			snprintf(one.where, sizeof(one.where), "label %u%s", label,
				mpls->n_linux > 1 ? " and others" : "");
			break;
		}
	cb(arg, &one);
}
