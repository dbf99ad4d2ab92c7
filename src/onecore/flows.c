// Writes the two files of a measurement with flows: the plugin's table (table.h), and the file that
// dl3d loads (docs/internals/flow.md), in which each flow is endless and leads to one of some next
// hops: 10.1.0.1, 10.1.0.2 and so on, on interface "out". One thread.
//
//    flows random|white-paper BITS HOPS TABLE FLOWS    (2^BITS flows)
#include "onecore/flows.h"
#include "wire/build.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <rte_hash_crc.h>

enum {
	RECORD_BYTES = 64,
	MAX_HOPS = 1 << 14,
	VERSION = 1,
	TO_HOP = 1, // enum flow_effect
	KEEP_DSCP = 64,
	FAMILY_IP4 = 4,
	BUFFER_BYTES = 1 << 20,
};

struct header {
	uint8_t magic[8];
	uint32_t version, n_actions;
	uint64_t n_flows, saved_ms;
	uint32_t crc;
	uint8_t zero[24];
	uint32_t header_crc;
} __attribute__((packed));
_Static_assert(sizeof(struct header) == RECORD_BYTES, "as in docs/internals/flow.md");

struct flow {
	uint8_t src[16], dst[16];
	uint16_t src_port_be, dst_port_be, vrf;
	uint8_t proto, kind;
	uint32_t action, time_ms;
	uint64_t packets, bytes;
} __attribute__((packed));
_Static_assert(sizeof(struct flow) == RECORD_BYTES, "as in docs/internals/flow.md");

struct action {
	uint8_t effect, dscp, family, zero;
	uint32_t subscriber;
	uint8_t via[16];
	char interface[16], mirror[16];
	uint8_t more_zeros[8];
} __attribute__((packed));
_Static_assert(sizeof(struct action) == RECORD_BYTES, "as in docs/internals/flow.md");

struct request {
	enum flows_kind kind;
	unsigned bits;
	uint32_t n_hops;
	const char *table, *flows;
};

static _Noreturn void fail(const char *what, const char *path)
{
	fprintf(stderr, "flows: cannot %s %s: %s\n", what, path, strerror(errno));
	exit(EXIT_FAILURE);
}

static FILE *open_file(const char *path)
{
	FILE *file = fopen(path, "wb");

	if (!file || setvbuf(file, NULL, _IOFBF, BUFFER_BYTES))
		fail("create", path);
	return file;
}

static void write_to(FILE *file, const void *bytes, size_t n, const char *path)
{
	if (fwrite(bytes, n, 1, file) != 1)
		fail("write", path);
}

static void close_file(FILE *file, const char *path)
{
	if (fclose(file))
		fail("write", path);
}

// The frame of all records: without a source address, and without a UDP checksum, which would
// depend on the record.
static void make_frame(uint8_t frame[TABLE_FRAME_BYTES])
{
	struct wire_recipe recipe = wire_recipe(FAMILY_IP4);

	recipe.src_mac = (struct wire_mac){{2, 0, 0, 0, 0, 0xaa}};
	recipe.dst_mac = (struct wire_mac){{2, 0, 0, 0, 0, 1}};
	recipe.src = recipe.dst = (struct wire_addr){.family = FAMILY_IP4};
	recipe.frame_bytes = TABLE_FRAME_BYTES;
	if (wire_build(&recipe, frame, TABLE_FRAME_BYTES))
		abort();
	memset(frame + WIRE_ETHER_BYTES + WIRE_IP4_BYTES + 6, 0, 2);
}

static void write_table(const struct request *request)
{
	uint8_t frame[TABLE_FRAME_BYTES], record[TABLE_FLOW_BYTES];
	FILE *file = open_file(request->table);

	make_frame(frame);
	write_to(file, frame, sizeof(frame), request->table);
	for (uint32_t i = 0; i < 1u << request->bits; i++) {
		const struct flows_tuple flow =
			flows_tuple(request->kind, flows_order(i, request->bits));

		flows_record(&flow, frame, record);
		write_to(file, record, sizeof(record), request->table);
	}
	close_file(file, request->table);
}

static void make_flow(const struct request *request, uint32_t number, struct flow *flow)
{
	const struct flows_tuple tuple = flows_tuple(request->kind, number);
	const uint32_t src_be = htobe32(tuple.src), dst_be = htobe32(tuple.dst);

	*flow = (struct flow){.src_port_be = htobe16(tuple.src_port),
		.dst_port_be = htobe16(tuple.dst_port),
		.proto = WIRE_PROTO_UDP,
		.action = htole32(flows_mix(number) % request->n_hops)};
	memcpy(flow->src, &src_be, 4);
	memcpy(flow->dst, &dst_be, 4);
}

static void make_action(uint32_t hop, struct action *action)
{
	const uint32_t via_be = htobe32((10u << 24 | 1 << 16) + 1 + hop);

	*action = (struct action){.effect = TO_HOP,
		.dscp = KEEP_DSCP,
		.family = FAMILY_IP4,
		.interface = "out"};
	memcpy(action->via, &via_be, 4);
}

static void write_record(FILE *file, const void *record, uint32_t *crc, const char *path)
{
	*crc = rte_hash_crc(record, RECORD_BYTES, *crc);
	write_to(file, record, RECORD_BYTES, path);
}

static void write_header(const struct request *request, uint32_t crc, FILE *file)
{
	struct header header = {.magic = "DL3FLOWS",
		.version = htole32(VERSION),
		.n_actions = htole32(request->n_hops),
		.n_flows = htole64(1ULL << request->bits),
		.saved_ms = htole64(time(NULL) * 1000ULL),
		.crc = htole32(~crc)};

	header.header_crc =
		htole32(~rte_hash_crc(&header, offsetof(struct header, header_crc), ~0u));
	if (fseek(file, 0, SEEK_SET))
		fail("write", request->flows);
	write_to(file, &header, sizeof(header), request->flows);
}

static void write_flows(const struct request *request)
{
	FILE *file = open_file(request->flows);
	uint32_t crc = ~0u;
	struct action action;
	struct flow flow;

	write_to(file, &(struct header){.zero = {0}}, sizeof(struct header), request->flows);
	for (uint32_t i = 0; i < 1u << request->bits; i++) {
		make_flow(request, i, &flow);
		write_record(file, &flow, &crc, request->flows);
	}
	for (uint32_t i = 0; i < request->n_hops; i++) {
		make_action(i, &action);
		write_record(file, &action, &crc, request->flows);
	}
	write_header(request, crc, file);
	close_file(file, request->flows);
}

static bool parse(int argc, char *argv[], struct request *request)
{
	if (argc != 6)
		return false;
	const bool is_white_paper = !strcmp(argv[1], "white-paper");

	*request = (struct request){.kind = is_white_paper ? FLOWS_WHITE_PAPER : FLOWS_RANDOM,
		.bits = strtoul(argv[2], NULL, 10),
		.n_hops = strtoul(argv[3], NULL, 10),
		.table = argv[4],
		.flows = argv[5]};
	const unsigned most = is_white_paper ? FLOWS_WHITE_PAPER_BITS : FLOWS_MAX_BITS;

	return (is_white_paper || !strcmp(argv[1], "random")) && request->bits >= 1 &&
	       request->bits <= most && request->n_hops >= 1 && request->n_hops <= MAX_HOPS;
}

int main(int argc, char *argv[])
{
	struct request request;

	if (!parse(argc, argv, &request)) {
		fprintf(stderr,
			"usage: flows random|white-paper BITS HOPS TABLE FLOWS: 2^BITS "
			"flows (1 to %d, white-paper to %d), HOPS next hops (1 to %d)\n",
			FLOWS_MAX_BITS, FLOWS_WHITE_PAPER_BITS, MAX_HOPS);
		return 2;
	}
	write_table(&request);
	write_flows(&request);
	return 0;
}
