// Qdiscs and classes of tc: messages recorded from Linux 6.18, some values of which are others, and
// one of fq_codel as Linux writes it.
#include "netlink/corpus.h"
#include "netlink/event.h"

#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <string.h>

enum { ROOT = 1 << 16, BELOW = 2 << 16 };

static struct event decoded(const char *name)
{
	struct message message;
	struct event event;

	load(&message, name);
	assert_int_equal(decode_route(message.bytes, message.n, &event), DECODE_EVENT);
	return event;
}

static void reads_a_token_bucket(void **state)
{
	struct event event = decoded("qdisc_tbf");
	const struct event_queue *queue = &event.queue;

	assert_int_equal(event.kind, EVENT_QDISC);
	assert_false(event.foreign.is_harmless);
	assert_int_equal(queue->what, QUEUE_TBF);
	assert_int_equal(queue->handle, ROOT);
	assert_int_equal(queue->parent, TC_H_ROOT);
	assert_int_equal(queue->rate, 1000000);
	assert_int_equal(queue->burst, 100000);
	assert_int_equal(queue->limit_bytes, 150000);
	assert_int_equal(queue->overhead + queue->mpu + queue->limit_packets, 0);
	assert_string_equal(queue->reason, "");
	event = decoded("qdisc_tbf_deleted");
	assert_true(event.is_delete);
	assert_int_equal(queue->handle, ROOT);
}

static void reads_rates_above_32_bits_and_says_what_is_not_followed(void **state)
{
	struct event event = decoded("qdisc_tbf_peakrate");
	const struct event_queue *queue = &event.queue;

	assert_int_equal(queue->rate, 5000000000);
	assert_string_equal(queue->reason, "it has a peakrate");
	event = decoded("qdisc_tbf_atm");
	assert_int_equal(queue->overhead, 4);
	assert_int_equal(queue->mpu, 64);
	assert_string_equal(queue->reason, "linklayer is other than ethernet");
	event = decoded("class_htb_ceil");
	assert_int_equal(queue->rate, 5000000000);
	assert_string_equal(queue->reason, "its class has a ceil other than its rate");
}

static void reads_classes_and_the_queues_below_them(void **state)
{
	struct event event = decoded("qdisc_htb");
	const struct event_queue *queue = &event.queue;

	assert_int_equal(queue->what, QUEUE_HTB);
	assert_int_equal(queue->default_class, ROOT | 1);
	assert_string_equal(queue->reason, "");
	event = decoded("class_htb");
	assert_int_equal(event.kind, EVENT_CLASS);
	assert_int_equal(queue->what, QUEUE_CLASS);
	assert_int_equal(queue->handle, ROOT | 1);
	assert_int_equal(queue->parent, TC_H_ROOT);
	assert_int_equal(queue->rate, 1000000);
	assert_int_equal(queue->burst, 100000);
	assert_string_equal(queue->reason, "");
	event = decoded("class_htb_deleted");
	assert_true(event.is_delete);
	assert_int_equal(queue->handle, ROOT | 2);
	event = decoded("qdisc_pfifo");
	assert_true(event.foreign.is_harmless);
	assert_int_equal(queue->what, QUEUE_FIFO);
	assert_int_equal(queue->handle, BELOW);
	assert_int_equal(queue->parent, ROOT | 1);
	assert_int_equal(queue->limit_packets, 77);
	event = decoded("qdisc_bfifo");
	assert_int_equal(queue->limit_bytes, 50000);
	assert_int_equal(queue->limit_packets, 0);
	event = decoded("filter_of_htb");
	assert_int_equal(event.kind, EVENT_CLASS);
	assert_int_equal(queue->what, QUEUE_FILTER);
	assert_int_equal(queue->parent, ROOT);
}

static void the_lower_burst_of_a_class_counts(void **state)
{
	struct message message;
	struct event event;

	// struct tc_htb_opt follows the attribute's header: cbuffer is its fourth word behind two
	// rates of 12 bytes.
	load(&message, "class_htb");
	for (size_t i = 0; i + sizeof(struct tc_htb_opt) <= message.n; i += 4) {
		struct tc_htb_opt opt;

		memcpy(&opt, message.bytes + i, sizeof(opt));
		if (opt.rate.rate != 1000000 || opt.ceil.rate != 1000000)
			continue;
		opt.cbuffer = 25000000; // 1.6 s
		opt.buffer /= 2;
		memcpy(message.bytes + i, &opt, sizeof(opt));
		assert_int_equal(decode_route(message.bytes, message.n, &event), DECODE_EVENT);
		assert_int_equal(event.queue.burst, 50000);
		opt.cbuffer = 15625; // 1 ms
		memcpy(message.bytes + i, &opt, sizeof(opt));
		assert_int_equal(decode_route(message.bytes, message.n, &event), DECODE_EVENT);
		assert_int_equal(event.queue.burst, 1000);
		return;
	}
	fail();
}

static void put(struct message *to, uint16_t type, const void *bytes, uint16_t n)
{
	const struct nlattr attr = {(uint16_t)(NLA_HDRLEN + n), type};

	memcpy(to->bytes + to->n, &attr, sizeof(attr));
	memcpy(to->bytes + to->n + NLA_HDRLEN, bytes, n);
	to->n += NLA_ALIGN(NLA_HDRLEN + n);
}

static struct message fq_codel(bool has_threshold)
{
	static const struct {
		uint16_t type;
		uint32_t value;
	} rows[] = {{TCA_FQ_CODEL_TARGET, 4999}, {TCA_FQ_CODEL_LIMIT, 10240},
		{TCA_FQ_CODEL_INTERVAL, 99999}, {TCA_FQ_CODEL_ECN, 1}, {TCA_FQ_CODEL_FLOWS, 1024},
		{TCA_FQ_CODEL_QUANTUM, 1514}, {TCA_FQ_CODEL_MEMORY_LIMIT, 33554432},
		{TCA_FQ_CODEL_DROP_BATCH_SIZE, 64}, {TCA_FQ_CODEL_CE_THRESHOLD, 1000}};
	const struct tcmsg head = {.tcm_ifindex = 9, .tcm_handle = BELOW, .tcm_parent = ROOT | 1};
	struct message inside = {.n = 0}, out = {.n = NLMSG_HDRLEN + sizeof(head)};
	const unsigned n = sizeof(rows) / sizeof(rows[0]) - !has_threshold;

	for (unsigned i = 0; i < n; i++)
		put(&inside, rows[i].type, &rows[i].value, sizeof(rows[i].value));
	memcpy(out.bytes + NLMSG_HDRLEN, &head, sizeof(head));
	put(&out, TCA_KIND, "fq_codel", sizeof("fq_codel"));
	put(&out, TCA_OPTIONS, inside.bytes, (uint16_t)inside.n);
	*(struct nlmsghdr *)out.bytes =
		(struct nlmsghdr){.nlmsg_len = out.n, .nlmsg_type = RTM_NEWQDISC};
	return out;
}

static void reads_fq_codel(void **state)
{
	struct message message = fq_codel(false);
	struct event event;
	const struct event_queue *queue = &event.queue;

	assert_int_equal(decode_route(message.bytes, message.n, &event), DECODE_EVENT);
	assert_int_equal(queue->what, QUEUE_FQ_CODEL);
	assert_int_equal(queue->target_us, 4999);
	assert_int_equal(queue->interval_us, 99999);
	assert_int_equal(queue->limit_packets, 10240);
	assert_int_equal(queue->limit_bytes, 33554432);
	assert_true(queue->marks);
	assert_string_equal(queue->reason, "");
	message = fq_codel(true);
	assert_int_equal(decode_route(message.bytes, message.n, &event), DECODE_EVENT);
	assert_string_equal(queue->reason, "fq_codel has a ce_threshold");
}

static void a_message_cut_anywhere_is_malformed_or_says_so(void **state)
{
	static const char *const names[] = {"qdisc_tbf", "qdisc_htb", "class_htb", "qdisc_pfifo"};

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct message message;
		struct event event;

		load(&message, names[i]);
		for (size_t n = message.n - 4; n > NLMSG_HDRLEN; n -= 4) {
			((struct nlmsghdr *)message.bytes)->nlmsg_len = (uint32_t)n;
			if (decode_route(message.bytes, n, &event) != DECODE_EVENT)
				continue;
			assert_true(event.queue.reason[0] || event.queue.rate ||
				    event.queue.what == QUEUE_HTB ||
				    event.queue.what == QUEUE_FIFO);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_a_token_bucket),
		cmocka_unit_test(reads_rates_above_32_bits_and_says_what_is_not_followed),
		cmocka_unit_test(reads_classes_and_the_queues_below_them),
		cmocka_unit_test(the_lower_burst_of_a_class_counts),
		cmocka_unit_test(reads_fq_codel),
		cmocka_unit_test(a_message_cut_anywhere_is_malformed_or_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
