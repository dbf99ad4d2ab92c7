// tc: the qdiscs by which Linux shapes, and their classes. Pure.
#include "netlink/decode_inside.h"

#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>

#define NS 1000000000ull
enum { TICK_NS = 64 }; // the kernel's unit of bursts

struct queue_draft {
	struct event_queue *out;
	struct piece options;
	bool has_options;
	// Of tbf and htb: their structs, and rates that do not fit into these.
	struct piece parms, init;
	uint64_t rate, ceil;
	bool has_peak, is_offloaded;
	// Of fq_codel.
	uint32_t target_us, interval_us, limit, memory, ecn;
	bool has_threshold;
};
#define AT(field) offsetof(struct queue_draft, field)

static bool take_piece(struct piece *out, const struct piece *value)
{
	*out = *value;
	return true;
}

static bool take_options(void *out, const struct piece *value)
{
	((struct queue_draft *)out)->has_options = true;
	return take_piece(&((struct queue_draft *)out)->options, value);
}

static bool take_parms(void *out, const struct piece *value)
{
	return take_piece(&((struct queue_draft *)out)->parms, value);
}

static bool take_init(void *out, const struct piece *value)
{
	return take_piece(&((struct queue_draft *)out)->init, value);
}

static bool take_u64(uint64_t *out, const struct piece *value)
{
	if (value->n < sizeof(*out))
		return false;
	memcpy(out, value->bytes, sizeof(*out));
	return true;
}

static bool take_rate(void *out, const struct piece *value)
{
	return take_u64(&((struct queue_draft *)out)->rate, value);
}

static bool take_ceil(void *out, const struct piece *value)
{
	return take_u64(&((struct queue_draft *)out)->ceil, value);
}

static const struct want want_queue[] = {
	[TCA_OPTIONS] = {WANT_TAKE, .take = take_options},
};
static const struct wants wants_queue = WANTS(want_queue);

static const struct want want_tbf[] = {
	[TCA_TBF_PARMS] = {WANT_TAKE, .take = take_parms},
	[TCA_TBF_RATE64] = {WANT_TAKE, .take = take_rate},
	[TCA_TBF_PRATE64] = {WANT_THERE, .at = AT(has_peak)},
};
static const struct wants wants_tbf = WANTS(want_tbf);

static const struct want want_htb[] = {
	[TCA_HTB_PARMS] = {WANT_TAKE, .take = take_parms},
	[TCA_HTB_INIT] = {WANT_TAKE, .take = take_init},
	[TCA_HTB_RATE64] = {WANT_TAKE, .take = take_rate},
	[TCA_HTB_CEIL64] = {WANT_TAKE, .take = take_ceil},
	[TCA_HTB_OFFLOAD] = {WANT_THERE, .at = AT(is_offloaded)},
};
static const struct wants wants_htb = WANTS(want_htb);

static const struct want want_fq_codel[] = {
	[TCA_FQ_CODEL_TARGET] = {WANT_U32, .at = AT(target_us)},
	[TCA_FQ_CODEL_LIMIT] = {WANT_U32, .at = AT(limit)},
	[TCA_FQ_CODEL_INTERVAL] = {WANT_U32, .at = AT(interval_us)},
	[TCA_FQ_CODEL_ECN] = {WANT_U32, .at = AT(ecn)},
	[TCA_FQ_CODEL_CE_THRESHOLD] = {WANT_THERE, .at = AT(has_threshold)},
	[TCA_FQ_CODEL_MEMORY_LIMIT] = {WANT_U32, .at = AT(memory)},
};
static const struct wants wants_fq_codel = WANTS(want_fq_codel);

// The first reason stays.
static void refuse(struct event_queue *out, const char *reason)
{
	if (!out->reason[0])
		snprintf(out->reason, sizeof(out->reason), "%s", reason);
}

// Linux has bursts as the time that they take, cut to whole ticks; rounded, what was a whole number
// of bytes is the same again.
static uint64_t bytes_of(uint32_t ticks, uint64_t rate)
{
	return (uint64_t)(((unsigned __int128)ticks * TICK_NS * rate + NS / 2) / NS);
}

static void read_spec(const struct tc_ratespec *spec, struct event_queue *out)
{
	const uint8_t layer = spec->linklayer & TC_LINKLAYER_MASK;

	if (layer != TC_LINKLAYER_UNAWARE && layer != TC_LINKLAYER_ETHERNET)
		refuse(out, "linklayer is other than ethernet");
	out->overhead = spec->overhead;
	out->mpu = spec->mpu;
}

static bool read_tbf(struct queue_draft *draft)
{
	struct event_queue *out = draft->out;
	struct tc_tbf_qopt parms;

	if (!attrs_take(&wants_tbf, &draft->options, draft) || draft->parms.n < sizeof(parms))
		return false;
	memcpy(&parms, draft->parms.bytes, sizeof(parms));
	out->rate = draft->rate ? draft->rate : parms.rate.rate;
	out->burst = bytes_of(parms.buffer, out->rate);
	out->limit_bytes = parms.limit;
	read_spec(&parms.rate, out);
	if (draft->has_peak || parms.peakrate.rate)
		refuse(out, "it has a peakrate");
	if (!out->rate)
		refuse(out, "its rate is 0");
	return true;
}

static bool read_htb(struct queue_draft *draft)
{
	struct event_queue *out = draft->out;
	struct tc_htb_glob glob;

	if (!attrs_take(&wants_htb, &draft->options, draft) || draft->init.n < sizeof(glob))
		return false;
	memcpy(&glob, draft->init.bytes, sizeof(glob));
	out->default_class = TC_H_MAKE(TC_H_MAJ(out->handle), glob.defcls);
	if (draft->is_offloaded)
		refuse(out, "it is offloaded");
	return true;
}

// Without a parent from which it can borrow, a class has the lower one of both rates.
static bool read_class(struct queue_draft *draft)
{
	struct event_queue *out = draft->out;
	struct tc_htb_opt parms;

	if (!attrs_take(&wants_htb, &draft->options, draft) || draft->parms.n < sizeof(parms))
		return false;
	memcpy(&parms, draft->parms.bytes, sizeof(parms));
	out->rate = draft->rate ? draft->rate : parms.rate.rate;
	const uint64_t ceil = draft->ceil ? draft->ceil : parms.ceil.rate;
	const uint64_t ceil_burst = bytes_of(parms.cbuffer, ceil);

	out->burst = bytes_of(parms.buffer, out->rate);
	out->burst = ceil_burst < out->burst ? ceil_burst : out->burst;
	read_spec(&parms.rate, out);
	if (ceil != out->rate)
		refuse(out, "its class has a ceil other than its rate");
	if (parms.rate.overhead != parms.ceil.overhead || parms.rate.mpu != parms.ceil.mpu)
		refuse(out, "the rate and the ceil of its class count bytes differently");
	if (!out->rate)
		refuse(out, "the rate of its class is 0");
	return true;
}

static bool read_fq_codel(struct queue_draft *draft)
{
	struct event_queue *out = draft->out;

	if (!attrs_take(&wants_fq_codel, &draft->options, draft))
		return false;
	out->target_us = draft->target_us;
	out->interval_us = draft->interval_us;
	out->limit_packets = draft->limit;
	out->limit_bytes = draft->memory;
	out->marks = draft->ecn;
	if (draft->has_threshold)
		refuse(out, "fq_codel has a ce_threshold");
	return true;
}

static bool read_fifo(struct queue_draft *draft)
{
	struct tc_fifo_qopt parms;

	if (draft->options.n < sizeof(parms))
		return false;
	memcpy(&parms, draft->options.bytes, sizeof(parms));
	if (draft->out->kind[0] == 'p')
		draft->out->limit_packets = parms.limit;
	else
		draft->out->limit_bytes = parms.limit;
	return true;
}

static const struct kind {
	const char *name;
	uint8_t what;
	bool (*read)(struct queue_draft *draft);
} kinds[] = {
	{"tbf", QUEUE_TBF, read_tbf},
	{"htb", QUEUE_HTB, read_htb},
	{"fq_codel", QUEUE_FQ_CODEL, read_fq_codel},
	{"pfifo", QUEUE_FIFO, read_fifo},
	{"bfifo", QUEUE_FIFO, read_fifo},
};

static const struct kind *kind_of(const char *name)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	return NULL;
}

static void set_place(const struct nlmsghdr *message, struct event_queue *out)
{
	const struct tcmsg *head = NLMSG_DATA(message);

	out->ifindex = head->tcm_ifindex;
	out->handle = head->tcm_handle;
	out->parent = head->tcm_parent;
}

// `out->kind` is set.
static bool read_options(const struct nlmsghdr *message, bool (*read)(struct queue_draft *draft),
	struct event_queue *out)
{
	struct queue_draft draft = {.out = out};

	if (read_attrs(message, sizeof(struct tcmsg), &wants_queue, &draft) != DECODE_EVENT)
		return false;
	if (!draft.has_options)
		refuse(out, "Linux does not tell its options");
	return !draft.has_options || read(&draft);
}

bool queue_read(const struct nlmsghdr *message, const char *kind_name, bool is_delete,
	struct event_queue *out)
{
	const struct kind *kind = kind_of(kind_name);

	*out = (struct event_queue){.what = kind ? kind->what : QUEUE_OTHER};
	set_place(message, out);
	snprintf(out->kind, sizeof(out->kind), "%s", kind_name);
	if (!kind)
		refuse(out, "workers do not follow this kind");
	return !kind || is_delete || read_options(message, kind->read, out);
}

struct class_draft {
	char kind[QUEUE_KIND_MAX];
};
static const struct want want_class[] = {
	[TCA_KIND] = {WANT_TEXT, .at = offsetof(struct class_draft, kind)},
};
static const struct wants wants_class = WANTS(want_class);

// Classes of other qdiscs say nothing: the qdisc itself is left to Linux.
static enum decode_result class_read(const struct nlmsghdr *message, struct event *event)
{
	struct event_queue *out = &event->queue;
	struct class_draft draft = {.kind = ""};

	*out = (struct event_queue){.what = QUEUE_CLASS};
	set_place(message, out);
	if (read_attrs(message, sizeof(struct tcmsg), &wants_class, &draft) != DECODE_EVENT)
		return DECODE_MALFORMED;
	if (strcmp(draft.kind, "htb") != 0)
		return DECODE_IGNORED;
	memcpy(out->kind, draft.kind, sizeof(out->kind));
	return event->is_delete || read_options(message, read_class, out) ? DECODE_EVENT
	                                                                  : DECODE_MALFORMED;
}
const struct reader read_htb_class = {sizeof(struct tcmsg), EVENT_CLASS, 0, class_read};

void queue_read_filter(const struct nlmsghdr *message, struct event *event)
{
	event->kind = EVENT_CLASS;
	event->queue = (struct event_queue){.what = QUEUE_FILTER};
	set_place(message, &event->queue);
}
