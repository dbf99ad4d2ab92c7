// The public face: sockets and mirror together. Control thread.
#include "sync/sync.h"

#include "sync/inside.h"
#include "sync/links.h"
#include "sync/sysctl.h"
#include "sync/tcx.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { RECEIVE_BUFFER = 64 << 20, TICK_NS = 100000000, BUDGET_NS = 5000000 };

// The mirror's hands.
static int set_admin(void *hands, unsigned port, bool up)
{
	struct sync *sync = hands;

	return port_set_admin(sync->house.ports, port, up, NULL);
}

static int set_mtu(void *hands, unsigned port, uint16_t mtu)
{
	struct sync *sync = hands;

	return port_set_mtu(sync->house.ports, port, mtu, NULL);
}

static int set_mac(void *hands, unsigned port, const struct wire_mac *mac)
{
	struct sync *sync = hands;

	return port_set_mac(sync->house.ports, port, mac, NULL);
}

static int set_promiscuous(void *hands, unsigned port, bool promiscuous)
{
	struct sync *sync = hands;

	return port_set_promiscuous(sync->house.ports, port, promiscuous, NULL);
}

static bool sends_redirects(void *hands, const char *interface, uint8_t family)
{
	return sysctl_sends_redirects(((struct sync *)hands)->house.twins, interface, family);
}

static bool disables_ipv6(void *hands, const char *interface)
{
	return sysctl_disables_ipv6(((struct sync *)hands)->house.twins, interface);
}

static unsigned mtu6(void *hands, const char *interface)
{
	return sysctl_mtu6(((struct sync *)hands)->house.twins, interface);
}

static uint8_t tcx(void *hands, int ifindex)
{
	return tcx_sides(((struct sync *)hands)->house.twins, ifindex);
}

static bool has_old_tables(void *hands, uint8_t family)
{
	return sysctl_has_old_tables(((struct sync *)hands)->house.twins, family);
}

static void dump_again(void *hands)
{
	listen_dump_again(((struct sync *)hands)->listen);
}

// The listener's ears.
static void hear_event(void *arg, const struct event *event)
{
	struct sync *sync = arg;

	if (event->kind != EVENT_NEIGHBOUR)
		sync->n_changes++;
	mirror_event(sync->mirror, event);
}

static void hear_begin(void *arg)
{
	mirror_dump_begins(((struct sync *)arg)->mirror);
}

static void hear_lack(void *arg, enum event_kind kind)
{
	mirror_dump_lacks(((struct sync *)arg)->mirror, kind);
}

static void hear_end(void *arg, uint32_t partial)
{
	mirror_dump_ends(((struct sync *)arg)->mirror, partial);
}

static int open_mirror(struct sync *sync, struct complaint *why)
{
	struct mirror_settings settings = {.fib = sync->house.fib,
		.n_ports = sync->house.n_ports,
		.hands = {set_admin, set_mtu, set_mac, set_promiscuous, sends_redirects,
			disables_ipv6, mtu6, tcx, has_old_tables, dump_again, sync}};

	for (unsigned i = 0; i < sync->house.n_ports; i++) {
		struct port_info info;

		port_info(sync->house.ports, i, &info);
		settings.twin[i] = tap_twin(sync->house.twins, i);
		settings.port[i] =
			(struct mirror_port){.mac = info.mac, .mtu = info.mtu, .up = true};
		sysctl_prepare_twin(sync->house.twins, info.name);
	}
	return mirror_open(&sync->mirror, &settings, why);
}

struct opening {
	struct sync *sync;
	struct complaint *why;
};

static int open_listen(void *arg)
{
	struct opening *opening = arg;
	struct listen_ears ears = {hear_event, hear_begin, hear_lack, hear_end, opening->sync};

	return listen_open(&opening->sync->listen, &ears, RECEIVE_BUFFER, opening->why);
}

// Readable when there are messages, and ten times a second.
static int open_clock(struct sync *sync, struct complaint *why)
{
	struct itimerspec tick = {.it_interval.tv_nsec = TICK_NS, .it_value.tv_nsec = TICK_NS};
	struct epoll_event wake = {.events = EPOLLIN};

	sync->epoll = epoll_create1(EPOLL_CLOEXEC);
	sync->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (sync->epoll < 0 || sync->timer < 0 || timerfd_settime(sync->timer, 0, &tick, NULL) ||
		epoll_ctl(sync->epoll, EPOLL_CTL_ADD, sync->timer, &wake) ||
		epoll_ctl(sync->epoll, EPOLL_CTL_ADD, listen_fd(sync->listen), &wake))
		return complain(why, -errno, "cannot wait for Linux's messages: %s",
			strerror(errno));
	return 0;
}

static int open_all(struct sync *sync, struct complaint *why)
{
	struct opening opening = {sync, why};
	int err;

	sysctl_prepare(sync->house.twins);
	err = open_mirror(sync, why);
	if (!err)
		err = tap_inside(sync->house.twins, open_listen, &opening);
	if (!err)
		err = open_clock(sync, why);
	if (!err)
		err = keep_open(&sync->keep, sync, why);
	if (!err)
		err = audit_open(&sync->audit, sync, why);
	return err;
}

int sync_check(struct complaint *why)
{
	return listen_check(why);
}

int sync_open(struct sync **out, const struct sync_house *house, struct complaint *why)
{
	struct sync *sync = calloc(1, sizeof(*sync));
	int err;

	*out = NULL;
	if (!sync)
		return complain(why, -ENOMEM, "no memory for the mirror of Linux");
	sync->house = *house;
	sync->epoll = sync->timer = -1;
	err = open_all(sync, why);
	if (err)
		sync_close(sync);
	else
		*out = sync;
	return err;
}

void sync_close(struct sync *sync)
{
	if (sync->audit)
		audit_close(sync->audit);
	if (sync->keep)
		keep_close(sync->keep);
	if (sync->timer >= 0)
		close(sync->timer);
	if (sync->epoll >= 0)
		close(sync->epoll);
	if (sync->listen)
		listen_close(sync->listen);
	if (sync->mirror)
		mirror_close(sync->mirror);
	free(sync);
}

int sync_fd(const struct sync *sync)
{
	return sync->epoll;
}

// A twin may have been deleted and made anew under another number.
static void look_at_twins(struct sync *sync)
{
	for (unsigned i = 0; i < sync->house.n_ports; i++) {
		int ifindex = tap_twin(sync->house.twins, i);

		if (ifindex == sync->mirror->settings.twin[i])
			continue;
		mirror_twin_changed(sync->mirror, i, ifindex);
		listen_dump_again(sync->listen);
	}
}

// What nobody tells of is read from the namespace: entered once for all of it.
static int tend_mirror(void *arg)
{
	struct sync *sync = arg;

	mirror_tend(sync->mirror);
	return 0;
}

bool sync_tend(struct sync *sync)
{
	uint64_t ticks;
	bool more = listen_tend(sync->listen, BUDGET_NS);

	more |= mirror_flush(sync->mirror);
	if (read(sync->timer, &ticks, sizeof(ticks)) == sizeof(ticks)) {
		look_at_twins(sync);
		if (tap_inside(sync->house.twins, tend_mirror, sync) != 0)
			tend_mirror(sync); // it enters by itself where it can
		keep_tend(sync->keep);
		audit_tend(sync->audit);
	}
	return more;
}

void sync_info(const struct sync *sync, struct sync_info *out)
{
	struct listen_info heard;

	*out = (struct sync_info){0};
	mirror_info(sync->mirror, out);
	audit_info(sync->audit, out);
	listen_info(sync->listen, &heard);
	out->state = listen_is_dumping(sync->listen) ? SYNC_DUMPING : SYNC_FOLLOWING;
	out->messages = heard.messages;
	out->ignored += heard.ignored;
	out->malformed = heard.malformed;
	out->overruns = heard.overruns;
	out->dumps = heard.dumps;
	out->dumps_restarted = heard.dumps_restarted;
	out->dumps_partial = heard.dumps_partial;
	out->last_dump_ns = heard.last_dump_ns;
	out->receive_buffer = heard.receive_buffer;
	out->managed = keep_n_managed(sync->keep);
}

unsigned sync_bursts(const struct sync *sync, struct sync_burst out[SYNC_BURSTS])
{
	return listen_bursts(sync->listen, out);
}

const char *sync_link_name(const struct sync *sync, uint16_t link)
{
	int ifindex = links_ifindex(sync->mirror, link);

	return ifindex ? links_name(sync->mirror, ifindex) : NULL;
}

const char *sync_vrf_name(const struct sync *sync, uint8_t vrf)
{
	return links_vrf_name(sync->mirror, vrf);
}

int sync_vrf_find(const struct sync *sync, const char *name)
{
	return links_vrf_find(sync->mirror, name);
}

// Remembers that the listener has had enough.
struct telling {
	bool (*tell)(void *arg, const struct sync_unsupported *one);
	void *arg;
	bool is_over;
};

static bool tell_on(void *arg, const struct sync_unsupported *one)
{
	struct telling *telling = arg;

	telling->is_over = !telling->tell(telling->arg, one);
	return !telling->is_over;
}

void sync_unsupported(struct sync *sync,
	bool (*tell)(void *arg, const struct sync_unsupported *one), void *arg)
{
	struct telling telling = {tell, arg, false};

	mirror_unsupported(sync->mirror, tell_on, &telling);
	if (!telling.is_over)
		sysctl_unsupported(sync->house.twins, tell, arg);
}
