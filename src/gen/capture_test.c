// Valid and invalid capture files, and which of their frames have space for a stamp.
#include "gen/capture.h"

#include "base/bits.h"
#include "wire/build.h"
#include "wire/headers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// A file in memory, in the format that tcpdump writes on this machine.
static struct {
	size_t n;
	uint8_t bytes[1 << 18];
} file;
static struct gen_stream stream;
static struct capture capture;
static struct error error;

static void put(const void *bytes, size_t n)
{
	memcpy(file.bytes + file.n, bytes, n);
	file.n += n;
}

static void put_head(uint32_t kind)
{
	const uint32_t head[] = {0xa1b23c4d, 2 | 4 << 16, 0, 0, 65535, kind}; // magic of files with
	                                                                      // ns timestamps

	put(head, sizeof(head));
}

static void put_frame(uint32_t s, uint32_t ns, const void *frame, uint32_t n, uint32_t n_wire)
{
	const uint32_t head[] = {s, ns, n, n_wire};

	put(head, sizeof(head));
	put(frame, n);
}

static int take(void)
{
	capture_free(&capture);
	error.text[0] = 0;
	return capture_read_file(&capture, fmemopen(file.bytes, file.n, "r"), &stream, &error);
}

static int set_up(void **state)
{
	file.n = 0;
	stream = (struct gen_stream){.capture = {.path = "a.pcap"}};
	return 0;
}

static int tear_down(void **state)
{
	capture_free(&capture);
	return 0;
}

static void takes_frames_as_they_are_with_their_times(void **state)
{
	uint8_t frame[1514];

	for (unsigned i = 0; i < sizeof(frame); i++)
		frame[i] = i * 7;
	put_head(1);
	put_frame(100, 999999000, frame, 1514, 1514);
	put_frame(101, 1000, frame + 1, 42, 42);
	put_frame(100, 0, frame + 2, 100, 100); // the clock was set back
	put_frame(101, 5000, frame + 3, 60, 60);
	put_frame(101, 0xe0000000, frame + 4, 60, 60); // more than a second of ns
	assert_int_equal(take(), 0);
	assert_int_equal(capture.n, 5);
	assert_int_equal(capture.longest, 1514);
	assert_int_equal(capture.n_bytes, 1514 + 60 + 100 + 60 + 60);
	static const uint64_t at[] = {0, 2000, 2000, 6000, 6000};
	static const uint16_t n[] = {1514, 42, 100, 60, 60};
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(capture.frame[i].at_ns, at[i]);
		assert_memory_equal(capture.bytes + capture.frame[i].offset, frame + i, n[i]);
		assert_int_equal(capture.frame[i].layer4, 0);
	}
	assert_int_equal(capture.frame[1].n_bytes, 60);
	assert_int_equal(capture.bytes[capture.frame[1].offset + 42], 0);
	assert_int_equal(capture.lap_ns, 7500);
}

static void writes_the_mac_addresses_that_were_asked_for(void **state)
{
	uint8_t frame[60] = {[14] = 9};

	stream.capture.sets_dst_mac = stream.capture.sets_src_mac = true;
	memset(&stream.recipe.dst_mac, 2, 6);
	memset(&stream.recipe.src_mac, 4, 6);
	put_head(1);
	put_frame(0, 0, frame, 60, 60);
	assert_int_equal(take(), 0);
	assert_memory_equal(capture.bytes, "\2\2\2\2\2\2\4\4\4\4\4\4\0\0\11", 15);
}

static void cuts_off_an_fcs_that_the_file_declares(void **state)
{
	static const uint32_t kinds[] = {0x04000001, 0x24000001, 0x14000001, 0x20000001};
	static const uint16_t n[] = {104, 100, 100, 104}; // a length without the flag means nothing
	uint8_t frame[104] = {0};

	for (unsigned i = 0; i < ARRAY_LEN(kinds); i++) {
		set_up(NULL);
		put_head(kinds[i]);
		put_frame(0, 0, frame, 104, 104);
		put_frame(0, 0, frame, n[i], 104); // without the FCS
		put_frame(0, 0, frame, 64, 64);
		assert_int_equal(take(), 0);
		assert_int_equal(capture.frame[0].n_bytes, n[i]);
		assert_int_equal(capture.frame[1].n_bytes, n[i]);
		assert_int_equal(capture.frame[2].n_bytes, 64 - (104 - n[i]));
	}
	set_up(NULL);
	put_head(0x24000001);
	put_frame(0, 0, frame, 17, 17);
	assert_int_not_equal(take(), 0);
	assert_string_equal(error.text,
		"a.pcap: frame 1 has 13 bytes; expected 14 to 9618 without FCS");
}

static void answers_each_bad_file_with_one_sentence(void **state)
{
	uint8_t frame[10000] = {0};

	assert_int_not_equal(take(), 0);
	assert_string_equal(error.text, "a.pcap is empty; expected a pcap or pcapng file");
	put("nothing of the kind", 19);
	assert_int_not_equal(take(), 0);
	assert_string_equal(error.text, "a.pcap is not a capture file (unknown file format); "
					"expected a pcap or pcapng file");
	set_up(NULL);
	put_head(1);
	assert_int_not_equal(take(), 0);
	assert_string_equal(error.text,
		"a.pcap has no frames; expected a capture with at least one");
	set_up(NULL);
	put_head(113);
	assert_int_not_equal(take(), 0);
	assert_string_equal(error.text,
		"a.pcap has link-layer type LINUX_SLL; expected an Ethernet capture");
	set_up(NULL);
	put_head(1);
	put_frame(0, 0, frame, 60, 60);
	put_frame(0, 0, frame, 96, 1514);
	assert_int_not_equal(take(), 0);
	assert_string_equal(error.text, "a.pcap: frame 2 was truncated to 96 of 1514 bytes when it "
					"was captured; capture whole frames (tcpdump -s 0)");
	set_up(NULL);
	put_head(1);
	put_frame(0, 0, frame, 10000, 10000);
	assert_int_not_equal(take(), 0);
	assert_string_equal(error.text,
		"a.pcap: frame 1 has 10000 bytes; expected 14 to 9618 without FCS");
	set_up(NULL);
	put_head(1);
	put_frame(0, 0, frame, 60, 60);
	put_frame(0, 0, frame, 60, 60);
	file.n -= 7;
	assert_int_not_equal(take(), 0);
	assert_string_equal(error.text,
		"a.pcap is truncated or damaged after frame 1 (truncated dump file; tried to read "
		"60 captured bytes, only got 53); capture again, or repair the file");
}

static struct capture_frame room_in(const struct wire_recipe *recipe, size_t change, uint8_t value)
{
	uint8_t frame[256] = {0};
	struct capture_frame target = {.n_bytes = recipe->frame_bytes};

	assert_int_equal(wire_build(recipe, frame, sizeof(frame)), 0);
	if (change)
		frame[change] = value;
	capture_make_room(frame, &target);
	return target;
}

static void finds_room_for_a_stamp_where_it_will_be_looked_for(void **state)
{
	struct wire_recipe udp = wire_recipe(4), tcp = udp, udp6 = wire_recipe(6);

	udp.frame_bytes = 60;
	assert_int_equal(room_in(&udp, 0, 0).layer4, 34);
	assert_int_equal(room_in(&udp, 14, 0x46).layer4, 0); // options
	assert_int_equal(room_in(&udp, 20, 0x20).layer4, 0); // a fragment
	assert_int_equal(room_in(&udp, 17, 47).layer4, 0);   // longer than the frame
	assert_int_equal(room_in(&udp, 39, 25).layer4, 0);   // length in the UDP header differs
	assert_int_equal(room_in(&udp, 23, 1).layer4, 0);    // ICMP
	assert_int_equal(room_in(&udp, 13, 6).layer4, 0);    // ARP
	udp.frame_bytes = 59;
	assert_int_equal(room_in(&udp, 0, 0).layer4, 0);
	udp.has_vlan = true;
	udp.frame_bytes = 64;
	assert_int_equal(room_in(&udp, 0, 0).layer4, 38);
	tcp.protocol = WIRE_PROTO_TCP;
	tcp.frame_bytes = 64;
	assert_int_equal(room_in(&tcp, 0, 0).layer4, 34);
	assert_true(room_in(&tcp, 0, 0).is_tcp);
	assert_int_equal(room_in(&tcp, 46, 0x60).layer4, 0); // options
	tcp.frame_bytes = 63;
	assert_int_equal(room_in(&tcp, 0, 0).layer4, 0);
	udp6.frame_bytes = 80;
	assert_int_equal(room_in(&udp6, 0, 0).layer4, 54);
	assert_int_equal(room_in(&udp6, 20, 44).layer4, 0); // a fragment
	udp6.frame_bytes = 79;
	assert_int_equal(room_in(&udp6, 0, 0).layer4, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(takes_frames_as_they_are_with_their_times),
		TEST(writes_the_mac_addresses_that_were_asked_for),
		TEST(cuts_off_an_fcs_that_the_file_declares),
		TEST(answers_each_bad_file_with_one_sentence),
		TEST(finds_room_for_a_stamp_where_it_will_be_looked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
