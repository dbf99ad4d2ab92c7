// Arbitrary bytes as received frames, in one or several segments: nothing is read past their end,
// every frame is counted exactly once and freed, and the counters of a stream are consistent.
#include "gen/account.h"
#include "gen/fake_frames.h"
#include "gen/per_flow.h"
#include "gen/timeline.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { MAX_FRAMES = 80, MAX_SEGMENTS = 3, N_STREAMS = 4, PORT = 1, RUN = 7 };

static struct gen_stream streams[N_STREAMS];
static struct sink sink = {.run = RUN, .expects = true};

// An mbuf of exactly its size, so that overreads are detected.
static struct rte_mbuf *new_mbuf(const uint8_t *bytes, unsigned n)
{
	struct rte_mbuf *m = calloc(1, sizeof(*m) + 64);
	uint8_t *copy = malloc(n + 1);

	memcpy(copy + 1, bytes, n);
	*m = (struct rte_mbuf){
		.buf_addr = copy,
		.data_off = 1,
		.nb_segs = 1,
		.refcnt = 2,
		.data_len = n,
		.pkt_len = n,
	};
	return m;
}

static void free_mbuf(struct rte_mbuf *m)
{
	while (m) {
		struct rte_mbuf *next = m->next;
		if (rte_mbuf_refcnt_read(m) != 1)
			abort();
		free(m->buf_addr);
		free(m);
		m = next;
	}
}

// A frame split at two positions, which may be its ends.
static struct rte_mbuf *new_frame(const uint8_t *bytes, unsigned n, const uint8_t cuts[2])
{
	struct rte_mbuf *first = NULL, **link = &first;
	unsigned at = 0, n_segs = 0;

	for (unsigned i = 0; i < MAX_SEGMENTS; i++) {
		unsigned piece = i < 2 && cuts[i] < n - at ? cuts[i] : n - at;
		if (!piece && i)
			continue;
		if (i < 2 && !cuts[i])
			piece = n - at;
		*link = new_mbuf(bytes + at, piece);
		link = &(*link)->next;
		at += piece;
		n_segs++;
	}
	first->pkt_len = n;
	first->nb_segs = n_segs;
	return first;
}

static struct timeline line;       // becomes coarser from input to input
static struct per_flow *expecting; // of stream 2; also keeps it in sight of the leak detector

static struct gen_expect expect_labels(void)
{
	return (struct gen_expect){.n_ports = 1,
		.n_dscps = 1,
		.port = {PORT},
		.encap = {.is_checked = true,
			.type = GEN_MPLS_UDP,
			.n_labels = 3,
			.n_ids = 1000,
			.has_checksum = true}};
}

static void create_streams(void)
{
	static const uint32_t flows[N_STREAMS] = {1, 3, 1000, 1 << 24};

	for (unsigned i = 0; i < N_STREAMS; i++) {
		streams[i] = fake_stream(i);
		streams[i].n_flows = flows[i];
		streams[i].to = i == 3 ? PORT + 1 : PORT;
		streams[i].is_receive_only = i == 1;
		if (i == 2)
			streams[i].expect = expect_labels();
		if (sink_stream_create(&sink.by_id[i], &streams[i], NULL))
			abort();
		sink.by_id[i]->timeline = &line;
	}
	expecting = sink.by_id[2]->per_flow;
}

// Equivalent to recreating them, but much faster.
static void clear_streams(void)
{
	for (unsigned i = 0; i < N_STREAMS; i++) {
		struct sink_stream *s = sink.by_id[i];
		struct window *w = &s->window->window;
		if (w->n_flows > 1)
			memset(w->flow_next, 0, w->n_flows * sizeof(w->flow_next[0]));
		memset(s->window, 0, sizeof(*s->window));
		window_begin(w, streams[i].n_flows);
		memset(&s->counters, 0, sizeof(s->counters));
		histogram_clear(&s->due);
		histogram_clear(&s->sent);
	}
	expecting->counters = (struct per_flow_counters){0};
}

static void check(bool is_right)
{
	if (!is_right)
		abort();
}

// Every frame is counted once; both ways to count missing frames agree.
static void check_accounting(const struct sink_port *port, uint64_t n)
{
	uint64_t sum = port->foreign + port->stale + port->misdirected;

	for (unsigned i = 0; i < N_STREAMS; i++) {
		const struct sink_stream *s = sink.by_id[i];
		const struct sink_counters *c = &s->counters;
		sum += c->received + c->duplicated + c->corrupted + c->too_old;
		check(c->missing == c->highest - c->received);
		check(c->highest <= 1ull << 47);
		check(c->reordered <= c->received);
		check(s->due.n == c->received && s->sent.n == c->received);
		check(c->n_jitter == (c->received ? c->received - 1 : 0));
	}
	check(port->rx_packets == n && sum == n);
	const struct sink_counters *c = &sink.by_id[2]->counters;
	const struct per_flow_counters *p = &expecting->counters;

	check(p->checked == c->received + c->duplicated + c->too_old);
	check(p->wrong_port + p->wrong_dscp + p->wrong_encap + p->wrong_tuple <= p->checked);
}

// Input per frame: its length (2 bytes), split positions (2), repaired or not (1), its bytes. A
// repaired frame gets valid checksums; the fuzzer would rarely get past them otherwise.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct rte_mbuf *mbuf[MAX_FRAMES], *held[MAX_FRAMES];
	struct sink_port port = {0};
	uint16_t n_frames = 0;

	if (!sink.by_id[0])
		create_streams();
	clear_streams();
	while (n > 5 && n_frames < MAX_FRAMES) {
		unsigned want = (data[0] << 8 | data[1]) % 2000;
		unsigned bytes = want < n - 5 ? want : n - 5;
		uint8_t *copy = malloc(bytes + 1);
		memcpy(copy, data + 5, bytes);
		if (data[4] & 1)
			fake_repair(copy, bytes);
		held[n_frames] = mbuf[n_frames] = new_frame(copy, bytes, data + 2);
		n_frames++;
		free(copy);
		data += 5 + bytes;
		n -= 5 + bytes;
	}
	sink_take(&sink, &port, mbuf, n_frames, PORT, 1ull << 36);
	check_accounting(&port, n_frames);
	for (uint16_t i = 0; i < n_frames; i++)
		free_mbuf(held[i]);
	return 0;
}
