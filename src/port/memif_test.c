// How memif's peer signals new frames to a worker: messages as a driver sends and receives them,
// over real sockets, with real memory. Control thread.
#include "base/bits.h"
#include "port/wait.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

enum { BYTES = 128, REGION = 16384, HEAD_AT = 4096 + 64, FLAGS = 4, HEAD = 6, TAIL = 64 };
enum { INIT = 3, ADD_REGION = 4, ADD_RING = 5, CONNECT = 6, DISCONNECT = 8 };
enum { TO_SERVER = 1, TO_CLIENT = 0, ID = 7 };

// Both ends of a connection, a region with one ring in it, and the descriptors that the worker
// waits on.
static int server, client, region, event, epoll;
static uint8_t *memory;
static char device[200];
static struct memif_ring *ring;

static void put16(uint8_t *at, uint16_t value)
{
	memcpy(at, &value, sizeof(value));
}

static uint16_t get16(const uint8_t *at)
{
	uint16_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

// Sends one message from the client to the server, with a descriptor or -1, and with the sender's
// credentials, which memif's driver requests.
static void say(const uint8_t message[BYTES], int fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr aligned;
	} one = {{0}};
	char in[256] __attribute__((aligned(8)));
	uint8_t copy[BYTES];
	struct iovec out_part = {(void *)message, BYTES}, in_part = {copy, BYTES};
	struct msghdr out = {.msg_iov = &out_part, .msg_iovlen = 1};
	struct msghdr packet = {.msg_iov = &in_part,
		.msg_iovlen = 1,
		.msg_control = in,
		.msg_controllen = sizeof(in)};

	if (fd >= 0) {
		out.msg_control = one.bytes;
		out.msg_controllen = sizeof(one.bytes);
		struct cmsghdr *c = CMSG_FIRSTHDR(&out);

		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	assert_int_equal(sendmsg(client, &out, 0), BYTES);
	assert_int_equal(recvmsg(server, &packet, 0), BYTES);
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&packet); c; c = CMSG_NXTHDR(&packet, c))
		if (c->cmsg_type == SCM_RIGHTS)
			close(*(int *)CMSG_DATA(c));
}

static void say_init(uint32_t id)
{
	uint8_t message[BYTES] = {INIT};

	memcpy(message + 4, &id, sizeof(id));
	say(message, -1);
}

static void say_region(void)
{
	uint8_t message[BYTES] = {ADD_REGION};

	say(message, region);
}

static void say_ring(uint16_t flags, uint16_t index, uint32_t offset)
{
	uint8_t message[BYTES] = {ADD_RING};

	put16(message + 2, flags);
	put16(message + 4, index);
	memcpy(message + 8, &offset, sizeof(offset));
	message[12] = 10;
	say(message, event);
}

static void agree(uint16_t flags)
{
	say_init(ID);
	say_region();
	say_ring(flags, 0, HEAD_AT);
	say((uint8_t[BYTES]){CONNECT}, -1);
}

static bool has_event(void)
{
	struct epoll_event got;

	return epoll_wait(epoll, &got, 1, 0) == 1;
}

// As the peer does it: writes the frames first, then signals an event if enabled.
static void send_frame(unsigned index)
{
	uint64_t one = 1;

	put16(memory + HEAD_AT + index, get16(memory + HEAD_AT + index) + 1);
	if (!(get16(memory + HEAD_AT + FLAGS) & 1))
		assert_int_equal(write(event, &one, sizeof(one)), sizeof(one));
}

static int set_up(void **state)
{
	static unsigned number;
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int on = 1, listener = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	// An abstract name, memif's default.
	snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "dl3-memif-%d-%u", getpid(),
		number++);
	snprintf(device, sizeof(device), "net_memif0,id=%d,socket=%s", ID, name.sun_path + 1);
	client = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	if (bind(listener, (struct sockaddr *)&name, sizeof(name)) || listen(listener, 1) ||
		connect(client, (struct sockaddr *)&name, sizeof(name)))
		return -1;
	server = accept(listener, NULL, NULL);
	close(listener);
	setsockopt(server, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
	region = memfd_create("region", MFD_ALLOW_SEALING);
	if (ftruncate(region, REGION) || fcntl(region, F_ADD_SEALS, F_SEAL_SHRINK))
		return -1;
	memory = mmap(NULL, REGION, PROT_READ | PROT_WRITE, MAP_SHARED, region, 0);
	put16(memory + HEAD_AT + FLAGS, 1);
	event = eventfd(0, EFD_NONBLOCK);
	epoll = epoll_create1(0);
	ring = memif_ring_make(device, 0, epoll);
	return ring ? 0 : -1;
}

static int tear_down(void **state)
{
	memif_ring_free(ring);
	munmap(memory, REGION);
	for (unsigned i = 0; i < 5; i++)
		close((int[]){server, client, region, event, epoll}[i]);
	return 0;
}

static void where_no_peer_is_nothing_can_come(void **state)
{
	assert_true(memif_ring_is_reported(ring));
	assert_true(memif_ring_ask(ring));
	memif_ring_ask_no_more(ring);
}

static void the_peer_tells_only_while_it_is_asked(void **state)
{
	agree(TO_SERVER);
	assert_true(memif_ring_is_reported(ring));
	send_frame(HEAD);
	assert_false(has_event());
	assert_false(memif_ring_ask(ring)); // it arrived after the ring was last read
	assert_true(memif_ring_ask(ring));
	assert_false(has_event());
	send_frame(HEAD);
	assert_true(has_event());
	assert_false(has_event()); // edge-triggered: nothing had to be read
	memif_ring_ask_no_more(ring);
	send_frame(HEAD);
	assert_false(has_event());
}

static void a_client_looks_at_the_other_index(void **state)
{
	char text[sizeof(device) + 16];

	memif_ring_free(ring);
	snprintf(text, sizeof(text), "%s,role=client", device);
	ring = memif_ring_make(text, 0, epoll);
	agree(TO_CLIENT);
	assert_true(memif_ring_ask(ring));
	memif_ring_ask_no_more(ring);
	send_frame(TAIL);
	assert_false(memif_ring_ask(ring));
	assert_true(memif_ring_ask(ring));
	send_frame(TAIL);
	assert_true(has_event());
}

static void only_the_ring_that_is_received_on_counts(void **state)
{
	say_init(ID);
	say_region();
	say_ring(TO_CLIENT, 0, HEAD_AT);
	say_ring(TO_SERVER, 1, HEAD_AT);
	send_frame(HEAD);
	assert_true(memif_ring_ask(ring)); // has no ring yet
	say_ring(TO_SERVER, 0, HEAD_AT);
	send_frame(HEAD);
	assert_false(memif_ring_ask(ring));
}

static void another_interface_of_the_socket_does_not_count(void **state)
{
	say_init(ID + 1);
	say_region();
	say_ring(TO_SERVER, 0, HEAD_AT);
	send_frame(HEAD);
	assert_true(memif_ring_ask(ring));
}

// The peer may send anything; the ring then reports that only time can end the sleep.
static void a_ring_that_cannot_be_had_is_untold(void **state)
{
	static const uint32_t offsets[] = {REGION - 64, REGION, 0xffffffc0, HEAD_AT + 4};

	for (unsigned i = 0; i < ARRAY_LEN(offsets); i++) {
		say_init(ID);
		say_region();
		say_ring(TO_SERVER, 0, offsets[i]);
		assert_false(memif_ring_is_reported(ring));
		assert_true(memif_ring_ask(ring));
		memif_ring_ask_no_more(ring);
	}
	say_init(ID);
	say_ring(TO_SERVER, 0, HEAD_AT); // no region
	assert_false(memif_ring_is_reported(ring));
	agree(TO_SERVER);
	assert_true(memif_ring_is_reported(ring));
}

static void memory_that_the_peer_could_take_away_is_not_mapped(void **state)
{
	close(region);
	region = memfd_create("region", MFD_ALLOW_SEALING);
	assert_int_equal(ftruncate(region, REGION), 0);
	agree(TO_SERVER);
	assert_false(memif_ring_is_reported(ring));
}

static void a_peer_that_leaves_is_forgotten(void **state)
{
	agree(TO_SERVER);
	say((uint8_t[BYTES]){DISCONNECT}, -1);
	send_frame(HEAD);
	assert_true(memif_ring_ask(ring));
	agree(TO_SERVER);
	send_frame(HEAD);
	assert_false(memif_ring_ask(ring));

	uint8_t message[BYTES];
	struct iovec part = {message, BYTES};
	struct msghdr packet = {.msg_iov = &part, .msg_iovlen = 1};

	close(client);
	client = -1;
	assert_int_equal(recvmsg(server, &packet, 0), 0);
	send_frame(HEAD);
	assert_true(memif_ring_ask(ring));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(where_no_peer_is_nothing_can_come, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(the_peer_tells_only_while_it_is_asked, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(a_client_looks_at_the_other_index, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(only_the_ring_that_is_received_on_counts, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(another_interface_of_the_socket_does_not_count,
			set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_ring_that_cannot_be_had_is_untold, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(memory_that_the_peer_could_take_away_is_not_mapped,
			set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_peer_that_leaves_is_forgotten, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
