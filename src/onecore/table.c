// Reads a table of destinations from a file; at plugin start, before any packet.
#include "onecore/table.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int read_all(int file, uint8_t *bytes, size_t n)
{
	for (size_t at = 0; at < n;) {
		ssize_t got = read(file, bytes + at, n - at);

		if (got < 0)
			return -errno;
		if (got == 0)
			return -EINVAL;
		at += got;
	}
	return 0;
}

// Sets what the frame tells: which records follow.
static void know_records(struct table *table, uint16_t ethertype)
{
	static const uint8_t none[6];

	table->is_ip6 = ethertype == 0x86dd;
	table->has_macs = !table->is_ip6 && !memcmp(table->frame + TABLE_SOURCE_MAC_AT, none, 6);
	table->has_flows = !table->is_ip6 && !table->has_macs &&
	                   !memcmp(table->frame + TABLE_SOURCE4_AT, none, 4);
	table->record_bytes = table->is_ip6      ? TABLE_RECORD6_BYTES
	                      : table->has_macs  ? TABLE_MACS_BYTES
	                      : table->has_flows ? TABLE_FLOW_BYTES
	                                         : TABLE_RECORD4_BYTES;
	table->mac_at[0] = 0;
	table->mac_at[1] = TABLE_SOURCE_MAC_AT;
	table->port_at[0] = TABLE_PORTS_AT;
	table->port_at[1] = TABLE_PORTS_AT + 2;
	table->spread_at = table->is_ip6      ? 14 // end of the address
	                   : table->has_macs  ? 4  // end of the first MAC address
	                   : table->has_flows ? 8  // source port
	                                      : 2; // end of the address
}

// Parses the contents of a file as a table. Returns false if invalid.
static bool adopt(struct table *table, const uint8_t *bytes, size_t n)
{
	memcpy(table->frame, bytes, TABLE_FRAME_BYTES);
	uint16_t ethertype = table->frame[12] << 8 | table->frame[13];
	if (ethertype != 0x0800 && ethertype != 0x86dd)
		return false;

	know_records(table, ethertype);
	size_t n_records = (n - TABLE_FRAME_BYTES) / table->record_bytes;
	if (n != TABLE_FRAME_BYTES + n_records * table->record_bytes || n_records == 0 ||
		n_records > 1u << 31)
		return false;

	table->records = bytes + TABLE_FRAME_BYTES;
	table->mask = n_records - 1;
	return (n_records & (n_records - 1)) == 0;
}

static int map_file(struct table *table, int file)
{
	struct stat status;

	if (fstat(file, &status))
		return -errno;
	size_t n = status.st_size;
	if (n <= TABLE_FRAME_BYTES)
		return -EINVAL;
	uint8_t *bytes = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (bytes == MAP_FAILED)
		return -ENOMEM;
	madvise(bytes, n, MADV_HUGEPAGE);
	int error = read_all(file, bytes, n);
	if (!error && !adopt(table, bytes, n))
		error = -EINVAL;
	if (error)
		munmap(bytes, n);
	return error;
}

int table_wrap(struct table *table, const char *path)
{
	uint8_t bytes[TABLE_OUTER_BYTES + 1];
	int file = open(path, O_RDONLY | O_CLOEXEC);

	if (file < 0)
		return -errno;
	ssize_t n = read(file, bytes, sizeof(bytes));
	int error = n < 0 ? -errno : n == TABLE_OUTER_BYTES ? 0 : -EINVAL;
	close(file);
	if (error)
		return error;
	memcpy(table->outer, bytes, TABLE_OUTER_BYTES);
	table->has_outer = true;
	return 0;
}

int table_load(struct table *table, const char *path, const uint8_t *mac)
{
	int file = open(path, O_RDONLY | O_CLOEXEC);

	if (file < 0)
		return -errno;
	int error = map_file(table, file);
	close(file);
	if (!error && mac)
		memcpy(table->frame, mac, 6);
	return error;
}

void table_turn(const struct table *table, struct table *back)
{
	*back = *table;
	for (int i = 0; i < 2; i++) {
		back->mac_at[i] = table->mac_at[1 - i];
		back->port_at[i] = table->port_at[1 - i];
	}
}
