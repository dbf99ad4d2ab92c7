// The file again, while packets run. Control thread.
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

// A port as it is to be. Its MTU is Linux's where it has a twin.
static struct port_settings as_wanted(const struct verbs_house *house, unsigned port,
	const struct port_settings *settings)
{
	struct port_settings wanted = *settings;
	struct port_info info;

	if (!house->twins)
		return wanted;
	port_info(house->ports, port, &info);
	wanted.mtu = info.mtu;
	return wanted;
}

static int change_port(const struct verbs_house *house, unsigned port,
	const struct port_settings *settings, struct complaint *why)
{
	struct port_settings wanted = as_wanted(house, port, settings);

	return port_change(house->ports, port, &wanted, why);
}

static bool differs(const struct port_settings *a, const struct port_settings *b)
{
	return a->mtu != b->mtu || a->pass_martians != b->pass_martians ||
	       a->has_peer != b->has_peer || !wire_mac_equal(&a->peer, &b->peer);
}

static void take_back(const struct verbs_house *house, const struct port_room_settings *now,
	const struct port_room_settings *next, unsigned n)
{
	struct complaint why;

	for (unsigned i = 0; i < n; i++)
		if (differs(&now->ports[i], &next->ports[i]) &&
			change_port(house, i, &now->ports[i], &why))
			log_error("port %s could not be set back: %s", now->ports[i].name,
				why.text);
}

// All ports take what changed, or none does.
static int change_ports(const struct verbs_house *house, const struct port_room_settings *now,
	const struct port_room_settings *next, struct complaint *why)
{
	for (unsigned i = 0; i < next->n_ports; i++) {
		int err = differs(&now->ports[i], &next->ports[i])
		                  ? change_port(house, i, &next->ports[i], why)
		                  : 0;

		if (err) {
			take_back(house, now, next, i);
			return err;
		}
	}
	return 0;
}

// A new table beside the old one, then a swap.
static int apply_static(struct verbs_house *house, struct config *next, struct complaint *why)
{
	struct fib *fib;
	int err = verbs_build(next, port_faces(house->ports), &fib, why);

	if (err)
		return err;
	err = change_ports(house, config_ports(house->config), config_ports(next), why);
	if (err) {
		fib_destroy(fib);
		return err;
	}
	fib_destroy(verbs_swap(house, fib));
	house->fib = fib;
	return 0;
}

// The table is the mirror's: it stays. Twins that somebody has deleted are made again.
static int apply_linux(struct verbs_house *house, struct config *next, struct complaint *why)
{
	const struct port_room_settings *now = config_ports(house->config);
	int err = change_ports(house, now, config_ports(next), why);

	if (err)
		return err;
	err = tap_restore(house->twins, why);
	if (err)
		take_back(house, now, config_ports(next), now->n_ports);
	else
		tap_change(house->twins, config_twins(next));
	return err;
}

static int apply(struct verbs_house *house, struct config *next, struct complaint *why)
{
	const char *key = config_needs_restart(house->config, next);

	if (key)
		return complain(why, -EBUSY, "needs a restart: %s; nothing was changed", key);
	int err = house->twins ? apply_linux(house, next, why) : apply_static(house, next, why);
	if (err)
		return err;
	config_free(house->config);
	house->config = next;
	house->n_reloads++;
	return 0;
}

int verbs_reload(struct verbs_house *house, struct complaint *why)
{
	struct config *next;
	int err = config_load_again(&next, house->config, why);

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
