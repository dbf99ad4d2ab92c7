// Network sysctls in the namespace of the TAP interfaces. Control thread.
#include "netlink/inside.h"

#include "base/bits.h"
#include "netlink/event.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { VALUE_MAX = 24, PATH_BYTES = 128 };

// A file below /proc/sys/net, in the namespace of the calling thread.
struct sysctl {
	char path[PATH_BYTES];
	long value;
};

static int open_here(const struct sysctl *sysctl, int flags)
{
	char path[PATH_BYTES + 16];
	int fd;

	snprintf(path, sizeof(path), "/proc/sys/net/%s", sysctl->path);
	fd = open(path, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int read_here(void *arg)
{
	struct sysctl *sysctl = arg;
	char text[VALUE_MAX] = "";
	int fd = open_here(sysctl, O_RDONLY);
	ssize_t n;

	if (fd < 0)
		return fd;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	sysctl->value = strtol(text, NULL, 10);
	return n > 0 ? 0 : -EIO;
}

static int write_here(void *arg)
{
	struct sysctl *sysctl = arg;
	char text[VALUE_MAX];
	int n = snprintf(text, sizeof(text), "%ld", sysctl->value);
	int fd = open_here(sysctl, O_WRONLY);

	if (fd < 0)
		return fd;
	if (write(fd, text, n) != n)
		n = -errno;
	close(fd);
	return n < 0 ? n : 0;
}

// Settings for a router. ICMP: enough for a thousand hosts that trace at once; punt classes already
// limit what reaches Linux.
static const struct sysctl wanted[] = {
	{"ipv4/conf/all/forwarding", 1},
	{"ipv4/conf/default/forwarding", 1},
	{"ipv6/conf/all/forwarding", 1},
	{"ipv6/conf/default/forwarding", 1},
	{"ipv4/conf/all/rp_filter", 0},
	{"ipv4/conf/default/rp_filter", 0},
	{"ipv4/fib_multipath_hash_policy", 1},
	{"ipv6/fib_multipath_hash_policy", 1},
	{"ipv4/icmp_ratelimit", 10},
	{"ipv4/icmp_msgs_per_sec", 10000},
	{"ipv4/icmp_msgs_burst", 1000},
	{"ipv6/icmp/ratelimit", 10},
	{"ipv4/neigh/default/gc_thresh1", 4096},
	{"ipv4/neigh/default/gc_thresh2", 32768},
	{"ipv4/neigh/default/gc_thresh3", 65536},
	{"ipv6/neigh/default/gc_thresh1", 4096},
	{"ipv6/neigh/default/gc_thresh2", 32768},
	{"ipv6/neigh/default/gc_thresh3", 65536},
};

static int prepare_here(void *arg)
{
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		struct sysctl sysctl = wanted[i];

		write_here(&sysctl);
	}
	return 0;
}

void sysctl_prepare(struct tap_table *taps)
{
	if (tap_namespace_is_own(taps))
		tap_run_in_netns(taps, prepare_here, NULL, NULL);
}

// An interface name may contain a dot, which is not a separator here: the file system takes it
// literally.
static struct sysctl of_interface(const char *family, const char *interface, const char *name)
{
	struct sysctl sysctl = {.value = 0};

	snprintf(sysctl.path, sizeof(sysctl.path), "%s/conf/%s/%s", family, interface, name);
	return sysctl;
}

void sysctl_prepare_tap(struct tap_table *taps, const char *interface)
{
	struct sysctl rp_filter = of_interface("ipv4", interface, "rp_filter");

	if (tap_namespace_is_own(taps))
		tap_run_in_netns(taps, write_here, &rp_filter, NULL);
}

// 0 if it cannot be read.
static long value_of(struct tap_table *taps, struct sysctl sysctl)
{
	return tap_run_in_netns(taps, read_here, &sysctl, NULL) ? 0 : sysctl.value;
}

bool sysctl_sends_redirects(struct tap_table *taps, const char *interface, uint8_t family)
{
	// IPv6 always sends them; IPv4 if set for `all` or for the interface.
	if (family == 6)
		return true;
	return value_of(taps, of_interface("ipv4", "all", "send_redirects")) ||
	       value_of(taps, of_interface("ipv4", interface, "send_redirects"));
}

bool sysctl_disables_ipv6(struct tap_table *taps, const char *interface)
{
	return value_of(taps, of_interface("ipv6", interface, "disable_ipv6"));
}

unsigned sysctl_mtu6(struct tap_table *taps, const char *interface)
{
	return (unsigned)value_of(taps, of_interface("ipv6", interface, "mtu"));
}

bool sysctl_hides_lost_routes(struct tap_table *taps)
{
	return value_of(taps, (struct sysctl){"ipv6/route/skip_notify_on_dev_down", 0});
}

int sysctl_hash_policy(struct tap_table *taps, uint8_t family)
{
	struct sysctl sysctl = {.value = 0};

	snprintf(sysctl.path, sizeof(sysctl.path), "ipv%u/fib_multipath_hash_policy", family);
	int err = tap_run_in_netns(taps, read_here, &sysctl, NULL);
	return err ? err : (int)sysctl.value;
}

bool sysctl_mpls(struct tap_table *taps, struct mirror_mpls *out)
{
	struct sysctl labels = {"mpls/platform_labels", 0};

	if (tap_run_in_netns(taps, read_here, &labels, NULL))
		return false;
	*out = (struct mirror_mpls){
		.n_labels = labels.value,
		.propagates_ttl = value_of(taps, (struct sysctl){"mpls/ip_ttl_propagate", 0}),
		.default_ttl = value_of(taps, (struct sysctl){"mpls/default_ttl", 0}),
	};
	return true;
}

// Either name is sufficient.
static int read_old_tables(void *arg)
{
	uint8_t family = *(const uint8_t *)arg;
	int fd = open(family == 4 ? "/proc/thread-self/net/ip_tables_names"
				  : "/proc/thread-self/net/ip6_tables_names",
		O_RDONLY | O_CLOEXEC);
	char letter;

	if (fd < 0)
		return -errno;
	ssize_t n = read(fd, &letter, 1);
	close(fd);
	return n > 0;
}

bool sysctl_has_old_tables(struct tap_table *taps, uint8_t family)
{
	return tap_run_in_netns(taps, read_old_tables, &family, NULL) > 0;
}

uint8_t sysctl_bridge_filters(struct tap_table *taps)
{
	static const char *const calls[] = {"iptables", "ip6tables", "arptables"};
	static const char *const tables[] = {"/sys/module/ebtable_filter",
		"/sys/module/ebtable_nat", "/sys/module/ebtable_broute",
		"/sys/module/arptable_filter"};
	struct sysctl sysctl = {.value = 0};
	uint8_t filters = 0;

	for (unsigned i = 0; i < ARRAY_LEN(tables); i++)
		if (!access(tables[i], F_OK))
			filters |= FILTERS_TABLES;
	for (unsigned i = 0; i < ARRAY_LEN(calls); i++) {
		snprintf(sysctl.path, sizeof(sysctl.path), "bridge/bridge-nf-call-%s", calls[i]);
		if (value_of(taps, sysctl))
			filters |= FILTERS_CALLS;
	}
	return filters;
}

// Settings that make Linux behave differently from workers, whose behaviour is fixed.
struct habit {
	struct sysctl as_workers_do;
	const char *what, *effect;
};

static const struct habit habits[] = {
	{{"ipv4/fib_multipath_use_neigh", 0}, "next-hop selection by neighbour state",
		"flows whose next hop is unresolved are punted to Linux, which selects another "
		"one"},
};

void sysctl_unsupported(struct tap_table *taps,
	bool (*cb)(void *arg, const struct netlink_unsupported *one), void *arg)
{
	for (size_t i = 0; i < ARRAY_LEN(habits); i++) {
		struct sysctl sysctl = habits[i].as_workers_do;
		struct netlink_unsupported one = {.n = 1};

		if (tap_run_in_netns(taps, read_here, &sysctl, NULL) ||
			sysctl.value == habits[i].as_workers_do.value)
			continue;
		snprintf(one.what, sizeof(one.what), "%s", habits[i].what);
		snprintf(one.effect, sizeof(one.effect), "%s", habits[i].effect);
		snprintf(one.where, sizeof(one.where), "sysctl net.%.4s.%.40s = %d", sysctl.path,
			sysctl.path + 5, (int)sysctl.value);
		if (!cb(arg, &one))
			return;
	}
}

// From linux/bpf.h, which may be older than the kernel.
enum { TCX_INGRESS = 46, TCX_EGRESS = 47 };

struct question {
	int ifindex;
	uint8_t sides;
};

static bool has_programs(int ifindex, uint32_t attach_type)
{
	union bpf_attr attr = {
		.query = {.target_fd = (uint32_t)ifindex, .attach_type = attach_type}};

	return syscall(SYS_bpf, BPF_PROG_QUERY, &attr, sizeof(attr)) == 0 && attr.query.prog_cnt;
}

static int ask_here(void *arg)
{
	struct question *question = arg;

	if (has_programs(question->ifindex, TCX_INGRESS))
		question->sides |= EVENT_INGRESS;
	if (has_programs(question->ifindex, TCX_EGRESS))
		question->sides |= EVENT_EGRESS;
	return 0;
}

uint8_t tcx_sides(const struct tap_table *taps, int ifindex)
{
	struct question question = {.ifindex = ifindex};

	return tap_run_in_netns(taps, ask_here, &question, NULL) ? 0 : question.sides;
}
