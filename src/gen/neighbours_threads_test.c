// Ports that simulate hosts: what they answer and learn, with the test acting as their worker and
// their router; the rings also run under ThreadSanitizer.
#include "gen/fake_ctx.h"

#include "base/clock.h"
#include "wire/neighbour.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct wire_mac router = {{2, 0, 0, 0, 0, 0xfe}};
static const uint8_t worker_of[] = {0, 1};
static struct port_table_settings settings;
static struct gen_streams streams;
static struct neighbours n;

static struct wire_addr addr(const char *text)
{
	struct wire_addr addr = {.family = 0};

	assert_int_equal(wire_addr_parse(text, &addr), 0);
	return addr;
}

static struct wire_prefix own(const char *text, uint8_t len)
{
	return (struct wire_prefix){addr(text), len};
}

static struct gen_stream *add_stream(const char *src, const char *dst, unsigned n_dst)
{
	struct gen_stream *s = &streams.stream[streams.n++];

	*s = (struct gen_stream){.from = 0, .to = 1};
	snprintf(s->name, sizeof(s->name), "s%u", streams.n - 1);
	s->recipe.src = addr(src);
	s->recipe.dst = addr(dst);
	for (unsigned i = 0; i < GEN_N_FIELDS; i++)
		s->fields[i].count = 1;
	s->fields[GEN_DST_IP].count = n_dst;
	return s;
}

static int set_up(void **state)
{
	struct error error = {""};

	settings = fake_settings;
	settings.ports[0].n_addresses = 2;
	settings.ports[0].addresses[0] = own("10.0.0.1", 24);
	settings.ports[0].addresses[1] = own("2001:db8::1", 64);
	settings.ports[0].gateway[0] = addr("10.0.0.254");
	settings.ports[0].gateway[1] = addr("fe80::fe");
	settings.ports[1].n_addresses = 1;
	settings.ports[1].addresses[0] = own("10.0.1.1", 24);
	streams.n = 0;
	const struct neighbours_terms terms = {NULL, &settings, worker_of};
	return neighbours_make(&n, &terms, &error);
}

static int tear_down(void **state)
{
	neighbours_free(&n);
	return 0;
}

static struct wire_neighbour question(const char *target, const char *sender)
{
	return (struct wire_neighbour){.target = addr(target),
		.sender = addr(sender),
		.asker_mac = router};
}

// Receives a message as the worker of `port` does.
static void handle(unsigned port, const struct wire_neighbour *said)
{
	uint8_t frame[WIRE_NEIGHBOUR_BYTES];

	assert_true(post_received(n.post[port], frame, wire_neighbour_build(said, frame)));
}

// The next message sent on `port`; false: none.
static bool said(unsigned port, struct wire_neighbour *out)
{
	struct post_frame frame;

	if (!post_take(&n.post[port]->to_send, &frame))
		return false;
	assert_int_equal(wire_neighbour_read(frame.bytes, frame.n, out), 0);
	assert_int_equal(frame.is_reply, out->is_reply);
	return true;
}

// Sends a request on `port` and returns whether there is a reply, which must then be correct.
static bool is_answered(unsigned port, const char *target, const char *sender)
{
	struct wire_neighbour asked = question(target, sender), got;

	handle(port, &asked);
	neighbours_poll(&n, &streams);
	if (!said(port, &got))
		return false;
	assert_true(got.is_reply && wire_addr_equal(&got.target, &asked.target));
	assert_true(wire_mac_equal(&got.about_mac, &n.mac[port]));
	assert_true(wire_addr_equal(&got.sender, &asked.sender));
	assert_false(said(port, &got));
	return true;
}

static void answers_for_its_addresses_and_no_others(void **state)
{
	assert_true(is_answered(0, "10.0.0.1", "10.0.0.254"));
	assert_true(is_answered(0, "10.0.0.1", "0.0.0.0"));
	assert_true(is_answered(0, "2001:db8::1", "fe80::fe"));
	assert_true(is_answered(0, "fe80::ff:fe00:0", "fe80::fe"));
	assert_true(is_answered(1, "10.0.1.1", "10.0.1.254"));
	assert_false(is_answered(0, "10.0.0.2", "10.0.0.254"));
	assert_false(is_answered(0, "10.0.1.1", "10.0.0.254"));
	assert_false(is_answered(0, "2001:db8::2", "fe80::fe"));
	assert_false(is_answered(1, "fe80::ff:fe00:1", "fe80::fe"));
	assert_int_equal(n.post[0]->n_received, 7);
	assert_int_equal(n.n_malformed[0], 0);
}

static void answers_for_the_hosts_that_streams_make_in_its_networks(void **state)
{
	add_stream("10.0.0.7", "10.0.1.100", 50);
	add_stream("198.18.0.1", "198.19.0.1", 10);
	add_stream("10.0.0.254", "10.0.1.250", 1);
	assert_true(is_answered(0, "10.0.0.7", "10.0.0.254"));
	assert_true(is_answered(1, "10.0.1.100", "10.0.1.254"));
	assert_true(is_answered(1, "10.0.1.149", "10.0.1.254"));
	assert_false(is_answered(1, "10.0.1.99", "10.0.1.254"));
	assert_false(is_answered(1, "10.0.1.150", "10.0.1.254"));
	assert_false(is_answered(0, "10.0.1.100", "10.0.0.254")); // its other end
	assert_false(is_answered(1, "198.19.0.1", "10.0.1.254")); // behind the router
	assert_false(is_answered(0, "10.0.0.254", "10.0.0.3"));   // the router itself
}

static void answers_in_the_tag_of_the_question(void **state)
{
	struct wire_neighbour asked = question("10.0.0.1", "10.0.0.254"), got;

	asked.has_vlan = true;
	asked.vlan_tag = 0xa005;
	handle(0, &asked);
	neighbours_poll(&n, &streams);
	assert_true(said(0, &got));
	assert_true(got.has_vlan);
	assert_int_equal(got.vlan_tag, 0xa005);
}

static void counts_what_is_malformed_or_too_much_and_goes_on(void **state)
{
	struct wire_neighbour asked = question("10.0.0.1", "10.0.0.254");
	uint8_t frame[512] = {0};
	size_t bytes = wire_neighbour_build(&asked, frame);

	frame[15] = 9;
	assert_true(post_received(n.post[0], frame, bytes));
	assert_true(post_received(n.post[0], frame, sizeof(frame)));
	for (unsigned i = 0; i < POST_SLOTS; i++)
		handle(0, &asked);
	for (unsigned i = 0; i < POST_SLOTS / NEIGHBOURS_AT_ONCE; i++)
		neighbours_poll(&n, &streams);
	assert_int_equal(n.n_malformed[0], 1);
	assert_int_equal(n.post[0]->n_overflow, 2);
	assert_int_equal(n.post[0]->n_received, POST_SLOTS + 2);
	for (unsigned i = 0; i < POST_SLOTS - 1; i++)
		assert_true(said(0, &asked));
	assert_false(said(0, &asked));
	assert_true(is_answered(0, "10.0.0.1", "10.0.0.254"));
	frame[12] = 0;
	assert_false(post_received(n.post[0], frame, bytes));
	assert_false(post_received(NULL, frame, bytes));
}

static void names_a_stream_that_has_nobody_to_ask(void **state)
{
	struct error error = {""};

	add_stream("10.0.0.1", "198.19.0.1", 5)->wants_mac = true;
	assert_int_equal(neighbours_check(&settings, &streams, &error), 0);
	settings.ports[0].gateway[0].family = 0;
	assert_int_equal(neighbours_check(&settings, &streams, &error), -EINVAL);
	assert_string_equal(error.text,
		"streams[0] (s0): dst_mac \"auto\": port left has no IPv4 gateway to resolve; add "
		"\"addresses\" and \"gateway\" to the port, or specify the MAC address here");
	streams.n = 0;
	add_stream("10.0.0.1", "10.0.0.9", 1)->wants_mac = true;
	assert_int_equal(neighbours_check(&settings, &streams, &error), 0);
	streams.stream[0].fields[GEN_DST_IP].count = 2;
	assert_int_equal(neighbours_check(&settings, &streams, &error), -EINVAL);
}

static void says_who_does_not_answer(void **state)
{
	struct error error = {""};

	add_stream("10.0.0.1", "198.19.0.1", 5)->wants_mac = true;
	assert_int_equal(neighbours_resolve(&n, &streams, &error), -EHOSTUNREACH);
	assert_string_equal(error.text,
		"stream s0: 10.0.0.254 on port left did not reply to ARP or ND within 3 s; check "
		"that it is up and has an address in the port's network, then send again, or "
		"specify dst_mac");
}

// A router at the other end of both ports, which answers the second request.
static bool is_over; // atomic

static void *route(void *unused)
{
	unsigned n_asked = 0;

	while (!__atomic_load_n(&is_over, __ATOMIC_ACQUIRE)) {
		struct wire_neighbour asked;

		for (unsigned port = 0; port < FAKE_WORKERS; port++) {
			if (!said(port, &asked) || asked.is_reply || ++n_asked <= 3)
				continue;
			asked.is_reply = true;
			asked.about_mac = router;
			asked.about_mac.bytes[4] = asked.has_vlan ? 0xaa : asked.target.family;
			handle(port, &asked);
		}
	}
	return NULL;
}

static void asks_until_it_is_told_and_writes_it_into_the_streams(void **state)
{
	struct error error = {""};
	pthread_t thread;

	add_stream("10.0.0.1", "198.19.0.1", 5)->wants_mac = true;
	add_stream("198.18.0.1", "198.19.0.1", 5)->wants_mac = true;
	add_stream("2001:db8::1", "2001:db8:9::1", 1)->wants_mac = true;
	add_stream("10.0.0.1", "198.19.0.1", 5)->wants_mac = true;
	streams.stream[3].recipe.has_vlan = true;
	streams.stream[3].recipe.vlan_tag = 5;
	add_stream("10.0.0.1", "198.19.0.1", 5);
	__atomic_store_n(&is_over, false, __ATOMIC_RELEASE);
	assert_int_equal(pthread_create(&thread, NULL, route, NULL), 0);
	int err = neighbours_resolve(&n, &streams, &error);
	__atomic_store_n(&is_over, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	if (err)
		fail_msg("refused: %s", error.text);
	assert_int_equal(n.n_wanted, 3);
	assert_int_equal(streams.stream[0].recipe.dst_mac.bytes[4], 4);
	assert_int_equal(streams.stream[1].recipe.dst_mac.bytes[4], 4);
	assert_int_equal(streams.stream[2].recipe.dst_mac.bytes[4], 6);
	assert_int_equal(streams.stream[3].recipe.dst_mac.bytes[4], 0xaa);
	assert_int_equal(streams.stream[4].recipe.dst_mac.bytes[0], 0);
}

static struct post_ring ring;

static void *write_ring(void *unused)
{
	for (uint32_t i = 0; i < 100000;) {
		uint8_t frame[104] = {0};

		memcpy(frame, &i, sizeof(i));
		i += post_put(&ring, frame, 4 + i % 100, i & 1);
	}
	return NULL;
}

static void a_ring_keeps_all_frames_and_their_order(void **state)
{
	struct post_frame frame;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, write_ring, NULL), 0);
	for (uint32_t i = 0; i < 100000;) {
		if (!post_take(&ring, &frame))
			continue;
		assert_memory_equal(frame.bytes, &i, 4);
		assert_int_equal(frame.n, 4 + i % 100);
		assert_int_equal(frame.is_reply, i & 1);
		i++;
	}
	pthread_join(thread, NULL);
	assert_false(post_take(&ring, &frame));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(answers_for_its_addresses_and_no_others),
		TEST(answers_for_the_hosts_that_streams_make_in_its_networks),
		TEST(answers_in_the_tag_of_the_question),
		TEST(counts_what_is_malformed_or_too_much_and_goes_on),
		TEST(names_a_stream_that_has_nobody_to_ask),
		TEST(says_who_does_not_answer),
		TEST(asks_until_it_is_told_and_writes_it_into_the_streams),
		TEST(a_ring_keeps_all_frames_and_their_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
