// Linux as control plane, for people: twins and classes, the mirror, what it cannot express, and
// whether lanes do as Linux would. Control thread.
#include "verbs/inside.h"

#include <errno.h>

// A reply's line is at most 1 MiB.
enum { MAX_UNSUPPORTED = 2000, MAX_DIFFERENCES = 1000, DEFAULT_DIFFERENCES = 100 };

// Parameters first, so that a wrong one is named in any case.
static int check_linux(const struct verbs_house *house, struct complaint *why)
{
	if (house->twins && house->sync)
		return 0;
	return complain(why, -ENOTSUP,
		"Linux is not the control plane here: the file has no key \"linux\"");
}

static json_t *twin_json(const struct verbs_house *house, unsigned port)
{
	struct stat_port sum;
	struct tap_info info;
	unsigned n;
	struct stat_lane *const *lanes = path_stats(house->path, &n);

	tap_info(house->twins, port, &info);
	stat_sum_port(&sum, lanes, n, port);
	json_t *json = json_pack("{s:o, s:o, s:i, s:b, s:b, s:b}", "port",
		ctl_text_json(port_word(house, port)), "name", ctl_text_json(info.name), "ifindex",
		info.ifindex, "carrier", info.carrier, "adopted", info.adopted, "held", info.held);
	uint64_t punted = stat_read(&tap_stats(house->twins)->punted_by_port[port]);
	json_object_set_new(json, "punted", number_json(punted));
	json_object_set_new(json, "injected", number_json(sum.injected_packets));
	return json;
}

#define SET_CLASS_FIELD(name, text)                                                                \
	json_object_set_new(json, #name, number_json(stat_read(&counters->name)));

static json_t *class_json(const struct verbs_house *house, enum punt_class class)
{
	const struct class_row *row = class_row(class);
	const struct stat_class *counters = &tap_stats(house->twins)->class[class];
	struct tap_class_settings limit = tap_class(house->twins, class);
	uint64_t ring_full = 0;
	unsigned n;
	struct stat_lane *const *lanes = path_stats(house->path, &n);

	for (unsigned i = 0; i < n; i++)
		ring_full += stat_read(&lanes[i]->ring_full[class]);
	json_t *json = json_pack("{s:s, s:I, s:I, s:s, s:I, s:s}", "name", row->name, "rate_pps",
		(json_int_t)limit.rate, "burst", (json_int_t)limit.burst, "overflow",
		limit.forwards ? "forward" : "drop", "ring_full", (json_int_t)ring_full, "text",
		row->text);
	SCHEMA_CLASS_COUNTERS(SET_CLASS_FIELD)
	return json;
}

json_t *verb_twins(void *house_, const json_t *params, struct complaint *why)
{
	const struct verbs_house *house = house_;
	struct tap_info info;

	if (ctl_params_none(params, why) || check_linux(house, why))
		return NULL;
	json_t *twins = json_array(), *classes = json_array();
	for (unsigned i = 0; i < config_ports(house->config)->n_ports; i++)
		json_array_append_new(twins, twin_json(house, i));
	for (unsigned c = 0; c < N_CLASSES; c++)
		json_array_append_new(classes, class_json(house, c));
	tap_info(house->twins, 0, &info);
	return json_pack("{s:o, s:b, s:b, s:o, s:o}", "namespace",
		ctl_text_json(info.namespace_name), "namespace_is_own", info.namespace_is_own,
		"keep", info.keep, "twins", twins, "classes", classes);
}

const char *mirror_word(const struct sync *sync)
{
	struct sync_info info;

	sync_info(sync, &info);
	return info.state == SYNC_DUMPING ? "dumping" : "following";
}

static json_t *link_json(const struct verbs_house *house, unsigned id, const struct fib_link *link)
{
	json_t *json = json_pack("{s:i, s:o, s:o, s:o, s:i, s:o}", "link", (int)id, "name",
		ctl_text_json(link_word(house, id)), "port",
		ctl_text_json(port_word(house, link->port)), "vrf",
		ctl_text_json(vrf_word(house, link->vrf)), "mtu", (int)link->mtu, "mac",
		mac_json(&link->mac));

	json_object_set_new(json, "vlans", tags_json(link));
	json_object_set_new(json, "up", json_boolean(!(link->flags & FIB_LINK_DOWN)));
	json_object_set_new(json, "all_to_linux", json_boolean(link->flags & FIB_LINK_LINUX));
	json_object_set_new(json, "ip4_to_linux", json_boolean(link->flags & FIB_LINK_LINUX4));
	json_object_set_new(json, "ip6_to_linux", json_boolean(link->flags & FIB_LINK_LINUX6));
	return json;
}

#define MIRROR_FIELD(name) json_object_set_new(json, #name, number_json(info.name));

static void set_mirror_numbers(json_t *json, const struct sync *sync)
{
	struct sync_info info;

	sync_info(sync, &info);
	MIRROR_FIELD(messages)
	MIRROR_FIELD(ignored)
	MIRROR_FIELD(malformed)
	MIRROR_FIELD(overruns)
	MIRROR_FIELD(dumps)
	MIRROR_FIELD(dumps_restarted)
	MIRROR_FIELD(dumps_partial)
	MIRROR_FIELD(routes4)
	MIRROR_FIELD(routes6)
	MIRROR_FIELD(neighbours)
	MIRROR_FIELD(nexthops)
	MIRROR_FIELD(control_bytes)
	MIRROR_FIELD(audited)
	MIRROR_FIELD(drifted)
	MIRROR_FIELD(managed)
	json_object_set_new(json, "last_dump_s", json_real(info.last_dump_ns / 1e9));
	json_object_set_new(json, "receive_buffer_bytes", number_json(info.receive_buffer));
}

static json_t *bursts_json(const struct sync *sync)
{
	struct sync_burst bursts[SYNC_BURSTS];
	unsigned n = sync_bursts(sync, bursts);
	json_t *list = json_array();

	for (unsigned i = 0; i < n; i++)
		json_array_append_new(list,
			json_pack("{s:o, s:f, s:o}", "at_ns", number_json(bursts[i].end_ns), "us",
				(bursts[i].end_ns - bursts[i].begin_ns) / 1e3, "messages",
				number_json(bursts[i].messages)));
	return list;
}

json_t *verb_mirror(void *house_, const json_t *params, struct complaint *why)
{
	const struct verbs_house *house = house_;

	if (ctl_params_none(params, why) || check_linux(house, why))
		return NULL;
	json_t *json = json_pack("{s:s}", "state", mirror_word(house->sync)), *links = json_array(),
	       *vrfs = json_array();
	set_mirror_numbers(json, house->sync);
	for (unsigned id = 0; id < FIB_MAX_LINKS; id++) {
		const struct fib_link *link = fib_link(house->fib, id);

		if (link)
			json_array_append_new(links, link_json(house, id, link));
	}
	for (unsigned vrf = 0; vrf < FIB_MAX_VRFS; vrf++)
		if (vrf_word(house, vrf))
			json_array_append_new(vrfs, ctl_text_json(vrf_word(house, vrf)));
	json_object_set_new(json, "links", links);
	json_object_set_new(json, "vrfs", vrfs);
	json_object_set_new(json, "bursts", bursts_json(house->sync));
	return json;
}

// Takes what is told into a list, up to its limit, and counts all of it.
struct listing {
	json_t *list;
	size_t n, max;
};

static bool list_unsupported(void *arg, const struct sync_unsupported *one)
{
	struct listing *listing = arg;

	if (listing->n++ < listing->max)
		json_array_append_new(listing->list,
			json_pack("{s:o, s:o, s:o, s:I}", "what", ctl_text_json(one->what), "where",
				ctl_text_json(one->where), "effect", ctl_text_json(one->effect),
				"alike", (json_int_t)one->n));
	return true;
}

json_t *verb_unsupported(void *house_, const json_t *params, struct complaint *why)
{
	const struct verbs_house *house = house_;
	struct listing listing = {.max = MAX_UNSUPPORTED};

	if (ctl_params_none(params, why) || check_linux(house, why))
		return NULL;
	listing.list = json_array();
	sync_unsupported(house->sync, list_unsupported, &listing);
	return json_pack("{s:I, s:o}", "found", (json_int_t)listing.n, "unsupported", listing.list);
}

static bool list_difference(void *arg, const char *difference)
{
	struct listing *listing = arg;

	if (listing->n++ < listing->max)
		json_array_append_new(listing->list, ctl_text_json(difference));
	return true;
}

json_t *verb_verify(void *house_, const json_t *params, struct complaint *why)
{
	const struct verbs_house *house = house_;
	long sample = 0, limit = DEFAULT_DIFFERENCES;
	const struct ctl_param rows[] = {
		{"sample", CTL_NUMBER, false, 1, INT32_MAX, &sample},
		{"limit", CTL_NUMBER, false, 1, MAX_DIFFERENCES, &limit},
	};

	if (ctl_params_read(params, rows, 2, why) || check_linux(house, why))
		return NULL;
	struct listing listing = {.list = json_array(), .max = limit};
	struct sync_verification how = {.sample = sample, .tell = list_difference, .arg = &listing};
	int found = sync_verify(house->sync, &how, why);
	if (found < 0) {
		json_decref(listing.list);
		return NULL;
	}
	return json_pack("{s:I, s:i, s:o}", "compared", (json_int_t)how.compared, "differences",
		found, "listed", listing.list);
}
