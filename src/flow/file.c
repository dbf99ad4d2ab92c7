// The records of a file of flows. No thread.
#include "flow/file.h"

#include <errno.h>
#include <rte_byteorder.h>
#include <rte_hash_crc.h>
#include <unistd.h>

static const uint8_t MAGIC[8] = "DL3FLOWS";

uint32_t file_crc(uint32_t crc, const void *from, size_t n)
{
	return ~rte_hash_crc(from, n, ~crc);
}

void file_header_seal(struct file_header *header)
{
	memcpy(header->magic, MAGIC, sizeof(MAGIC));
	header->version = rte_cpu_to_le_32(FILE_VERSION);
	memset(header->zero, 0, sizeof(header->zero));
	header->header_crc =
		rte_cpu_to_le_32(file_crc(0, header, offsetof(struct file_header, header_crc)));
}

bool flow_file_begins(int fd)
{
	uint8_t magic[sizeof(MAGIC)];

	return pread(fd, magic, sizeof(magic), 0) == sizeof(magic) &&
	       !memcmp(magic, MAGIC, sizeof(magic));
}

static bool is_zero(const uint8_t *from, size_t n)
{
	uint8_t any = 0;

	for (size_t i = 0; i < n; i++)
		any |= from[i];
	return !any;
}

int file_header_check(const struct file_header *header, uint64_t file_bytes, const char *name,
	struct error *error)
{
	const uint64_t n_flows = rte_le_to_cpu_64(header->n_flows);
	const uint32_t n_actions = rte_le_to_cpu_32(header->n_actions);

	if (memcmp(header->magic, MAGIC, sizeof(MAGIC)))
		return error_set(error, -EINVAL, "%s is not a file of flows", name);
	if (header->header_crc !=
		rte_cpu_to_le_32(file_crc(0, header, offsetof(struct file_header, header_crc))))
		return error_set(error, -EINVAL, "%s: the header is damaged (its checksum differs)",
			name);
	if (header->version != rte_cpu_to_le_32(FILE_VERSION))
		return error_set(error, -EINVAL, "%s has version %u: expected %u", name,
			rte_le_to_cpu_32(header->version), FILE_VERSION);
	if (!is_zero(header->zero, sizeof(header->zero)) || n_flows > FLOW_MAX ||
		n_actions > FLOW_ACTIONS)
		return error_set(error, -EINVAL, "%s: invalid header", name);
	if (file_bytes != (1 + n_flows + n_actions) * FILE_RECORD_BYTES)
		return error_set(error, -EINVAL,
			"%s has %llu bytes: expected %llu, for %llu flows and %u actions", name,
			(unsigned long long)file_bytes,
			(unsigned long long)(1 + n_flows + n_actions) * FILE_RECORD_BYTES,
			(unsigned long long)n_flows, n_actions);
	return 0;
}

void file_flow_write(struct file_flow *record, const struct flow_info *info, uint32_t action)
{
	const uint64_t time_ms = info->life == FLOW_FIXED_END ? info->left_ms : info->idle_ms;
	struct flow_tuple tuple;

	flow_key_tuple(&info->key, &tuple);
	*record = (struct file_flow){.src_port_be = rte_cpu_to_be_16(tuple.src_port),
		.dst_port_be = rte_cpu_to_be_16(tuple.dst_port),
		.vrf = rte_cpu_to_le_16(tuple.vrf),
		.proto = tuple.proto,
		.kind = info->life | (info->key.family == 6 ? FILE_IPV6 : 0),
		.action = rte_cpu_to_le_32(action),
		.time_ms = rte_cpu_to_le_32(MIN_OF(time_ms, FLOW_MAX_LASTS_MS)),
		.packets = rte_cpu_to_le_64(info->packets),
		.bytes = rte_cpu_to_le_64(info->bytes)};
	memcpy(record->src, tuple.src.bytes, sizeof(record->src));
	memcpy(record->dst, tuple.dst.bytes, sizeof(record->dst));
}

static int read_key(const struct file_flow *record, struct flow_key *key, struct error *error)
{
	const uint8_t family = record->kind & FILE_IPV6 ? 6 : 4;
	struct flow_tuple tuple = {.src.family = family,
		.dst.family = family,
		.src_port = rte_be_to_cpu_16(record->src_port_be),
		.dst_port = rte_be_to_cpu_16(record->dst_port_be),
		.vrf = rte_le_to_cpu_16(record->vrf),
		.proto = record->proto};

	if (family == 4 && !(is_zero(record->src + 4, 12) && is_zero(record->dst + 4, 12)))
		return error_set(error, -EINVAL, "bytes after an IPv4 address are not 0");
	memcpy(tuple.src.bytes, record->src, sizeof(record->src));
	memcpy(tuple.dst.bytes, record->dst, sizeof(record->dst));
	return flow_key_set(key, &tuple, error);
}

int file_flow_read(const struct file_flow *record, uint32_t n_actions, struct flow_change *change,
	struct error *error)
{
	const unsigned life = record->kind & 0xf;
	const uint32_t time_ms = rte_le_to_cpu_32(record->time_ms);
	const bool has_end = life == FLOW_FIXED_END;

	*change = (struct flow_change){.op = FLOW_REPLACE,
		.life = life,
		.action = rte_le_to_cpu_32(record->action),
		.lasts_ms = has_end ? time_ms : 0,
		.idle_ms = has_end ? 0 : time_ms,
		.packets = rte_le_to_cpu_64(record->packets),
		.bytes = rte_le_to_cpu_64(record->bytes)};
	if (life >= FLOW_LIVES || record->kind & ~(FILE_IPV6 | 0xf))
		return error_set(error, -EINVAL, "kind 0x%02x", record->kind);
	if (change->action >= n_actions)
		return error_set(error, -EINVAL, "action %u of %u", change->action, n_actions);
	if (time_ms > FLOW_MAX_LASTS_MS)
		return error_set(error, -EINVAL, "a time of %u ms", time_ms);
	if (change->packets > FLOW_MAX_PACKETS || (change->bytes && !change->packets))
		return error_set(error, -EINVAL, "%llu packets with %llu bytes",
			(unsigned long long)change->packets, (unsigned long long)change->bytes);
	return read_key(record, &change->key, error);
}
