// How Linux shapes what interfaces send, as the kernel reports it. Control thread.
#include "netlink/ifaces_inside.h"

#include "base/clock.h"
#include "base/vector.h"

#include <linux/pkt_sched.h>
#include <stdlib.h>
#include <string.h>

enum { DUMPS = 32 }; // interfaces at a time, of which Linux is asked

void queues_note(struct ifaces *ifaces)
{
	ifaces->queues.is_changed = true;
	ifaces->queues.changed_ns = clock_now_ns();
	ifaces->is_dirty = true;
}

static void forget(struct ifaces *ifaces, struct interface *one)
{
	struct queues *queues = one->queues;

	if (!queues)
		return;
	queues_note(ifaces);
	if (queues->is_given) { // until queues_apply has taken it back
		queues->root = queues->class = queues->leaf = (struct event_queue){0};
		queues->has_more = queues->has_filters = queues->is_cut = false;
		queues->wants_dump = false;
		return;
	}
	free(queues);
	one->queues = NULL;
	ifaces->queues.n--;
}

static bool is_followed(const struct event_queue *queue)
{
	return queue->what == QUEUE_TBF || queue->what == QUEUE_HTB;
}

// Linux's usual qdiscs only queue.
static bool is_usual(const struct event *event)
{
	return event->foreign.is_harmless;
}

static struct queues *get(struct ifaces *ifaces, struct interface *one)
{
	if (one->queues)
		return one->queues;
	one->queues = calloc(1, sizeof(*one->queues));
	if (one->queues)
		ifaces->queues.n++;
	else
		ifaces_lost(ifaces, EVENT_QDISC);
	return one->queues;
}

static bool is_same_root(const struct queues *queues, const struct event_queue *queue)
{
	return queues->root.what == queue->what && queues->root.handle == queue->handle &&
	       !strcmp(queues->root.kind, queue->kind);
}

// One that is reported again has the classes that it had.
static void put_root(struct ifaces *ifaces, struct interface *one, const struct event *event)
{
	const struct event_queue *queue = &event->queue;

	if (is_usual(event)) {
		forget(ifaces, one);
		return;
	}
	if (one->queues && !is_same_root(one->queues, queue))
		forget(ifaces, one);
	struct queues *queues = get(ifaces, one);

	if (!queues)
		return;
	if (queue->what == QUEUE_HTB && event->is_dump && queues->root.what == QUEUE_NONE)
		queues->wants_dump = ifaces->queues.wants_dump = true;
	queues->root = *queue;
	queues->root_seen = ifaces->dump;
}

static bool is_below_root(const struct queues *queues, const struct event_queue *queue)
{
	return is_followed(&queues->root) &&
	       TC_H_MAJ(queue->parent) == TC_H_MAJ(queues->root.handle);
}

static void put_leaf(struct ifaces *ifaces, struct interface *one, const struct event_queue *queue)
{
	struct queues *queues = one->queues;

	if (!queues || !is_followed(&queues->root))
		return;
	if (!is_below_root(queues, queue) ||
		(queues->leaf.what && queues->leaf.parent != queue->parent)) {
		queues->has_more = true;
		return;
	}
	queues->leaf = *queue;
	queues->leaf_seen = ifaces->dump;
	queues->is_cut = false;
}

// tbf is left with nothing below it, htb gets a plain queue again.
static void remove_leaf(struct queues *queues, const struct event_queue *queue)
{
	if (!queues->leaf.what || queues->leaf.handle != queue->handle)
		return;
	queues->leaf = (struct event_queue){0};
	queues->is_cut = queues->root.what == QUEUE_TBF;
}

static void qdisc_event(struct ifaces *ifaces, struct interface *one, const struct event *event)
{
	const struct event_queue *queue = &event->queue;
	const bool is_root = queue->parent == TC_H_ROOT;

	if (!event->is_delete && is_root)
		put_root(ifaces, one, event);
	else if (!event->is_delete)
		put_leaf(ifaces, one, queue);
	else if (is_root && one->queues && one->queues->root.handle == queue->handle)
		forget(ifaces, one);
	else if (!is_root && one->queues)
		remove_leaf(one->queues, queue);
}

// A queue below a class that has none reported holds as many packets as the interface says.
static void put_class(struct interface *one, const struct event_queue *queue)
{
	struct queues *queues = one->queues;

	if (queues->class.what && queues->class.handle != queue->handle) {
		queues->has_more = true;
		return;
	}
	const uint32_t before = queues->class.limit_packets;

	queues->class = *queue;
	queues->class.limit_packets = before ? before : one->iface.queue_packets;
	if (!queues->class.limit_packets)
		queues->class.limit_packets = 1;
}

static void class_event(struct ifaces *ifaces, struct interface *one, const struct event *event)
{
	const struct event_queue *queue = &event->queue;
	struct queues *queues = one->queues;

	if (!queues || queues->root.what != QUEUE_HTB ||
		TC_H_MAJ(queue->what == QUEUE_FILTER ? queue->parent : queue->handle) !=
			TC_H_MAJ(queues->root.handle))
		return;
	if (queue->what == QUEUE_FILTER && event->is_delete) { // are others left?
		queues->wants_dump = ifaces->queues.wants_dump = true;
	} else if (queue->what == QUEUE_FILTER) {
		queues->has_filters = true;
	} else if (!event->is_delete) {
		put_class(one, queue);
	} else if (queues->has_more) { // which ones are left?
		queues->wants_dump = ifaces->queues.wants_dump = true;
	} else if (queues->class.handle == queue->handle) {
		queues->class = queues->leaf = (struct event_queue){0};
	}
}

void queues_event(struct ifaces *ifaces, const struct event *event)
{
	const struct event_queue *queue = &event->queue;
	struct interface *one = interfaces_find(&ifaces->all, queue->ifindex);

	if (!one)
		return;
	if (event->kind == EVENT_QDISC)
		qdisc_event(ifaces, one, event);
	else
		class_event(ifaces, one, event);
	if (!one->queues)
		return;
	one->queues->is_stale = true;
	queues_note(ifaces);
}

void queues_iface_changed(struct ifaces *ifaces, struct interface *one)
{
	if (!one->queues)
		return;
	one->queues->is_stale = true;
	queues_note(ifaces);
}

void queues_id_changed(struct ifaces *ifaces, struct interface *one)
{
	one->queue_id = IFACE_NONE;
	if (ifaces->queues.n)
		queues_note(ifaces);
}

void queues_sweep(struct ifaces *ifaces)
{
	for (struct interface *one = NULL; (one = interfaces_next(&ifaces->all, one));) {
		struct queues *queues = one->queues;

		if (!queues || !queues->root.what)
			continue;
		if (queues->root_seen != ifaces->dump) {
			forget(ifaces, one);
			continue;
		}
		if (queues->leaf.what && queues->leaf_seen != ifaces->dump)
			remove_leaf(queues, &queues->leaf);
		queues->is_stale = true;
		// Messages about classes may have been lost, too.
		if (queues->root.what == QUEUE_HTB)
			queues->wants_dump = ifaces->queues.wants_dump = true;
		queues_note(ifaces);
	}
}

struct class_dump {
	struct ifaces *ifaces;
	struct interface *one;
};

static void take_class(void *arg, const struct event *event)
{
	const struct class_dump *dump = arg;

	if (event->kind == EVENT_CLASS)
		class_event(dump->ifaces, dump->one, event);
}

// Those that are left from before are forgotten, but for the limit of a queue that was there.
static void dump_classes(struct ifaces *ifaces, struct interface *one)
{
	const struct mirror_ops *ops = &ifaces->mirror->settings.ops;
	struct class_dump dump = {ifaces, one};
	struct queues *queues = one->queues;
	const uint32_t handle = queues->class.handle, packets = queues->class.limit_packets;

	queues->wants_dump = false;
	queues->class = (struct event_queue){0};
	queues->has_more = queues->has_filters = false;
	if (!ops->dump_classes || ops->dump_classes(ops->ops, one->ifindex, take_class, &dump)) {
		queues->has_more = true; // until the next dump
		ifaces_lost(ifaces, EVENT_QDISC);
	}
	if (queues->class.handle == handle && packets)
		queues->class.limit_packets = packets;
	queues->is_stale = true;
	queues_note(ifaces);
}

bool queues_dump(struct ifaces *ifaces)
{
	unsigned n = 0;

	if (!ifaces->queues.wants_dump)
		return false;

	for (struct interface *one = NULL; (one = interfaces_next(&ifaces->all, one));)
		if (one->queues && one->queues->wants_dump) {
			dump_classes(ifaces, one);
			if (++n == DUMPS)
				return true;
		}
	ifaces->queues.wants_dump = false;
	return n;
}

void queues_iface_gone(struct ifaces *ifaces, struct interface *one)
{
	struct queues_of_linux *all = &ifaces->queues;
	const struct queues *queues = one->queues;

	if (!queues)
		return;
	if (vector_reserve(&all->gone, &all->gone_capacity, all->n_gone + 2, sizeof(*all->gone))) {
		ifaces_lost(ifaces, EVENT_QDISC);
	} else {
		if (queues->is_given)
			memcpy(all->gone[all->n_gone++], queues->named, EVENT_NAME_MAX);
		if (queues->old[0])
			memcpy(all->gone[all->n_gone++], queues->old, EVENT_NAME_MAX);
	}
	queues_note(ifaces);
	free(one->queues);
	one->queues = NULL;
	ifaces->queues.n--;
}

void queues_close(struct ifaces *ifaces)
{
	for (struct interface *one = NULL; (one = interfaces_next(&ifaces->all, one));)
		free(one->queues);
	free(ifaces->queues.gone);
}
