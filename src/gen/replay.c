// Replays captured frames. Worker; creation: control thread.
#include "gen/replay.h"

#include "base/bits.h"
#include "wire/checksum.h"
#include "wire/headers.h"
#include "wire/stamp.h"

#include <errno.h>
#include <rte_cycles.h>
#include <rte_mbuf.h>
#include <stdlib.h>
#include <string.h>

static int check_room(const struct replay *replay, const struct sender_terms *terms,
	struct error *error)
{
	unsigned room = rte_pktmbuf_data_room_size(terms->pool) - RTE_PKTMBUF_HEADROOM;

	if (replay->capture.longest <= room)
		return 0;
	return error_set(error, -EINVAL,
		"stream %s: its capture has a frame of %u bytes, longer than the MTU of its port; "
		"raise the MTU or remove that frame",
		terms->stream->name, replay->capture.longest + WIRE_FCS_BYTES);
}

static int make(struct replay *replay, const struct sender_terms *terms, struct error *error)
{
	const struct gen_stream *stream = terms->stream;
	double speed = stream->capture.speed, scale = terms->tsc_hz / 1e9 / (speed > 0 ? speed : 1);
	struct error inner = {""};

	if (capture_read(&replay->capture, stream, &inner))
		return error_set(error, -EINVAL, "stream %s: %s", stream->name, inner.text);
	if (memcmp(&replay->capture.file, &stream->capture.file, sizeof(struct gen_file)))
		return error_set(error, -EINVAL,
			"stream %s: %s was changed after it was checked; send again when no "
			"program is writing to it",
			stream->name, stream->capture.path);
	replay->at = calloc(replay->capture.n, sizeof(replay->at[0]));
	if (!replay->at)
		return error_set(error, -ENOMEM, "stream %s: not enough memory for its capture",
			stream->name);
	for (uint32_t i = 0; i < replay->capture.n; i++)
		replay->at[i] = replay->capture.frame[i].at_ns * scale;
	replay->lap = replay->capture.lap_ns * scale;
	replay->is_recorded = speed > 0;
	replay->magic = STAMP_MAGIC | terms->run;
	replay->stream = stream->id;
	if (replay->is_recorded && !replay->lap)
		return error_set(error, -EINVAL,
			"stream %s: all frames of %s now have the same timestamp", stream->name,
			stream->capture.path);
	return check_room(replay, terms, error);
}

int replay_create(struct replay **out, const struct sender_terms *terms, struct error *error)
{
	struct replay *replay = calloc(1, sizeof(*replay));

	if (!replay)
		return error_set(error, -ENOMEM, "stream %s: not enough memory for its capture",
			terms->stream->name);
	int err = make(replay, terms, error);
	if (err)
		replay_destroy(replay);
	else
		*out = replay;
	return err;
}

void replay_destroy(struct replay *replay)
{
	if (!replay)
		return;
	capture_free(&replay->capture);
	free(replay->at);
	free(replay);
}

void replay_begin(struct replay *replay, uint64_t start)
{
	replay->lap_start = start;
	replay->next = 0;
}

// A frame and its lap.
struct place {
	uint32_t frame;
	uint64_t lap_start;
};

static inline void step(const struct replay *replay, struct place *place)
{
	if (++place->frame < replay->capture.n)
		return;
	place->frame = 0;
	place->lap_start += replay->lap;
}

static inline uint64_t time_of(const struct replay *replay, const struct place *place)
{
	return place->lap_start + replay->at[place->frame];
}

// When the frame `n` positions ahead is due.
static uint64_t time_ahead(const struct replay *replay, struct place place, uint32_t n)
{
	uint64_t frame = (uint64_t)place.frame + n;

	place.lap_start += frame / replay->capture.n * replay->lap;
	place.frame = frame % replay->capture.n;
	return time_of(replay, &place);
}

void replay_skip(struct replay *replay, struct pace *pace, uint64_t now)
{
	struct place place = {replay->next, replay->lap_start};
	uint64_t until = MIN_OF(now, pace->end - 1);

	while (pace->left > pace->catch_up && time_ahead(replay, place, pace->catch_up) <= until) {
		step(replay, &place);
		pace->left--;
		pace->late++;
	}
	replay->next = place.frame;
	replay->lap_start = place.lap_start;
	pace->due.cycles = time_of(replay, &place);
}

unsigned replay_take(const struct replay *replay, struct pace *pace, uint64_t now, uint64_t due[])
{
	struct place place = {replay->next, replay->lap_start};
	uint64_t until = MIN_OF(now, pace->end - 1);
	unsigned n = 0, most = MIN_OF(pace->left, (uint64_t)GEN_MAX_BURST);

	for (; n < most && time_of(replay, &place) <= until; n++) {
		due[n] = time_of(replay, &place);
		step(replay, &place);
	}
	pace->left -= n;
	pace->due.cycles = time_of(replay, &place);
	return n;
}

static void write_stamp(uint8_t *layer4, uint64_t sum, const struct stamp *stamp, bool is_tcp)
{
	uint16_t checksum_be;

	if (is_tcp) {
		stamp_write_tcp(layer4, stamp);
		sum = wire_sum(sum, layer4 + offsetof(struct wire_tcp, seq_be), 8);
		sum = wire_sum(sum, layer4 + WIRE_TCP_BYTES, STAMP_TCP_PAYLOAD_BYTES);
		checksum_be = wire_sum_finish_be(sum);
		memcpy(layer4 + offsetof(struct wire_tcp, checksum_be), &checksum_be, 2);
		return;
	}
	stamp_write(layer4 + WIRE_UDP_BYTES, stamp);
	checksum_be = wire_sum_finish_be(wire_sum(sum, layer4 + WIRE_UDP_BYTES, STAMP_BYTES));
	checksum_be = checksum_be ? checksum_be : 0xffff; // 0 would mean: no checksum
	memcpy(layer4 + offsetof(struct wire_udp, checksum_be), &checksum_be, 2);
}

uint64_t replay_build(struct replay *replay, struct rte_mbuf *const mbuf[], unsigned n,
	const uint64_t due[])
{
	struct place place = {replay->next, replay->lap_start};
	struct stamp stamp = {replay->magic, replay->stream, 0, 0, rte_rdtsc()};
	uint64_t bytes = n * WIRE_FCS_BYTES;

	replay->stamped = 0;
	for (unsigned i = 0; i < n; i++, step(replay, &place)) {
		const struct capture_frame *frame = &replay->capture.frame[place.frame];
		struct rte_mbuf *m = mbuf[i];

		m->data_off = RTE_PKTMBUF_HEADROOM;
		m->ol_flags = 0;
		m->data_len = m->pkt_len = frame->n_bytes;
		uint8_t *to = rte_pktmbuf_mtod(m, uint8_t *);
		memcpy(to, replay->capture.bytes + frame->offset, frame->n_bytes);
		bytes += frame->n_bytes;
		if (!frame->layer4)
			continue;
		stamp.sequence = replay->sequence++;
		stamp.due = due[i];
		replay->stamped |= 1ull << i;
		write_stamp(to + frame->layer4, frame->sum, &stamp, frame->is_tcp);
	}
	replay->next = place.frame;
	replay->lap_start = place.lap_start;
	return bytes;
}

unsigned replay_pick_stamped(const struct replay *replay, unsigned n, uint64_t due[])
{
	unsigned n_stamped = 0;

	for (unsigned i = 0; i < n; i++)
		if (replay->stamped >> i & 1)
			due[n_stamped++] = due[i];
	return n_stamped;
}

unsigned replay_count_stamped(const struct replay *replay, unsigned n, unsigned n_built)
{
	return __builtin_popcountll(replay->stamped >> (n_built - n));
}

void replay_take_back(struct replay *replay, unsigned n, unsigned n_built)
{
	replay->sequence -= replay_count_stamped(replay, n, n_built);
	if (replay->is_recorded)
		return;
	replay->next = (replay->next + (uint64_t)replay->capture.n * GEN_MAX_BURST - n) %
	               replay->capture.n;
}
