// The forwarder as a whole. Control thread.
#include "verbs/inside.h"

#include "base/clock.h"

#include <rte_version.h>
#include <unistd.h>

// Grows when a verb or field changes its meaning; new ones do not count.
enum { PROTOCOL = 1 };

static json_t *memory_json(const struct verbs_house *house)
{
	struct port_memory memory;

	port_memory(house->ports, &memory);
	return json_pack("{s:b, s:i, s:i, s:I, s:I}", "hugepages", memory.huge, "planned_mib",
		(int)memory.planned_mib, "mbuf_bytes", (int)memory.mbuf_bytes, "mbufs",
		(json_int_t)memory.n_mbufs, "mbufs_free", (json_int_t)memory.n_mbufs_free);
}

static void set_table(json_t *status, const struct verbs_house *house)
{
	struct fib_usage usage;

	fib_usage(house->fib, &usage);
	json_object_set_new(status, "routes",
		json_pack("{s:I, s:I}", "ip4", (json_int_t)usage.n_routes4, "ip6",
			(json_int_t)usage.n_routes6));
	json_object_set_new(status, "nexthops", number_json(usage.n_hops));
	json_object_set_new(status, "neighbours", number_json(usage.n_neighbours));
	json_t *table = json_pack("{s:I, s:I, s:I}", "lane_bytes4", (json_int_t)usage.lane_bytes4,
		"lane_bytes6", (json_int_t)usage.lane_bytes6, "lane_bytes_nexthops",
		(json_int_t)usage.lane_bytes_hops);
	json_object_set_new(table, "control_bytes", number_json(usage.control_bytes));
	json_object_set_new(table, "pending_frees", number_json(usage.pending_frees));
	json_object_set_new(status, "table", table);
}

json_t *verb_status(void *house_, const json_t *params, struct complaint *why)
{
	const struct verbs_house *house = house_;
	struct stat_account account;

	if (ctl_params_none(params, why))
		return NULL;
	account_read(house, &account);
	json_t *status = json_pack("{s:s, s:i, s:s, s:i}", "version", DL3_VERSION, "protocol",
		PROTOCOL, "dpdk", rte_version(), "pid", (int)getpid());
	json_object_set_new(status, "config", ctl_text_json(config_path(house->config)));
	json_object_set_new(status, "control", ctl_text_json(house->twins ? "linux" : "static"));
	json_object_set_new(status, "mirror",
		ctl_text_json(house->sync ? mirror_word(house->sync) : NULL));
	json_object_set_new(status, "uptime_s",
		json_real((clock_now_ns() - house->started_ns) / 1e9));
	json_object_set_new(status, "reloads", number_json(house->n_reloads));
	json_object_set_new(status, "ports", number_json(config_ports(house->config)->n_ports));
	json_object_set_new(status, "lanes", number_json(port_n_lanes(house->ports)));
	json_object_set_new(status, "memory", memory_json(house));
	set_table(status, house);
	json_object_set_new(status, "account", account_json(&account));
	return status;
}
