// Profiles as text, so that they can be staged again. Control thread.
#include "qos/inside.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

struct printer {
	char *text;
	size_t n;
};

__attribute__((format(printf, 2, 3))) static void put(struct printer *out, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	const int n = vsnprintf(out->text + out->n, QOS_PROFILE_TEXT - out->n, format, args);

	va_end(args);
	out->n = MIN_OF(out->n + (size_t)MAX_OF(n, 0), QOS_PROFILE_TEXT - 1ul);
}

static void put_dscps(struct printer *out, const char *key, uint64_t dscps)
{
	const char *before = key;

	for (; dscps; dscps &= dscps - 1) {
		put(out, before == key ? " %s " : "%s", before == key ? key : ",");
		put(out, "%d", __builtin_ctzll(dscps));
		before = ",";
	}
}

static void put_act(struct printer *out, unsigned colour, const struct qos_act *act)
{
	put(out, " %s %s", colour_words[colour], act->drops ? "drop" : "pass");
	if (act->dscp != QOS_KEEP)
		put(out, ",dscp:%u", act->dscp);
	if (act->priority != QOS_KEEP)
		put(out, ",priority:%u", act->priority);
}

// The classes of `n` values but those of the last one; it if there are no others.
static void put_classes(struct printer *out, const char *key, unsigned n, const uint8_t class[])
{
	const char *before = " ";

	put(out, " %s", key);
	for (unsigned i = 0; i < n; i++)
		if (class[i] != SHAPE_CLASSES - 1) {
			put(out, "%s%u:%u", before, i, class[i]);
			before = ",";
		}
	if (*before == ' ')
		put(out, " 0:%u", class[0]);
}

static void put_queues(struct printer *out, const struct profile *p)
{
	const struct shape_profile *q = &p->queues;
	uint8_t class[64];

	put(out, " strict %u weights %u,%u,%u queue %s target %uus interval %uus limit %uus",
		q->strict_percent, q->weight[1], q->weight[2], q->weight[3],
		q->is_fifo   ? "fifo"
		: q->is_fair ? "fq_codel"
			     : "codel",
		q->target_us, q->interval_us, q->limit_us);
	put(out, " limit_bytes %uB", q->limit_bytes);
	if (q->limit_packets)
		put(out, " limit_packets %u", q->limit_packets);
	if (q->marks)
		put(out, " ecn yes");
	for (unsigned i = 0; i < 64; i++)
		class[i] = qos_class_of_dscp(&p->terms, i);
	put_classes(out, "class_dscp", 64, class);
	for (unsigned i = 0; i < 8; i++)
		class[i] = qos_class_of_priority(&p->terms, i);
	if (p->terms.by_priority)
		put_classes(out, "class_priority", 8, class);
}

static void put_shaping(struct printer *out, const struct profile *p)
{
	put(out, " weight %u", p->weight);
	if (p->kind == PROFILE_SHAPES)
		put_queues(out, p);
	if (p->parent)
		put(out, " parent %s", p->parent_name);
	if (p->may_exceed)
		put(out, " oversubscribe yes");
}

const char *profile_print(const struct profile *p, char text[QOS_PROFILE_TEXT])
{
	const char *excess = p->terms.marker == POLICE_RFC2698 ? "peak" : "excess";
	struct printer out = {text, 0};
	char rate[32];

	put(&out, "%s %s %s burst %" PRIu64 "B", p->name, kind_words[p->kind],
		words_print_rate(p->rate, rate), p->burst);
	if (p->excess_rate)
		put(&out, " %s_rate %s", excess, words_print_rate(p->excess_rate, rate));
	if (p->excess_burst)
		put(&out, " %s_burst %" PRIu64 "B", excess, p->excess_burst);
	put(&out, " counts %s", counts_words[p->terms.counts]);
	if (p->terms.overhead)
		put(&out, " overhead %d", p->terms.overhead);
	if (p->terms.mpu)
		put(&out, " mpu %u", p->terms.mpu);
	if (p->kind != PROFILE_POLICES) {
		put_shaping(&out, p);
		return text;
	}
	put_dscps(&out, "yellow_dscp", p->terms.yellow);
	put_dscps(&out, "red_dscp", p->terms.red);
	for (unsigned i = 0; i < POLICE_COLOURS; i++)
		put_act(&out, i, &p->terms.act[i]);
	return text;
}
