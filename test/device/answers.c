// A plugin for dl3gen (EAL option -d), used only by tests: makes net_null ports (with no-rx=1) into
// wires whose every loss, duplicate and delay is known. What is sent on one port goes through a
// channel (channel.h) and is received on another. It works with public Rx and Tx callbacks, which
// run on the program's workers; a thread of ours installs them once the queues are set up.
//
//   ANSWERS_CHANNELS  the channels, separated by ";", each from port to port; required
//   ANSWERS_ACCOUNT   file that holds what each channel counted, always as it is now: for each a
//                     struct channel_account. It is there once the wires are.
//   ANSWERS_DUMP      what comes in on port N is written to this path with N.pcap appended, as
//                     many frames as `dump` of its channel says
#include "channel.h"
#include "onecore/configured.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_spinlock.h>

enum { MAX_PORTS = 16, WAIT_FOR_PORTS_US = 1000, LONGEST_FRAME = 9728, PATH_BYTES = 256 };

// One end of a wire.
struct end {
	struct channel *in, *out; // what leaves by this port, what comes to it; NULL: nothing does
	struct channel_settings is; // of `in`
	rte_spinlock_t lock;        // several workers may send on a port
	struct rte_mempool *pool;   // of what is sent here; what comes out is made from it too
	const struct end *source;   // from which `out` comes
	FILE *dump;
	uint64_t dumps_left;
};

static struct end ends[MAX_PORTS];
static struct channel_settings settings[MAX_PORTS];
static unsigned n_channels;
static struct channel_account *accounts;

static void dump(struct end *end, const void *frame, uint32_t bytes)
{
	uint64_t us = (unsigned __int128)rte_rdtsc() * 1000000 / rte_get_tsc_hz();
	uint32_t head[4] = {us / 1000000, us % 1000000, bytes, bytes};

	fwrite(head, sizeof(head), 1, end->dump);
	fwrite(frame, bytes, 1, end->dump);
	if (!--end->dumps_left)
		fflush(end->dump);
}

// The Tx callback, of ethdev's type: copies what is sent; those behind the returned number are
// refused, the others are freed by net_null.
static uint16_t accept_burst(uint16_t port, uint16_t queue, struct rte_mbuf *packets[], uint16_t n,
	void *arg)
{
	struct end *end = arg;
	uint64_t now = rte_rdtsc();
	uint8_t joined[LONGEST_FRAME];
	uint16_t i;

	if (n)
		end->pool = packets[0]->pool;
	rte_spinlock_lock(&end->lock);
	for (i = 0; i < n; i++) {
		uint32_t bytes = RTE_MIN(packets[i]->pkt_len, (uint32_t)LONGEST_FRAME);
		const void *frame = rte_pktmbuf_read(packets[i], 0, bytes, joined);

		if (!channel_put(end->in, frame, bytes, now))
			break;
		if (end->dumps_left)
			dump(end, frame, bytes);
	}
	if (i < n)
		channel_refuse(end->in, n - i);
	rte_spinlock_unlock(&end->lock);
	return i;
}

// The next frame that comes to `end` in a buffer of the sender's pool; NULL: none is ready.
static struct rte_mbuf *next(struct end *end, uint64_t now)
{
	if (!channel_has(end->out, now))
		return NULL;
	// The ring orders this behind the sender's writing.
	struct rte_mbuf *m = rte_pktmbuf_alloc(end->source->pool);

	if (!m)
		return NULL;
	m->data_len =
		channel_take(end->out, rte_pktmbuf_mtod(m, void *), rte_pktmbuf_tailroom(m), now);
	m->pkt_len = m->data_len;
	return m;
}

// The Rx callback, of ethdev's type. net_null has received nothing (`no-rx=1`).
static uint16_t deliver(uint16_t port, uint16_t queue, struct rte_mbuf *packets[], uint16_t n,
	uint16_t max, void *arg)
{
	struct end *end = arg;
	uint64_t now = rte_rdtsc();

	while (queue == 0 && n < max && (packets[n] = next(end, now)))
		packets[n++]->port = port;
	return n;
}

// Whether the program has set up all queues of the port that it asked for.
static bool is_set_up(uint16_t port)
{
	struct rte_eth_dev_info device;
	struct rte_eth_rxq_info rx;
	struct rte_eth_txq_info tx;

	if (!port_is_configured(port) || rte_eth_dev_info_get(port, &device))
		return false;
	for (uint16_t q = 0; q < device.nb_rx_queues; q++)
		if (rte_eth_rx_queue_info_get(port, q, &rx) == -EINVAL)
			return false;
	for (uint16_t q = 0; q < device.nb_tx_queues; q++)
		if (rte_eth_tx_queue_info_get(port, q, &tx) == -EINVAL)
			return false;
	return device.nb_rx_queues && device.nb_tx_queues;
}

static bool are_set_up(void)
{
	for (unsigned i = 0; i < n_channels; i++)
		if (!is_set_up(settings[i].from) || !is_set_up(settings[i].to))
			return false;
	return true;
}

static bool install(uint16_t port)
{
	struct rte_eth_dev_info device;
	bool done = rte_eth_dev_info_get(port, &device) == 0;

	for (uint16_t q = 0; done && ends[port].out && q < device.nb_rx_queues; q++)
		done = rte_eth_add_rx_callback(port, q, deliver, &ends[port]);
	for (uint16_t q = 0; done && ends[port].in && q < device.nb_tx_queues; q++)
		done = rte_eth_add_tx_callback(port, q, accept_burst, &ends[port]);
	return done;
}

static bool open_dump(uint16_t port)
{
	static const uint32_t head[6] = {0xa1b2c3d4, 0x00040002, 0, 0, 65535, 1};
	struct end *end = &ends[port];
	const char *prefix = getenv("ANSWERS_DUMP");
	char path[PATH_BYTES];

	if (!prefix || !end->is.dump)
		return true;
	snprintf(path, sizeof(path), "%s%u.pcap", prefix, port);
	end->dump = fopen(path, "we");
	if (!end->dump)
		return false;
	end->dumps_left = end->is.dump;
	return fwrite(head, sizeof(head), 1, end->dump) == 1 && fflush(end->dump) == 0;
}

static bool build(void)
{
	for (unsigned i = 0; i < n_channels; i++) {
		struct end *from = &ends[settings[i].from], *to = &ends[settings[i].to];

		from->in = channel_create(&settings[i], rte_get_tsc_hz(), &accounts[i]);
		from->is = settings[i];
		to->out = from->in;
		to->source = from;
		if (!from->in || !open_dump(settings[i].from))
			return false;
	}
	for (uint16_t port = 0; port < MAX_PORTS; port++)
		if (port_is_configured(port) && !install(port))
			return false;
	return true;
}

// The file appears under its name once all is in place.
static void *watch(void *arg)
{
	char *path = arg, hidden[PATH_BYTES];

	snprintf(hidden, sizeof(hidden), "%s.new", path);
	while (!are_set_up())
		usleep(WAIT_FOR_PORTS_US);
	int file = open(hidden, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	size_t size = n_channels * sizeof(*accounts);

	if (file < 0 || ftruncate(file, size) < 0)
		goto failed;
	accounts = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (accounts == MAP_FAILED || !build() || rename(hidden, path) < 0)
		goto failed;
	close(file);
	return NULL;
failed:
	fprintf(stderr, "answers: %s: %s; the ports remain unchanged\n", path, strerror(errno));
	if (file >= 0)
		close(file);
	return NULL;
}

static bool read_channels(char *text)
{
	char error[128], *rest = NULL;

	for (char *words = strtok_r(text, ";", &rest); words; words = strtok_r(NULL, ";", &rest)) {
		struct channel_settings *next = &settings[n_channels];

		if (n_channels == MAX_PORTS) {
			fprintf(stderr, "answers: more than %d channels\n", MAX_PORTS);
			return false;
		}
		if (!channel_read(next, words, error, sizeof(error))) {
			fprintf(stderr, "answers: %s\n", error);
			return false;
		}
		if (next->from >= MAX_PORTS || next->to >= MAX_PORTS) {
			fprintf(stderr, "answers: ports are 0 to %d\n", MAX_PORTS - 1);
			return false;
		}
		n_channels++;
	}
	return n_channels;
}

__attribute__((constructor)) static void start(void)
{
	char *text = getenv("ANSWERS_CHANNELS"), *path = getenv("ANSWERS_ACCOUNT");
	pthread_t thread;

	if (!text || !path) {
		fprintf(stderr, "answers: expected ANSWERS_CHANNELS and ANSWERS_ACCOUNT\n");
		return;
	}
	text = strdup(text);
	if (text && read_channels(text) && !pthread_create(&thread, NULL, watch, path))
		pthread_detach(thread);
	free(text);
}

__attribute__((destructor)) static void end(void)
{
	for (unsigned port = 0; port < MAX_PORTS; port++)
		if (ends[port].dump)
			fclose(ends[port].dump);
}
