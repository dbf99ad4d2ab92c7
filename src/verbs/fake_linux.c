// Twins and a mirror that exist on paper only, for the tests of verbs. Test.
#include "verbs/fake_house.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

struct tap_room *fake_twins(void)
{
	return (struct tap_room *)&fake;
}

struct sync *fake_sync(void)
{
	return (struct sync *)&fake;
}

int tap_start(struct tap_room *room, struct complaint *why)
{
	strcat(fake.calls, "t");
	return fake.refuse_start ? complain(why, -EAGAIN, "no thread") : 0;
}

void tap_tend(struct tap_room *room)
{
	fake.n_twins_tended++;
}

int tap_restore(struct tap_room *room, struct complaint *why)
{
	fake.n_restored++;
	return fake.refuse_restore ? complain(why, -EEXIST, "left: its name is taken") : 0;
}

void tap_change(struct tap_room *room, const struct tap_settings *settings)
{
	memcpy(fake.class, settings->class, sizeof(fake.class));
}

const struct stat_tap *tap_stats(const struct tap_room *room)
{
	return &fake.taps;
}

struct tap_class_settings tap_class(const struct tap_room *room, enum punt_class class)
{
	return fake.class[class];
}

void tap_info(const struct tap_room *room, unsigned port, struct tap_info *out)
{
	*out = (struct tap_info){.namespace_name = "core",
		.keep = true,
		.held = true,
		.ifindex = 7 + port,
		.carrier = port == 0,
		.adopted = port == 1};
	strcpy(out->name, port ? "right" : "left");
}

int sync_open(struct sync **out, const struct sync_house *mirrored, struct complaint *why)
{
	strcat(fake.calls, "s");
	*out = fake_sync();
	return 0;
}

void sync_close(struct sync *sync)
{
	strcat(fake.calls, "S");
}

int sync_fd(const struct sync *sync)
{
	static int fd = -1;

	if (fd < 0)
		fd = eventfd(0, EFD_CLOEXEC);
	return fd;
}

bool sync_tend(struct sync *sync)
{
	fake.n_steps++;
	return fake.sync_has_more;
}

void sync_info(const struct sync *sync, struct sync_info *out)
{
	*out = (struct sync_info){.state = fake.is_dumping ? SYNC_DUMPING : SYNC_FOLLOWING,
		.messages = 12,
		.overruns = 2,
		.dumps = 3,
		.dumps_partial = 1,
		.last_dump_ns = 1500000000,
		.routes4 = 1000000,
		.receive_buffer = 64 << 20};
}

unsigned sync_bursts(const struct sync *sync, struct sync_burst out[SYNC_BURSTS])
{
	out[0] = (struct sync_burst){.begin_ns = 1000, .end_ns = 3500, .messages = 5};
	out[1] = (struct sync_burst){.begin_ns = 9000000, .end_ns = 9500000, .messages = 1200};
	return 2;
}

const char *sync_link_name(const struct sync *sync, uint16_t link)
{
	static const char *const names[] = {"left", "right", "left.5"};

	return link < 3 ? names[link] : NULL;
}

const char *sync_vrf_name(const struct sync *sync, uint8_t vrf)
{
	return vrf == 3 ? "blue" : NULL;
}

int sync_vrf_find(const struct sync *sync, const char *name)
{
	return strcmp(name, "blue") ? -ENOENT : 3;
}

void sync_unsupported(struct sync *sync,
	bool (*tell)(void *arg, const struct sync_unsupported *one), void *arg)
{
	struct sync_unsupported one = {.what = "nftables forward hook",
		.where = "table inet filter chain forward",
		.effect = "all packets to be forwarded go to Linux"};

	for (one.n = 1; one.n <= fake.n_unsupported; one.n++)
		if (!tell(arg, &one))
			return;
}

int sync_explain(struct sync *sync, uint8_t vrf, const struct wire_addr *addr,
	struct sync_opinion *out, struct complaint *why)
{
	*out = fake.opinion;
	return fake.is_dumping ? complain(why, -EAGAIN, "the mirror is still dumping; ask again")
	                       : 0;
}

int sync_verify(struct sync *sync, struct sync_verification *how, struct complaint *why)
{
	char text[32];

	if (fake.is_dumping)
		return complain(why, -EAGAIN, "the mirror is still dumping; ask again");
	fake.sample = how->sample;
	how->compared = how->sample ? how->sample : 1000000;
	for (unsigned i = 0; i < fake.n_differences; i++) {
		snprintf(text, sizeof(text), "10.0.0.%u/32 differs", i);
		if (!how->tell(how->arg, text))
			break;
	}
	return fake.n_differences;
}
