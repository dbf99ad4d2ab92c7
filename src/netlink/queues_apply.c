// Which queues of Linux workers take over, and in which words of subscribers
// (docs/internals/qos.md). An interface is left to Linux until they have its queue. Control thread.
#include "netlink/ifaces_inside.h"

#include "base/bits.h"
#include "base/vector.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/pkt_sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Queues are given when nothing has changed for a while, or at the latest after LONGEST_NS.
enum { QUIET_NS = 20000000, LONGEST_NS = 200000000 };
// A change waits for workers: so many at a time. What was refused is tried again.
enum { MOST_AT_ONCE = 64 };
static const uint64_t AGAIN_NS = 10000000000;
enum { ETHER_BYTES = 14, MOST_PACKETS = UINT16_MAX, LIMIT_S = 10, VLAN_DEPTH = 8 };

static bool is_vlan(const struct interface *one)
{
	return !strcmp(one->iface.kind, "vlan");
}

static struct interface *below(const struct ifaces *ifaces, const struct interface *one)
{
	return is_vlan(one) ? interfaces_find(&ifaces->all, one->iface.lower) : NULL;
}

static bool has_own(const struct interface *one)
{
	return one->queues && one->queues->root.what != QUEUE_NONE;
}

// Whose queue the frames of an interface pass: its own, or that of one below it. NULL: none.
static struct interface *owner_of(const struct ifaces *ifaces, struct interface *one)
{
	for (unsigned depth = 0; one && depth < VLAN_DEPTH; depth++, one = below(ifaces, one))
		if (has_own(one))
			return one;
	return NULL;
}

// Frames would have to wait twice.
static bool has_two(const struct ifaces *ifaces, const struct interface *owner)
{
	return owner_of(ifaces, below(ifaces, owner)) != NULL;
}

static bool is_of_port(const struct ifaces *ifaces, const struct interface *one)
{
	for (unsigned depth = 0; one && depth < VLAN_DEPTH; depth++) {
		if (taps_port(ifaces, one->ifindex) >= 0)
			return !one->iface.master || vrfs_master(ifaces, one);
		one = below(ifaces, one);
	}
	return false;
}

static const char *judge_kind(const struct queues *queues)
{
	const struct event_queue *root = &queues->root, *leaf = &queues->leaf;

	if (root->reason[0])
		return root->reason;
	if (queues->has_more)
		return "it has more than one class, or qdiscs below other ones";
	if (queues->has_filters)
		return "filters choose its classes";
	if (leaf->what == QUEUE_OTHER || leaf->what == QUEUE_TBF || leaf->what == QUEUE_HTB)
		return "workers do not follow the kind of the qdisc below it";
	if (leaf->reason[0])
		return leaf->reason;
	if (queues->is_cut)
		return "Linux drops all, since the qdisc below it was removed";
	if (root->what != QUEUE_HTB)
		return NULL;
	if (queues->wants_dump && queues->class.what == QUEUE_NONE)
		return "Linux has not listed its classes yet";
	if (queues->class.reason[0])
		return queues->class.reason;
	if (queues->class.what != QUEUE_CLASS || root->default_class != queues->class.handle)
		return "it has no class that is its default";
	return leaf->what && leaf->parent != queues->class.handle
	               ? "the qdisc below it is not that of its class"
	               : NULL;
}

// Why workers do not take over the queue of `owner`; NULL: they do.
static const char *judge(const struct ifaces *ifaces, const struct interface *owner)
{
	const char *reason = judge_kind(owner->queues);

	if (reason)
		return reason;
	if (!ifaces->mirror->settings.shape)
		return "workers have no queues; add qos.held_packets to the configuration file and "
		       "restart";
	if (has_two(ifaces, owner))
		return "the interface below it has one, too";
	if (!is_of_port(ifaces, owner))
		return "workers shape on ports and VLANs on them only";
	if (owner->above.n_macs)
		return "there are macvlans on the interface";
	if (ifaces->tunnels.n_served || ifaces->tunnels.n_of_frames)
		return "workers serve tunnels, whose packets would not pass it";
	return NULL;
}

static void print_leaf(const struct queues *queues, char *out, size_t bytes)
{
	const struct event_queue *root = &queues->root, *leaf = &queues->leaf;
	const struct event_queue *limits = leaf->what                ? leaf
	                                   : root->what == QUEUE_TBF ? root
	                                                             : &queues->class;
	const uint32_t limit = limits->limit_bytes ? limits->limit_bytes : UINT32_MAX;
	char packets[32] = "";

	if (limits->limit_packets)
		snprintf(packets, sizeof(packets), " limit_packets %u",
			MIN_OF(limits->limit_packets, MOST_PACKETS));
	if (leaf->what != QUEUE_FQ_CODEL)
		snprintf(out, bytes, "queue fifo limit_bytes %uB%s", limit, packets);
	else
		snprintf(out, bytes,
			"queue fq_codel target %uus interval %uus limit %us limit_bytes %uB%s ecn "
			"%s",
			leaf->target_us, leaf->interval_us, LIMIT_S, limit, packets,
			leaf->marks ? "yes" : "no");
}

// As a profile of subscribers. tbf sends a packet when it has tokens for all of it, workers when
// they have any: the burst is less by one frame. Linux counts frames without FCS and tags.
static void print_profile(const struct interface *owner, char out[QUEUES_PROFILE])
{
	const struct queues *queues = owner->queues;
	const bool is_tbf = queues->root.what == QUEUE_TBF;
	const struct event_queue *rate = is_tbf ? &queues->root : &queues->class;
	const uint64_t frame = is_tbf ? owner->iface.mtu + ETHER_BYTES : 0;
	char leaf[QUEUES_PROFILE / 2], mpu[16] = "";

	print_leaf(queues, leaf, sizeof(leaf));
	if (rate->mpu)
		snprintf(mpu, sizeof(mpu), " mpu %u", rate->mpu);
	snprintf(out, QUEUES_PROFILE,
		"shape %" PRIu64 "bit/s burst %" PRIu64
		"B %s class_dscp 0:3 counts ip overhead %u%s",
		rate->rate * 8, rate->burst > frame ? rate->burst - frame : 0, leaf,
		rate->overhead + ETHER_BYTES, mpu);
}

static const char *wanted_of(const struct interface *owner)
{
	struct queues *queues = owner->queues;

	if (queues->is_stale)
		print_profile(owner, queues->wanted);
	queues->is_stale = false;
	return queues->wanted;
}

// Whether workers have the queue of `owner` as it is now.
static bool is_current(const struct interface *owner)
{
	const struct queues *queues = owner->queues;

	return queues->is_given && !strcmp(queues->named, owner->iface.name) &&
	       !strcmp(queues->profile, wanted_of(owner));
}

static bool is_bound(const struct interface *one, const struct interface *owner)
{
	return one->id != IFACE_NONE && one->queue_id == one->id &&
	       one->queue_serial == owner->queues->serial;
}

static bool is_left(const struct ifaces *ifaces, const struct interface *one,
	const struct interface *owner)
{
	return owner && (judge(ifaces, owner) || !is_current(owner) || !is_bound(one, owner));
}

void queues_check(struct ifaces *ifaces)
{
	if (!ifaces->queues.n)
		return;
	for (struct interface *one = NULL; (one = interfaces_next(&ifaces->all, one));)
		if (is_left(ifaces, one, owner_of(ifaces, one)))
			one->tc |= EVENT_EGRESS;
}

static const char *refusal_of(const struct interface *owner)
{
	return strcmp(owner->queues->refused, wanted_of(owner)) ? NULL : owner->queues->refusal;
}

bool queues_tell(const struct ifaces *ifaces, const struct interface *one,
	bool (*cb)(void *arg, const struct netlink_unsupported *one), void *arg, bool *told)
{
	const struct interface *owner =
		owner_of(ifaces, interfaces_find(&ifaces->all, one->ifindex));
	struct netlink_unsupported found = {.n = 1};

	*told = false;
	if (!is_left(ifaces, one, owner))
		return true;
	const struct event_queue *root = &owner->queues->root;
	const char *reason = judge(ifaces, owner);

	if (!reason)
		reason = refusal_of(owner);
	*told = true;
	snprintf(found.what, sizeof(found.what), "qdisc %s %x:", root->kind,
		TC_H_MAJ(root->handle) >> 16);
	snprintf(found.where, sizeof(found.where), "%s%s%s", one->iface.name,
		one == owner ? "" : " on ", one == owner ? "" : owner->iface.name);
	snprintf(found.effect, sizeof(found.effect),
		"%.150s: packets routed via it are punted to Linux, which sends them",
		reason ? reason : "workers do not have its latest state yet");
	return cb(arg, &found);
}

static int give(struct ifaces *ifaces, const char *name, const char *profile, struct error *error)
{
	const struct mirror_settings *settings = &ifaces->mirror->settings;

	ifaces->queues.n_given++;
	return settings->shape ? settings->shape(settings->arg, name, profile, error) : 0;
}

static bool are_many(const struct ifaces *ifaces)
{
	return ifaces->queues.n_given >= MOST_AT_ONCE;
}

// Whether an interface, other than this one, has the queue of a name now: names are swapped.
static bool is_anothers(const struct ifaces *ifaces, const struct interface *owner,
	const char *name)
{
	for (struct interface *one = NULL; (one = interfaces_next(&ifaces->all, one));)
		if (one != owner && one->queues && one->queues->is_given &&
			!strcmp(one->queues->named, name))
			return true;
	return false;
}

// False: not now.
static bool take(struct ifaces *ifaces, const struct interface *owner, const char *name)
{
	struct error error;

	return is_anothers(ifaces, owner, name) ||
	       (!are_many(ifaces) && give(ifaces, name, NULL, &error) != -EBUSY);
}

// Whether no packet misses the queue: Linux has none, or an earlier flush has left it the packets.
static bool may_go(const struct interface *owner)
{
	return !has_own(owner) || owner->tc & EVENT_EGRESS;
}

// Takes away what workers have for others than they should. Returns whether some could not go yet.
static bool take_back(struct ifaces *ifaces, struct interface *owner)
{
	struct queues *queues = owner->queues;

	if (queues->old[0] && !take(ifaces, owner, queues->old))
		return true;
	queues->old[0] = 0;
	if (queues->is_given && has_own(owner) && !judge(ifaces, owner))
		return false;
	if (queues->is_given && (!may_go(owner) || !take(ifaces, owner, queues->named)))
		return true;
	queues->is_given = false;
	if (has_own(owner))
		return false;
	free(queues);
	owner->queues = NULL;
	ifaces->queues.n--;
	ifaces->is_dirty = true; // a bridge may have waited for that
	return false;
}

// Returns whether it is to be tried again.
static bool hand_over(struct ifaces *ifaces, struct interface *owner)
{
	struct queues *queues = owner->queues;
	struct error error;

	if (!has_own(owner) || judge(ifaces, owner) || is_current(owner) || refusal_of(owner))
		return false;
	if (are_many(ifaces))
		return true;
	const int err = give(ifaces, owner->iface.name, wanted_of(owner), &error);

	ifaces->is_dirty = true;
	if (err == -EBUSY)
		return true;
	if (err) {
		snprintf(queues->refusal, sizeof(queues->refusal), "%.150s", error.text);
		memcpy(queues->refused, queues->wanted, sizeof(queues->refused));
		queues->may_be_tried = err != -EINVAL;
		return false;
	}
	if (queues->is_given && strcmp(queues->named, owner->iface.name) != 0)
		memcpy(queues->old, queues->named, sizeof(queues->old));
	if (!queues->is_given || queues->old[0])
		queues->serial = ++ifaces->queues.serial;
	queues->is_given = true;
	memcpy(queues->named, owner->iface.name, sizeof(queues->named));
	memcpy(queues->profile, queues->wanted, sizeof(queues->profile));
	queues->refused[0] = 0;
	return false;
}

static void use_queue(const struct ifaces *ifaces, uint16_t id, const char *name)
{
	const struct mirror_settings *settings = &ifaces->mirror->settings;

	if (settings->shape_iface)
		settings->shape_iface(settings->arg, id, name);
}

// What leaves by an interface passes the queue of its owner from now on.
static void bind_queue(struct ifaces *ifaces, struct interface *one)
{
	const struct interface *owner = owner_of(ifaces, one);
	const bool has =
		owner && one->id != IFACE_NONE && !judge(ifaces, owner) && is_current(owner);

	if (has && !is_bound(one, owner)) {
		use_queue(ifaces, one->id, owner->queues->named);
		one->queue_id = one->id;
		one->queue_serial = owner->queues->serial;
		ifaces->is_dirty = true;
	} else if (!has && one->queue_id != IFACE_NONE && (!owner || one->tc & EVENT_EGRESS)) {
		if (one->queue_id == one->id)
			use_queue(ifaces, one->id, NULL);
		one->queue_id = IFACE_NONE;
	}
}

static void take_back_gone(struct ifaces *ifaces)
{
	struct queues_of_linux *all = &ifaces->queues;

	while (all->n_gone && take(ifaces, NULL, all->gone[all->n_gone - 1]))
		all->n_gone--;
}

// Others may have made room meanwhile.
static void try_refused(struct ifaces *ifaces, uint64_t now_ns)
{
	struct queues_of_linux *all = &ifaces->queues;

	if (!all->n || now_ns - all->tried_ns < AGAIN_NS)
		return;
	all->tried_ns = now_ns;
	for (struct interface *one = NULL; (one = interfaces_next(&ifaces->all, one));)
		if (one->queues && one->queues->refused[0] && one->queues->may_be_tried) {
			one->queues->refused[0] = 0;
			all->is_changed = true;
		}
}

static bool may_change_soon(const struct queues_of_linux *all, uint64_t now_ns)
{
	const uint64_t since_ns = now_ns - all->applied_ns;

	return since_ns < QUIET_NS ||
	       (since_ns < LONGEST_NS && now_ns - all->changed_ns < QUIET_NS);
}

void queues_apply(struct ifaces *ifaces, uint64_t now_ns)
{
	struct queues_of_linux *all = &ifaces->queues;
	bool again;

	try_refused(ifaces, now_ns);
	if (!all->is_changed || may_change_soon(all, now_ns))
		return;
	all->n_given = 0;
	take_back_gone(ifaces);
	again = all->n_gone;
	all->applied_ns = now_ns;
	for (struct interface *one = NULL; (one = interfaces_next(&ifaces->all, one));)
		if (one->queues)
			again |= hand_over(ifaces, one);
	// Workers use what is new before anything else goes.
	for (struct interface *one = NULL; (one = interfaces_next(&ifaces->all, one));)
		bind_queue(ifaces, one);
	for (struct interface *one = NULL; (one = interfaces_next(&ifaces->all, one));)
		if (one->queues)
			again |= take_back(ifaces, one);
	all->is_changed = again;
}
