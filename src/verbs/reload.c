// The file again, while packets run: a new table beside the old one, then a swap. Control thread.
#include "verbs/inside.h"

#include "base/log.h"

#include <errno.h>
#include <string.h>

int verbs_build(const struct config *config, const struct port_face faces[], struct fib **out,
	struct complaint *why)
{
	struct wire_mac macs[PORT_MAX] = {0};

	for (unsigned i = 0; faces && i < config_ports(config)->n_ports; i++)
		memcpy(macs[i].bytes, faces[i].mac, sizeof(macs[i].bytes));
	struct fib *fib = fib_create(why);
	if (!fib)
		return -ENOMEM;
	int err = config_fill(config, macs, fib, why);
	if (err)
		fib_destroy(fib);
	else
		*out = fib;
	return err;
}

struct fib *verbs_swap(struct verbs_house *house, struct fib *fib)
{
	fib_count_from_now(fib, &(struct fib_count){hop_counted, house});
	return fib_door_swap(house->door, fib);
}

static bool differs(const struct port_settings *a, const struct port_settings *b)
{
	return a->mtu != b->mtu || a->pass_martians != b->pass_martians ||
	       a->has_peer != b->has_peer || !wire_mac_equal(&a->peer, &b->peer);
}

static void take_back(struct port_room *room, const struct port_room_settings *now,
	const struct port_room_settings *next, unsigned n)
{
	struct complaint why;

	for (unsigned i = 0; i < n; i++)
		if (differs(&now->ports[i], &next->ports[i]) &&
			port_change(room, i, &now->ports[i], &why))
			log_error("port %s could not be set back: %s", now->ports[i].name,
				why.text);
}

// All ports take what changed, or none does.
static int change_ports(struct port_room *room, const struct port_room_settings *now,
	const struct port_room_settings *next, struct complaint *why)
{
	for (unsigned i = 0; i < next->n_ports; i++) {
		int err = differs(&now->ports[i], &next->ports[i])
		                  ? port_change(room, i, &next->ports[i], why)
		                  : 0;

		if (err) {
			take_back(room, now, next, i);
			return err;
		}
	}
	return 0;
}

static int apply(struct verbs_house *house, struct config *next, struct complaint *why)
{
	const char *key = config_needs_restart(house->config, next);
	struct fib *fib;

	if (key)
		return complain(why, -EBUSY, "needs a restart: %s; nothing was changed", key);
	int err = verbs_build(next, port_faces(house->ports), &fib, why);
	if (err)
		return err;
	err = change_ports(house->ports, config_ports(house->config), config_ports(next), why);
	if (err) {
		fib_destroy(fib);
		return err;
	}
	fib_destroy(verbs_swap(house, fib));
	config_free(house->config);
	house->fib = fib;
	house->config = next;
	house->n_reloads++;
	return 0;
}

int verbs_reload(struct verbs_house *house, struct complaint *why)
{
	struct config *next;
	int err = config_load(&next, config_path(house->config), why);

	if (err)
		return err;
	err = apply(house, next, why);
	if (err)
		config_free(next);
	else
		config_forget_routes(next);
	return err;
}

json_t *verb_reload(void *house_, const json_t *params, struct complaint *why)
{
	struct verbs_house *house = house_;
	struct fib_usage usage;

	if (ctl_params_none(params, why) || verbs_reload(house, why))
		return NULL;
	fib_usage(house->fib, &usage);
	return json_pack("{s:i, s:I, s:I}", "reloads", (int)house->n_reloads, "routes4",
		(json_int_t)usage.n_routes4, "routes6", (json_int_t)usage.n_routes6);
}
