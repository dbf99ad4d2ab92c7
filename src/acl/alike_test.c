// Packets that Linux's flow dissector reads otherwise than a key of access lists.
#include "acl/acl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { ROOM = 80 };

struct packet {
	uint8_t bytes[ROOM];
	size_t n;
};

static struct packet packet4(uint8_t proto, uint16_t fragment, size_t transport_bytes)
{
	struct packet out = {.n = 20 + transport_bytes};

	out.bytes[0] = 0x45;
	out.bytes[3] = out.n;
	out.bytes[6] = fragment >> 8;
	out.bytes[7] = fragment;
	out.bytes[9] = proto;
	out.bytes[20 + 12] = 0x50;
	return out;
}

// `header`: an extension header of 8 bytes with its next header, or 0: none.
static struct packet packet6(uint8_t header, uint8_t proto, size_t transport_bytes)
{
	struct packet out = {.n = 40 + (header ? 8 : 0) + transport_bytes};

	out.bytes[0] = 0x60;
	out.bytes[5] = out.n - 40;
	out.bytes[6] = header ? header : proto;
	if (header)
		out.bytes[40] = proto;
	out.bytes[40 + 12] = 0x50;
	return out;
}

static bool is_alike(struct packet packet, bool is_ip6)
{
	struct acl_key key;

	assert_true((is_ip6 ? acl_key6 : acl_key4)(&key, packet.bytes, packet.n));
	return acl_is_alike(packet.bytes, packet.n, is_ip6);
}

static void usual_packets_are_read_alike(void **state)
{
	for (uint8_t family = 0; family < 2; family++)
		for (size_t i = 0; i < 4; i++) {
			const uint8_t proto = ((const uint8_t[]){6, 17, 58, 50})[i];

			assert_true(is_alike(family ? packet6(0, proto, 20) : packet4(proto, 0, 20),
				family));
		}
	assert_true(is_alike(packet4(6, 0x2000, 20), false));
	assert_true(is_alike(packet4(6, 0x0100, 20), false));
	assert_true(is_alike(packet4(137, 0x0100, 20), false)); // its header is not looked for
}

static void cut_or_wrong_headers_are_not(void **state)
{
	struct packet packet = packet4(6, 0, 20);

	assert_false(is_alike(packet4(6, 0, 19), false));
	assert_false(is_alike(packet4(6, 0x0100, 19), false)); // u32 may want its 20th byte
	assert_false(is_alike(packet4(1, 0, 7), false));
	assert_false(is_alike(packet6(0, 58, 7), true));
	packet.bytes[20 + 12] = 0x40;
	assert_false(is_alike(packet, false));
	assert_false(is_alike(packet4(137, 0, 20), false));
}

static void extension_headers_are_not_unless_of_a_fragment(void **state)
{
	static const uint8_t walked[] = {43, 51, 60, 135, 139, 140};
	struct packet packet = packet6(44, 17, 20);

	for (size_t i = 0; i < sizeof(walked); i++)
		assert_false(is_alike(packet6(walked[i], 17, 28), true));
	assert_false(is_alike(packet, true)); // atomic
	packet.bytes[43] = 1;                 // the first of more
	assert_true(is_alike(packet, true));
	packet.bytes[43] = 8; // the second and last
	assert_true(is_alike(packet, true));
	packet.bytes[40] = 60;
	assert_false(is_alike(packet, true));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(usual_packets_are_read_alike),
		cmocka_unit_test(cut_or_wrong_headers_are_not),
		cmocka_unit_test(extension_headers_are_not_unless_of_a_fragment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
