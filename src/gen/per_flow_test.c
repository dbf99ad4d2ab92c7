// Counters and checks by flow, through the sink, with hand-made frames; no device.
#include "gen/per_flow.h"

#include "gen/fake_frames.h"
#include "wire/headers.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { OUR_ID = 3, NOW = 5000000, N_FLOWS = 60, LEFT = 1, RIGHT = 2, FIRST_SECRET = 7, OTHER = 8 };

static struct fake_frame frames[RECOGNISE_MAX];
static struct rte_mbuf *burst[RECOGNISE_MAX];
static struct gen_stream stream;
static struct flows flows;
static struct sink sink;
static struct sink_stream *s;
static struct sink_port counters;

static void create(void)
{
	struct error error = {""};

	if (flows_make(&flows, &stream, &error) || sink_stream_create(&s, &stream, &error))
		fail_msg("%s", error.text);
	sink = (struct sink){.expects = stream.expect.n_ports};
	sink.by_id[OUR_ID] = s;
}

// 60 flows in scattered order, with other addresses and ports each.
static int begin(void **state)
{
	stream = fake_stream(OUR_ID);
	stream.n_flows = N_FLOWS;
	stream.counts_flows = true;
	stream.distribution = GEN_UNIFORM;
	stream.seed = 5;
	stream.fields[GEN_SRC_IP] = (struct gen_field){3, true};
	stream.fields[GEN_DST_IP] = (struct gen_field){5, false};
	stream.fields[GEN_SRC_PORT] = (struct gen_field){2, true};
	stream.fields[GEN_DST_PORT] = (struct gen_field){2, false};
	memset(&counters, 0, sizeof(counters));
	for (unsigned i = 0; i < RECOGNISE_MAX; i++)
		burst[i] = &frames[i].mbuf;
	create();
	return 0;
}

static int end(void **state)
{
	sink_stream_destroy(s);
	flows_free(&flows);
	return 0;
}

static void begin_again(void)
{
	end(NULL);
	create();
}

static uint32_t flow_of(uint64_t number)
{
	return flows_of(&flows, number);
}

static uint8_t *last_4(struct wire_addr *addr)
{
	return addr->bytes + (addr->family == 6 ? 12 : 0);
}

// Builds the frame as the generator would send it and the forwarder would mark it.
static void build(struct fake_frame *f, uint64_t number, uint8_t dscp)
{
	const struct stamp stamp = {.magic = STAMP_MAGIC,
		.stream = OUR_ID,
		.sequence = number & STAMP_40_BITS,
		.due = NOW - 3000,
		.sent = NOW - 2000};
	static struct frame_values values;
	struct gen_stream one = stream;
	struct fields fields;
	uint32_t be;

	fields_make(&fields, &stream);
	fields_seek(&fields, flow_of(number));
	fields_fill_fixed(&stream, &values);
	fields_fill(&fields, &values, 1);
	be = htobe32(values.field[GEN_SRC_IP][0]);
	memcpy(last_4(&one.recipe.src), &be, 4);
	be = htobe32(values.field[GEN_DST_IP][0]);
	memcpy(last_4(&one.recipe.dst), &be, 4);
	one.recipe.src_port = values.field[GEN_SRC_PORT][0];
	one.recipe.dst_port = values.field[GEN_DST_PORT][0];
	one.recipe.dscp_ecn = dscp << 2 | 1;
	fake_frame_build(f, &one, &stamp, 100);
}

static void take(uint8_t port, unsigned n)
{
	sink_take(&sink, &counters, burst, n, port, NOW);
	for (unsigned i = 0; i < n; i++)
		rte_mbuf_refcnt_set(burst[i], 2);
}

static void take_number(uint64_t number, uint8_t port, uint8_t dscp)
{
	build(&frames[0], number, dscp);
	take(port, 1);
}

static void expect_actions(void)
{
	stream.expect = (struct gen_expect){.secret = FIRST_SECRET,
		.n_ports = 2,
		.port = {LEFT, RIGHT},
		.n_dscps = 3,
		.dscp = {0, 10, 46}};
	begin_again();
}

static struct expect_action wanted(uint64_t number)
{
	return expect_action(&stream.expect, FIRST_SECRET, flow_of(number));
}

static void want(struct per_flow_counters wanted)
{
	const struct per_flow_counters *c = &s->per_flow->counters;

	assert_memory_equal(c, &wanted, sizeof(wanted));
}

// Three frames that are new, one that has been seen, and one for which there is no space. Stamps
// have only the last 40 bits of a time. The run began 2^48 cycles ago, which is a day.
static void logs_the_arrival_of_each_new_frame(void **state)
{
	const uint64_t now = (1ull << 50) + NOW, since = (1ull << 48) + 1008;
	const struct arrivals_clock clock = {now - since, 1000000};
	struct arrivals_written written;
	struct arrivals_record found[3];
	char path[] = "/tmp/dl3-arrivals-XXXXXX";
	struct error error = {""};

	stream.n_logged = 3;
	begin_again();
	for (unsigned i = 0; i < 5; i++) {
		build(&frames[0], (uint64_t[]){7, 9, 7, 11, 12}[i], 0);
		sink_take(&sink, &counters, burst, 1, LEFT, now);
		rte_mbuf_refcnt_set(burst[0], 2);
	}
	close(mkstemp(path));
	assert_int_equal(arrivals_write(s->per_flow->arrivals, path, &clock, &written, &error), 0);
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	assert_int_equal(fread(found, sizeof(found[0]), ARRAY_LEN(found), file), 3);
	fclose(file);
	assert_int_equal(remove(path), 0);
	assert_int_equal(written.frames, 3);
	assert_int_equal(written.missed, 1);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(found[i].flow, flow_of((uint64_t[]){7, 9, 11}[i]));
		assert_int_equal(found[i].at_ns, since * 1000);
		assert_int_equal(found[i].delay_ns, 2992000); // 3000 cycles, in units of 16
		assert_int_equal(found[i].bytes, frames[0].mbuf.pkt_len + WIRE_FCS_BYTES);
	}
}

static void counts_each_new_frame_for_its_flow(void **state)
{
	static const uint8_t kinds[] = {GEN_SEQUENTIAL, GEN_UNIFORM, GEN_ZIPF};

	for (unsigned kind = 0; kind < ARRAY_LEN(kinds); kind++) {
		uint32_t by_flow[N_FLOWS] = {0};

		stream.distribution = kinds[kind];
		stream.exponent = 1;
		begin_again();
		for (uint64_t number = 0; number < 2000; number += 40) {
			for (unsigned i = 0; i < 40; i++) {
				build(&frames[i], number + i, 0);
				by_flow[flow_of(number + i)]++;
			}
			take(LEFT, 40);
		}
		assert_memory_equal(s->per_flow->received, by_flow, sizeof(by_flow));
		assert_int_equal(s->counters.received, 2000);
	}
}

// Some of a burst are damaged, so that the frames of a group are not those of the results.
static void frames_in_mixed_bursts_are_checked_as_themselves(void **state)
{
	enum { N = 48 };

	expect_actions();
	uint64_t number = 0, n_valid = 0;
	for (unsigned round = 0; round < 4; round++) {
		for (unsigned i = 0; i < N; number++) {
			if (wanted(number).port != LEFT)
				continue;
			build(&frames[i], number, wanted(number).dscp);
			if (round % 2 && i % 5 == 3)
				rte_pktmbuf_mtod(&frames[i].mbuf, uint8_t *)[70] ^= 1;
			else
				n_valid++;
			i++;
		}
		take(LEFT, N);
		want((struct per_flow_counters){.checked = n_valid});
	}
}

static void counts_late_frames_but_none_twice(void **state)
{
	static const uint64_t numbers[] = {0, 5, 2, 5, 3, 2, 1, 4, 0};
	uint32_t by_flow[N_FLOWS] = {0};

	for (unsigned i = 0; i < ARRAY_LEN(numbers); i++)
		build(&frames[i], numbers[i], 0);
	take(LEFT, ARRAY_LEN(numbers));
	for (uint64_t number = 0; number < 6; number++)
		by_flow[flow_of(number)]++;
	assert_int_equal(s->counters.received, 6);
	assert_int_equal(s->counters.duplicated, 3);
	assert_memory_equal(s->per_flow->received, by_flow, sizeof(by_flow));
}

static void counts_on_after_40_bits(void **state)
{
	const uint64_t wrap = STAMP_40_BITS + 1;
	uint32_t by_flow[N_FLOWS] = {0};

	for (uint64_t number = wrap - 30; number < wrap + 30; number++) {
		take_number(number, LEFT, 0);
		by_flow[flow_of(number)]++;
	}
	assert_memory_equal(s->per_flow->received, by_flow, sizeof(by_flow));
}

static void counts_two_streams_of_one_burst_each_for_itself(void **state)
{
	struct gen_stream plain = fake_stream(OUR_ID + 1);
	struct sink_stream *other;
	struct error error;

	assert_int_equal(sink_stream_create(&other, &plain, &error), 0);
	assert_null(other->per_flow);
	sink.by_id[OUR_ID + 1] = other;
	for (unsigned i = 0; i < 20; i++) {
		const struct stamp stamp = {.magic = STAMP_MAGIC,
			.stream = OUR_ID + 1,
			.sequence = i / 2};

		build(&frames[i], i / 2, 0);
		if (i & 1)
			fake_frame_build(&frames[i], &plain, &stamp, 100);
	}
	take(LEFT, 20);
	uint32_t total = 0;
	for (unsigned i = 0; i < N_FLOWS; i++)
		total += s->per_flow->received[i];
	assert_int_equal(total, 10);
	assert_int_equal(other->counters.received, 10);
	sink_stream_destroy(other);
}

static void a_stream_that_wants_nothing_by_flow_has_nothing(void **state)
{
	stream.counts_flows = false;
	begin_again();
	assert_null(s->per_flow);
	take_number(0, LEFT, 63);
	assert_int_equal(s->counters.received, 1);
}

static void each_kind_of_frame_is_as_expected_with_the_right_action(void **state)
{
	for (unsigned kind = 0; kind < 8; kind++) {
		stream.recipe = wire_recipe(kind & 1 ? 6 : 4);
		stream.recipe.protocol = kind & 2 ? WIRE_PROTO_TCP : WIRE_PROTO_UDP;
		stream.recipe.has_vlan = kind & 4;
		stream.counts_flows = kind & 1;
		expect_actions();
		for (uint64_t number = 0; number < 200; number++)
			take_number(number, wanted(number).port, wanted(number).dscp);
		want((struct per_flow_counters){.checked = 200});
		assert_false(s->per_flow->wrong.is_known);
		assert_int_equal(s->counters.received, 200);
	}
	assert_int_equal(counters.misdirected, 0);
}

static void each_wrong_action_is_counted_by_its_kind(void **state)
{
	expect_actions();
	for (uint64_t number = 0; number < 100; number++) {
		struct expect_action right = wanted(number);

		take_number(number, number % 10 == 3 ? LEFT + RIGHT - right.port : right.port,
			number % 10 == 4 ? 63 : right.dscp);
	}
	want((struct per_flow_counters){.checked = 100, .wrong_port = 10, .wrong_dscp = 10});
	assert_true(s->per_flow->wrong.is_known);
	assert_int_equal(s->per_flow->wrong.sequence, 3);
	assert_int_equal(s->per_flow->wrong.flow, flow_of(3));
	assert_int_equal(s->per_flow->wrong.found.port, LEFT + RIGHT - wanted(3).port);
	assert_int_equal(s->per_flow->wrong.found.dscp, wanted(3).dscp);
}

// Also duplicates are checked: a copy must not leave on another port.
static void a_copy_on_the_wrong_port_is_found(void **state)
{
	expect_actions();
	take_number(0, wanted(0).port, wanted(0).dscp);
	take_number(0, LEFT + RIGHT - wanted(0).port, wanted(0).dscp);
	want((struct per_flow_counters){.checked = 2, .wrong_port = 1});
	assert_int_equal(s->counters.duplicated, 1);
}

static void a_port_that_is_not_in_the_list_is_misdirected(void **state)
{
	expect_actions();
	take_number(0, LEFT + RIGHT, wanted(0).dscp);
	want((struct per_flow_counters){0});
	assert_int_equal(counters.misdirected, 1);
	assert_int_equal(s->counters.received, 0);
}

static void only_marked_flows_may_have_the_other_action(void **state)
{
	struct per_flow_counters c = {.checked = 2000};

	expect_actions();
	stream.expect.every = 5;
	stream.expect.other_secret = OTHER;
	for (uint64_t number = 0; number < 2000; number++) {
		uint32_t flow = flow_of(number);
		struct expect_action right = wanted(number);
		struct expect_action other = expect_action(&stream.expect, OTHER, flow);
		bool is_same = right.port == other.port && right.dscp == other.dscp;

		take_number(number, other.port, other.dscp);
		if (is_same)
			continue;
		c.alternative += flow % 5 == 0;
		c.wrong_port += flow % 5 && right.port != other.port;
		c.wrong_dscp += flow % 5 && right.port == other.port;
	}
	assert_true(c.alternative > 100 && c.wrong_port > 100 && c.wrong_dscp > 100);
	want(c);
}

// Changes 16 bits of the frame and the checksums, as a forwarder that translates addresses does.
static void translate(struct fake_frame *f, unsigned at)
{
	fake_frame_bytes(f)[at] ^= 0x10;
	fake_repair(fake_frame_bytes(f), f->mbuf.data_len);
}

static void a_packet_with_another_tuple_is_not_that_of_its_flow(void **state)
{
	static const unsigned at4[] = {26, 29, 30, 33, 34, 35, 36, 37};
	static const unsigned at6[] = {22, 30, 37, 38, 45, 53, 54, 57};

	for (unsigned family = 4; family <= 6; family += 2) {
		stream.recipe = wire_recipe(family);
		expect_actions();
		for (uint64_t number = 0; number < ARRAY_LEN(at4); number++) {
			build(&frames[0], number, wanted(number).dscp);
			translate(&frames[0], family == 6 ? at6[number] : at4[number]);
			take(wanted(number).port, 1);
		}
		want((struct per_flow_counters){.checked = ARRAY_LEN(at4),
			.wrong_tuple = ARRAY_LEN(at4)});
		assert_int_equal(s->counters.received, ARRAY_LEN(at4));
		assert_true(s->per_flow->wrong.is_known);
	}
}

static void writes_one_number_per_flow(void **state)
{
	char folder[] = "/tmp/dl3-per-flow-XXXXXX", path[64];
	uint32_t found[N_FLOWS + 1];
	struct error error = {""};
	uint64_t total = 0;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/counts", folder);
	for (uint64_t number = 0; number < 500; number++)
		take_number(number, LEFT, 0);
	for (unsigned again = 0; again < 2; again++) {
		assert_int_equal(per_flow_write(s->per_flow, path, &total, &error), 0);
		FILE *file = fopen(path, "r");
		assert_non_null(file);
		assert_int_equal(fread(found, 4, N_FLOWS + 1, file), N_FLOWS);
		fclose(file);
		assert_int_equal(total, 500);
		assert_memory_equal(found, s->per_flow->received, N_FLOWS * sizeof(found[0]));
	}
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(folder), 0);
}

static void tells_why_it_cannot_write(void **state)
{
	char folder[] = "/tmp/dl3-per-flow-XXXXXX", path[64];
	struct error error = {""};
	uint64_t total;

	assert_int_equal(per_flow_write(s->per_flow, "/nowhere/a", &total, &error), -ENOENT);
	assert_string_equal(error.text, "cannot write /nowhere/a: No such file or directory");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/counts", folder);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(per_flow_write(s->per_flow, path, &total, &error), -EISDIR);
	assert_non_null(strstr(error.text, "Is a directory"));
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rmdir(folder), 0); // nothing else is left
}

// A link or a pipe beside the file, which others may have put there.
static void follows_nothing_beside_the_file(void **state)
{
	char folder[] = "/tmp/dl3-per-flow-XXXXXX", path[64], beside[80], other[64];
	struct error error = {""};
	struct stat status;
	uint64_t total;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/counts", folder);
	snprintf(beside, sizeof(beside), "%s.part", path);
	snprintf(other, sizeof(other), "%s/other", folder);
	assert_int_equal(symlink(other, beside), 0);
	assert_int_equal(per_flow_write(s->per_flow, path, &total, &error), -EEXIST);
	assert_non_null(strstr(error.text, ".part exists; if nothing else needs it, remove it"));
	assert_int_equal(stat(other, &status), -1);
	assert_int_equal(unlink(beside), 0);
	assert_int_equal(mkfifo(beside, 0600), 0); // opening it would wait for a reader
	assert_int_equal(per_flow_write(s->per_flow, path, &total, &error), -EEXIST);
	assert_int_equal(unlink(beside), 0);
	assert_int_equal(rmdir(folder), 0);
}

static void a_full_disk_leaves_the_old_file(void **state)
{
	char folder[] = "/tmp/dl3-per-flow-XXXXXX", path[64];
	struct rlimit old, none = {0, RLIM_INFINITY};
	struct error error = {""};
	uint64_t total;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/counts", folder);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fclose(file);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	none.rlim_max = old.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	int err = per_flow_write(s->per_flow, path, &total, &error);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(err, -EFBIG);
	assert_non_null(strstr(error.text, "File too large"));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(folder), 0); // nothing else is left
}

static void too_little_memory_is_one_sentence(void **state)
{
	struct rlimit old, low;
	struct error error = {""};
	struct per_flow *p;

	stream.n_flows = GEN_MAX_FLOWS;
	assert_int_equal(getrlimit(RLIMIT_AS, &old), 0);
	low = (struct rlimit){1 << 20, old.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_AS, &low), 0);
	int err = per_flow_create(&p, &stream, &error);
	assert_int_equal(setrlimit(RLIMIT_AS, &old), 0);
	assert_int_equal(err, -ENOMEM);
	assert_null(p);
	assert_non_null(strstr(error.text,
		"the counters of 16777216 flows take 65536 KiB of memory, but only "));
	stream.n_flows = N_FLOWS;
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(counts_each_new_frame_for_its_flow),
		CASE(logs_the_arrival_of_each_new_frame),
		CASE(counts_late_frames_but_none_twice),
		CASE(counts_on_after_40_bits),
		CASE(counts_two_streams_of_one_burst_each_for_itself),
		CASE(a_stream_that_wants_nothing_by_flow_has_nothing),
		CASE(each_kind_of_frame_is_as_expected_with_the_right_action),
		CASE(each_wrong_action_is_counted_by_its_kind),
		CASE(a_copy_on_the_wrong_port_is_found),
		CASE(a_port_that_is_not_in_the_list_is_misdirected),
		CASE(only_marked_flows_may_have_the_other_action),
		CASE(a_packet_with_another_tuple_is_not_that_of_its_flow),
		CASE(writes_one_number_per_flow),
		CASE(tells_why_it_cannot_write),
		CASE(follows_nothing_beside_the_file),
		CASE(frames_in_mixed_bursts_are_checked_as_themselves),
		CASE(a_full_disk_leaves_the_old_file),
		CASE(too_little_memory_is_one_sentence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
