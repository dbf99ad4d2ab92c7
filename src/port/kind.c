// Parses device strings and addresses, with a table of known drivers.
#include "port/kind.h"

#include "base/bits.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// In a slot of a packet socket's ring 66 bytes precede a received frame (packet(7), TPACKET2_HDRLEN
// and 16 bytes for the Ethernet header, aligned); the driver accounts for 32 of them.
enum { PACKET_HEADER_TAKEN = KIND_PACKET_IN_FRONT - 32, LARGEST_BUFFER = 60000 };

// `queues` is the argument with the number of queue pairs; with `counted`, its occurrences are
// counted instead. `open_ended`: the peer or the settings determine the number of queues.
struct row {
	const char *prefix, *queues, *netdev, *socket;
	enum kind_tx tx;
	bool counted, open_ended, has_link, may_chain, has_backpressure;
};

// net_null never refuses a frame; a plugin that makes it refuse simulates a full ring.
static const struct row rows[] = {
	{"net_null", NULL, NULL, NULL, KIND_TX_PER_WORKER, false, true, false, false, true},
	{"net_ring", NULL, NULL, NULL, KIND_TX_PER_WORKER, false, false, false, true, true},
	{"net_pcap", "rx_", NULL, NULL, KIND_TX_PER_WORKER, true, false, false, true, false},
	{"net_memif", NULL, NULL, "socket", KIND_TX_LIKE_RX, false, true, true, true, true},
	{"net_vhost", "queues", NULL, "iface", KIND_TX_LIKE_RX, false, false, true, true, true},
	{"net_virtio_user", "queues", NULL, "path", KIND_TX_LIKE_RX, false, false, true, true,
		true},
	{"virtio_user", "queues", NULL, "path", KIND_TX_LIKE_RX, false, false, true, true, true},
	{"net_af_packet", "qpairs", "iface", NULL, KIND_TX_LIKE_RX, false, false, false, true,
		false},
	{"net_af_xdp", "queue_count", "iface", NULL, KIND_TX_LIKE_RX, false, false, false, true,
		false},
	{"net_tap", NULL, NULL, NULL, KIND_TX_LIKE_RX, false, true, true, true, false},
	{"net_", NULL, NULL, NULL, KIND_TX_LIKE_RX, false, true, false, true, false},
	{"eth_", NULL, NULL, NULL, KIND_TX_LIKE_RX, false, true, false, true, false},
};

// [DDDD:]BB:DD.F, hexadecimal; examines `n` characters.
static bool is_pci(const char *text, size_t n)
{
	unsigned domain, bus, slot, function;
	char copy[16];
	int end = 0;

	if (n >= sizeof(copy))
		return false;
	memcpy(copy, text, n);
	copy[n] = 0;
	for (size_t i = 0; i < n; i++)
		if (!isxdigit((unsigned char)copy[i]) && copy[i] != ':' && copy[i] != '.')
			return false;
	if (sscanf(copy, "%4x:%2x:%2x.%1o%n", &domain, &bus, &slot, &function, &end) != 4 &&
		sscanf(copy, "%2x:%2x.%1o%n", &bus, &slot, &function, &end) != 3)
		return false;
	return (size_t)end == n;
}

static const char *next_argument(const char *at)
{
	at = strchr(at, ',');
	return at ? at + 1 : NULL;
}

bool kind_argument(const char *device, const char *key, char *value, size_t size)
{
	size_t n = strlen(key);

	for (const char *at = next_argument(device); at; at = next_argument(at)) {
		if (strncmp(at, key, n) != 0 || at[n] != '=')
			continue;
		snprintf(value, size, "%.*s", (int)strcspn(at + n + 1, ","), at + n + 1);
		return true;
	}
	return false;
}

// Counts arguments that start with `prefix`; net_pcap's plain iface= counts as one queue, too.
static uint16_t count_arguments(const char *device, const char *prefix)
{
	uint16_t n = 0;

	for (const char *at = next_argument(device); at; at = next_argument(at))
		if (strncmp(at, prefix, strlen(prefix)) == 0 || strncmp(at, "iface=", 6) == 0)
			n++;
	return n;
}

static uint16_t count_queues(const struct row *row, const char *device)
{
	char number[8];
	int n = 1;

	if (row->counted)
		n = count_arguments(device, row->queues);
	else if (row->queues && kind_argument(device, row->queues, number, sizeof(number)))
		n = atoi(number);
	return n < 1 ? 1 : n;
}

// memif has no argument for the number of descriptors; `rsize` is its logarithm. A peer may request
// fewer.
static uint32_t count_memif_slots(const char *device)
{
	char number[8];
	int rsize = 10;

	if (kind_argument(device, "rsize", number, sizeof(number)))
		rsize = atoi(number);
	return 1u << MAX_OF(0, MIN_OF(rsize, 14));
}

// Only a client's rings can contain our own buffers: the driver ignores the argument for a server
// (the default). 'slave' is an older name.
static bool memif_hands_out(const char *device)
{
	char role[16], answer[8];

	return kind_argument(device, "zero-copy", answer, sizeof(answer)) &&
	       strcmp(answer, "yes") == 0 && kind_argument(device, "role", role, sizeof(role)) &&
	       (strcmp(role, "client") == 0 || strcmp(role, "slave") == 0);
}

// A longer frame would take several slots, and memif's driver leaves them marked as chained when it
// reuses them: frames are then received twice or not at all.
static uint32_t count_memif_slot_bytes(const char *device)
{
	char number[8];

	return kind_argument(device, "bsize", number, sizeof(number)) ? atoi(number) : 2048;
}

// Frames longer than a slot of the kernel's ring are truncated on receive; on transmit the driver
// frees them and reports them as sent. `framesz` is the slot including its header.
static void read_packet_slots(const char *device, struct kind *out)
{
	uint32_t slot = 2048;
	char number[8];

	out->ring_slots = 512; // the driver's default
	if (kind_argument(device, "framecnt", number, sizeof(number)))
		out->ring_slots = MAX_OF(1, atoi(number));
	if (kind_argument(device, "framesz", number, sizeof(number)))
		slot = MAX_OF(0, atoi(number));
	out->slot_bytes = MAX_OF(slot, KIND_PACKET_IN_FRONT + 1u) - KIND_PACKET_IN_FRONT;
	out->cuts_frames = true;
	out->buffer_bytes = MIN_OF(out->slot_bytes + PACKET_HEADER_TAKEN, LARGEST_BUFFER);
}

static bool has_answer(const char *device, const char *key, const char *wanted)
{
	char answer[8];

	return kind_argument(device, key, answer, sizeof(answer)) && strcmp(answer, wanted) == 0;
}

// With the flags of former versions, invalid offloads of a frame cannot be told from none.
static void read_vhost(const char *device, struct kind *out)
{
	char answer[8];

	out->is_vhost = true;
	out->has_offloads =
		has_answer(device, "tso", "1") && !has_answer(device, "legacy-ol-flags", "1");
	out->serves = !kind_argument(device, "client", answer, sizeof(answer)) ||
	              strcmp(answer, "0") == 0;
}

static void read_virtual(const char *device, struct kind *out)
{
	const struct row *row = rows;
	char path[2 * KIND_PATH_MAX];

	while (row < rows + ARRAY_LEN(rows) &&
		strncmp(device, row->prefix, strlen(row->prefix)) != 0)
		row++;
	if (row == rows + ARRAY_LEN(rows))
		return;
	out->bus = KIND_VIRTUAL;
	out->n_rx = count_queues(row, device);
	out->n_rx_most = row->open_ended ? 0 : out->n_rx;
	out->tx = row->tx;
	out->has_link = row->has_link;
	out->may_chain = row->may_chain;
	out->has_backpressure = row->has_backpressure;
	if (row->netdev)
		kind_argument(device, row->netdev, out->netdev, sizeof(out->netdev));
	if (row->socket && kind_argument(device, row->socket, path, sizeof(path))) {
		out->socket_is_long = strlen(path) >= sizeof(out->socket);
		snprintf(out->socket, sizeof(out->socket), "%.*s", KIND_PATH_MAX - 1, path);
	}
	if (strcmp(row->prefix, "net_memif") == 0) {
		out->ring_slots = count_memif_slots(device);
		out->is_zero_copy = memif_hands_out(device);
		out->slot_bytes = out->is_zero_copy ? 0 : count_memif_slot_bytes(device);
	}
	if (strcmp(row->prefix, "net_vhost") == 0)
		read_vhost(device, out);
	if (strcmp(row->prefix, "net_af_packet") == 0)
		read_packet_slots(device, out);
	if (strstr(row->prefix, "virtio_user"))
		out->serves = has_answer(device, "server", "1");
	// memif's sockets are abstract, not in the file system, unless configured otherwise.
	if (strcmp(row->prefix, "net_memif") == 0 && !has_answer(device, "socket-abstract", "no"))
		out->socket[0] = 0;
}

void kind_read(const char *device, struct kind *out)
{
	size_t n = strcspn(device, ",");

	memset(out, 0, sizeof(*out));
	if (n == 0 || n >= sizeof(out->name) - 5)
		return;
	out->has_link = true;
	if (is_pci(device, n)) {
		out->bus = KIND_PCI;
		snprintf(out->name, sizeof(out->name), "%s%.*s",
			strchr(device, ':') == strrchr(device, ':') ? "0000:" : "", (int)n, device);
		// PCI addresses may be given in capitals; the system uses lower case.
		for (char *p = out->name; *p; p++)
			*p = tolower((unsigned char)*p);
		return;
	}
	snprintf(out->name, sizeof(out->name), "%.*s", (int)n, device);
	if (strncmp(device, "auxiliary:", 10) == 0)
		out->bus = KIND_ALLOWED;
	else
		read_virtual(device, out);
}
