// All TAP interfaces: create, hold, recreate, close. Control thread.
#include "tap/table.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static void request_for(const struct tap_table *taps, unsigned port, struct tap_request *request)
{
	struct port_info info;

	port_info(taps->ports, port, &info);
	*request = (struct tap_request){
		.name = info.name,
		.namespace_name = taps->namespace_name,
		.mac = info.mac,
		.mtu = info.mtu,
		.keep = taps->settings->keep,
	};
}

int taps_make(struct tap_table *taps, struct error *error)
{
	unsigned n = port_n_ports(taps->ports);
	struct tap_request request;
	int err = 0;

	// All are checked before the first one is created.
	for (unsigned p = 0; p < n && !err; p++) {
		request_for(taps, p, &request);
		err = tap_device_check(&request, &taps->sockets, error);
	}
	for (unsigned p = 0; p < n && !err; p++) {
		request_for(taps, p, &request);
		struct tap_device *tap = &taps->taps[p].tap;

		err = tap_device_make(tap, &request, &taps->sockets, error);
		taps->n_taps += !err;
		taps->taps[p].awaits_link = !err && tap->adopted && tap->has_carrier;
	}
	if (err)
		taps_close(taps, true);
	return err;
}

static void key_of(const struct tap_table *taps, unsigned port, char key[HOLD_KEY_MAX])
{
	struct port_info info;

	port_info(taps->ports, port, &info);
	snprintf(key, HOLD_KEY_MAX, "%s/%s", taps->namespace_name, info.name);
}

int taps_hold_one(struct tap_table *taps, unsigned port, struct error *error)
{
	struct tap_entry *tap = &taps->taps[port];
	char key[HOLD_KEY_MAX];

	if (tap->tap.held < 0)
		return 0;
	key_of(taps, port, key);
	int err = hold_give(taps->holder, key, tap->tap.held);
	if (err)
		return error_set(error, err,
			"linux: dl3d-hold did not accept %s: %s; stop that process (dl3d --hold "
			"%s) and try again",
			key, strerror(-err), taps->settings->hold_socket);
	close(tap->tap.held);
	tap->tap.held = -1;
	tap->is_held = true;
	return 0;
}

void taps_release(struct tap_table *taps, unsigned port)
{
	char key[HOLD_KEY_MAX];

	if (taps->holder < 0)
		return;
	key_of(taps, port, key);
	hold_release(taps->holder, key);
	taps->taps[port].is_held = false;
}

int taps_hold(struct tap_table *taps, struct error *error)
{
	const char *path = taps->settings->hold_socket;
	int err = 0;

	if (taps->holder < 0)
		taps->holder = taps->settings->keep ? hold_start(path, error) : hold_connect(path);
	if (taps->settings->keep && taps->holder < 0)
		return taps->holder;
	for (unsigned p = 0; p < taps->n_taps && !err; p++) {
		if (taps->taps[p].is_absent)
			continue;
		if (taps->settings->keep) {
			err = taps_hold_one(taps, p, error);
			continue;
		}
		tap_device_forget(&taps->taps[p].tap);
		taps_release(taps, p);
	}
	return err;
}

void taps_blank(struct tap_table *taps, unsigned port)
{
	struct tap_entry *tap = &taps->taps[port];

	dup3(taps->blank, tap->tap.fd, O_CLOEXEC);
	if (tap->tap.held >= 0)
		close(tap->tap.held); // no holder has taken it
	tap->tap.held = -1;
	tap->tap.index = 0;
	tap->tap.has_carrier = false;
	__atomic_store_n(&tap->n_files, tap->n_files + 1, __ATOMIC_RELAXED);
}

// Makes the TAP interface behind the descriptor.
static int make_behind(struct tap_table *taps, unsigned port, const struct tap_request *request,
	struct error *error)
{
	struct tap_entry *tap = &taps->taps[port];
	struct tap_device made;
	int err = tap_device_make(&made, request, &taps->sockets, error);

	if (err)
		return err;
	if (dup3(made.fd, tap->tap.fd, O_CLOEXEC) < 0) {
		err = -errno;
		tap_device_close(&made, true);
		return error_set(error, err,
			"port '%s': cannot open a file for its TAP interface: %s", request->name,
			strerror(-err));
	}
	close(made.fd);
	// Everything except the descriptor, which the thread may read at any time and which stays
	// the same.
	tap->tap.held = made.held;
	tap->tap.index = made.index;
	memcpy(tap->tap.name, made.name, sizeof(made.name));
	tap->tap.adopted = made.adopted;
	tap->tap.has_carrier = made.has_carrier;
	__atomic_store_n(&tap->n_files, tap->n_files + 1, __ATOMIC_RELAXED);
	return 0;
}

static int restore_one(struct tap_table *taps, unsigned port, struct error *error)
{
	struct tap_request request;

	request_for(taps, port, &request);
	int err = make_behind(taps, port, &request, error);
	if (!err)
		log_info("port '%s': TAP interface recreated in namespace '%s'", request.name,
			request.namespace_name);
	return err;
}

// A descriptor for each port up to this one.
static int open_files(struct tap_table *taps, unsigned port, struct error *error)
{
	for (unsigned p = taps->n_taps; p <= port; p++) {
		struct tap_entry *tap = &taps->taps[p];
		int fd = fcntl(taps->blank, F_DUPFD_CLOEXEC, 0);

		if (fd < 0)
			return error_set(error, -errno,
				"linux: cannot open a file for a TAP interface: %s",
				strerror(errno));
		tap->tap = (struct tap_device){.fd = fd, .held = -1};
		tap->is_absent = true;
		__atomic_store_n(&taps->n_taps, p + 1, __ATOMIC_RELEASE);
	}
	return 0;
}

int taps_make_one(struct tap_table *taps, unsigned port, struct error *error)
{
	struct tap_entry *tap = &taps->taps[port];
	struct tap_request request;
	struct port_info info;

	request_for(taps, port, &request);
	port_info(taps->ports, port, &info);
	int err = open_files(taps, port, error);
	if (!err)
		err = make_behind(taps, port, &request, error);
	if (err)
		return err;
	tap->is_held = tap->said_too_long = false;
	tap->awaits_link = tap->tap.adopted && tap->tap.has_carrier;
	tap->n_own_macs = info.n_own_macs;
	return 0;
}

// With its last file the interface goes, unless it is persistent.
void taps_remove_one(struct tap_table *taps, unsigned port)
{
	struct tap_entry *tap = &taps->taps[port];

	__atomic_store_n(&tap->is_absent, true, __ATOMIC_RELEASE);
	tap_device_forget(&tap->tap);
	taps_release(taps, port);
	taps_blank(taps, port);
}

int taps_restore(struct tap_table *taps, struct error *error)
{
	int first = 0;

	for (unsigned p = 0; p < taps->n_taps; p++) {
		if (taps->taps[p].tap.index || taps->taps[p].is_absent)
			continue;
		int err = restore_one(taps, p, first ? NULL : error);

		if (!first)
			first = err;
	}
	return first;
}

void taps_close(struct tap_table *taps, bool undo)
{
	for (unsigned p = 0; p < taps->n_taps; p++) {
		if (undo && !taps->taps[p].tap.adopted)
			taps_release(taps, p);
		tap_device_close(&taps->taps[p].tap, undo);
	}
	taps->n_taps = 0;
}
