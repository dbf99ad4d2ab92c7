// Arbitrary bytes as a file of flows: either each flow in it is in the table, or there is one error
// message and the table is empty. If the first byte is odd, the checksums are made right, so that
// what is behind them is reached.
#include "flow/file.h"

#include "flow/testing.h"

#include <rte_byteorder.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MAX_FLOWS = 256 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void want(bool holds)
{
	if (!holds)
		abort();
}

static void repair(uint8_t *bytes, size_t n)
{
	struct file_header header;
	const uint32_t version = rte_cpu_to_le_32(FILE_VERSION);

	if (n < sizeof(header))
		return;
	memcpy(&header, bytes, sizeof(header));
	const bool keeps_version = header.version != version;
	const uint32_t before = header.version;
	header.records_crc =
		rte_cpu_to_le_32(file_crc(0, bytes + sizeof(header), n - sizeof(header)));
	file_header_seal(&header);
	if (keeps_version) {
		header.version = before;
		header.header_crc = rte_cpu_to_le_32(
			file_crc(0, &header, offsetof(struct file_header, header_crc)));
	}
	memcpy(bytes, &header, sizeof(header));
}

static int load(struct flow_load *load, struct flow_table *table, struct error *error)
{
	static uint32_t action[FLOW_ACTIONS];
	const struct flow_load_options options = {.action = action,
		.wall_ms = 1,
		.keeps_counters = true};
	uint32_t n;
	int more;

	do
		more = flow_load_check(load, error);
	while (more > 0);
	if (more)
		return more;
	flow_load_actions(load, &n);
	for (uint32_t i = 0; i < n; i++)
		action[i] = 1;
	do
		more = flow_load_apply(load, table, &options, TESTING_HZ, error);
	while (more > 0);
	want(!more);
	return 0;
}

static void check_records(const uint8_t *bytes, const struct flow_loaded *loaded,
	const struct flow_table *table)
{
	const struct file_flow *record = (const void *)(bytes + sizeof(struct file_header));
	struct flow_change change;
	struct flow_info info;

	for (uint64_t i = 0; i < loaded->n4 + loaded->n6; i++) {
		want(!file_flow_read(&record[i], FLOW_ACTIONS, &change, NULL));
		want(loaded->n_refused || flow_find(table, &change.key, TESTING_HZ, &info));
	}
}

static void check(const uint8_t *bytes, size_t n)
{
	struct error error = {""};
	struct flow_info info;
	const struct flow_settings settings = testing_settings(MAX_FLOWS, MAX_FLOWS, 1);
	int fd = memfd_create("flows", 0);

	want(fd >= 0 && write(fd, bytes, n) == (ssize_t)n);
	struct flow_table *table = testing_table(&settings);
	testing_use_actions(table, 1);
	struct flow_load *loading = flow_load_open(fd, "it", &error);
	if (loading && !load(loading, table, &error)) {
		const struct flow_loaded loaded = flow_load_result(loading);
		want(loaded.n_applied + loaded.n_refused == loaded.n4 + loaded.n6);
		check_records(bytes, &loaded, table);
	} else {
		want(!strncmp(error.text, "it", 2));
		want(!flow_next(table, 1, TESTING_HZ, &info));
	}
	flow_load_close(loading);
	flow_destroy(table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	if (!n)
		return 0;
	uint8_t *bytes = malloc(n);
	memcpy(bytes, data + 1, n - 1);
	if (data[0] & 1)
		repair(bytes, n - 1);
	check(bytes, n - 1);
	free(bytes);
	return 0;
}
