// Checks of files, directories and interfaces of devices and plugins.
#include "port/check.h"

#include "base/bits.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

static struct port_table_settings settings;
static char folder[] = "/tmp/check_test_XXXXXX";
static char plugin[64];

static const struct {
	const char *device, *error; // NULL: valid
} devices[] = {
	{"net_null0,size=64", NULL},
	{"net_pcap0,iface=lo", NULL},
	{"net_af_packet0,iface=lo", NULL},
	{"net_af_packet0,iface=no_such", "ports[0] (a): interface no_such does not exist"},
	{"net_af_xdp0,iface=no_such", "interface no_such does not exist"},
	{"net_vhost0,iface=/tmp/x.sock", NULL},
	{"net_vhost0,iface=/no/such/x.sock", "its socket in /no/such, which is not a folder"},
	{"net_vhost0,iface=/etc/hostname",
		"its socket at /etc/hostname, where a file or folder exists"},
	{"net_vhost0,iface=/tmp", "its socket at /tmp, where a file or folder exists"},
	{"net_virtio_user0,path=/dev/null", NULL}, // like /dev/vhost-net
	{"net_virtio_user0,path=/no/such/x.sock", "its socket in /no/such"},
	{"net_memif0,socket=/no/such/x.sock", NULL}, // abstract: no file
	{"net_memif0,socket=/no/such/x.sock,socket-abstract=no", "its socket in /no/such"},
	{"ffff:ff:1f.7", "PCI device ffff:ff:1f.7 does not exist"},
};

static void finds_what_a_device_needs_or_says_what_is_missing(void **state)
{
	for (unsigned i = 0; i < ARRAY_LEN(devices); i++) {
		struct error error = {0};

		memset(&settings, 0, sizeof(settings));
		settings.n_ports = 1;
		settings.ports[0].name[0] = 'a';
		snprintf(settings.ports[0].device, PORT_DEVICE_MAX, "%s", devices[i].device);
		int err = check_files(&settings, &error);

		if (!devices[i].error && err)
			fail_msg("%s: %s", devices[i].device, error.text);
		if (devices[i].error && (!err || !strstr(error.text, devices[i].error)))
			fail_msg("%s: found: %s", devices[i].device, error.text);
	}
}

static void wants_a_path_that_fits_an_address(void **state)
{
	struct error error = {""};

	for (unsigned bytes = 107; bytes <= 108; bytes++) {
		memset(&settings, 0, sizeof(settings));
		settings.n_ports = 1;
		snprintf(settings.ports[0].device, PORT_DEVICE_MAX, "net_vhost0,iface=/tmp/%0*u",
			(int)(bytes - strlen("/tmp/")), 1);
		assert_int_equal(check_files(&settings, &error), bytes == 107 ? 0 : -ENAMETOOLONG);
	}
	assert_non_null(strstr(error.text,
		"net_vhost0 has a socket whose path is longer than 107 bytes; use a shorter one"));
}

static int serve(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(fd, 1), 0);
	return fd;
}

static void leaves_the_socket_of_another_program_alone(void **state)
{
	struct error error = {""};
	char path[64];

	snprintf(path, sizeof(path), "%s/vhost", folder);
	memset(&settings, 0, sizeof(settings));
	settings.n_ports = 1;
	snprintf(settings.ports[0].device, PORT_DEVICE_MAX, "net_vhost0,iface=%s", path);
	assert_int_equal(check_served(&settings, &error), 0);
	int server = serve(path);
	assert_int_equal(check_served(&settings, &error), -EADDRINUSE);
	assert_non_null(strstr(error.text, "another program is listening on"));
	snprintf(settings.ports[0].device, PORT_DEVICE_MAX, "net_vhost0,iface=%s,client=1", path);
	assert_int_equal(check_served(&settings, &error), 0);
	close(server);
	snprintf(settings.ports[0].device, PORT_DEVICE_MAX, "net_vhost0,iface=%s", path);
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(check_served(&settings, &error), 0); // a stale socket
	assert_int_equal(access(path, F_OK), -1);
}

static void wants_slots_that_hold_a_frame_of_the_mtu(void **state)
{
	static const struct {
		const char *device;
		uint16_t mtu;
		const char *error; // NULL: valid
	} ports[] = {
		{"net_memif0", 2026, NULL},
		{"net_memif0", 2027,
			"ports[0] (a): frames with mtu 2027 do not fit into memif's buffers "
			"of 2048 bytes; add \"bsize=2112\" to the device"},
		{"net_memif0,bsize=9664", 9600, NULL},
		{"net_memif0,bsize=1024", 0, "buffers of 1024 bytes; add \"bsize=1536\""},
		{"net_memif0,role=client,zero-copy=yes", 9600, NULL},
		{"net_ring0", 9600, NULL},
		{"net_af_packet0,iface=lo", 1960, NULL},
		{"net_af_packet0,iface=lo", 1961,
			"ports[0] (a): frames with mtu 1961 do not fit into the slots of "
			"net_af_packet, 1982 bytes; add \"framesz=4096,blocksz=4096\""},
		{"net_af_packet0,iface=lo", 9000, "add \"framesz=12288,blocksz=12288\""},
		{"net_af_packet0,iface=lo,framesz=12288,blocksz=12288", 9600, NULL},
		{"net_af_packet0,iface=lo,framesz=0", 0, "net_af_packet, 1 bytes"},
		{"net_af_packet0,iface=lo,framesz=-1", 0, "net_af_packet, 1 bytes"},
	};

	for (unsigned i = 0; i < ARRAY_LEN(ports); i++) {
		struct error error = {0};

		memset(&settings, 0, sizeof(settings));
		settings.n_ports = 1;
		settings.ports[0].name[0] = 'a';
		settings.ports[0].mtu = ports[i].mtu;
		strcpy(settings.ports[0].device, ports[i].device);
		check_files(&settings, &error);
		if (ports[i].error ? !strstr(error.text, ports[i].error) : error.text[0])
			fail_msg("%s, %u: found: %s", ports[i].device, ports[i].mtu, error.text);
	}
}

static int check_plugin(const char *path, struct error *error)
{
	memset(&settings, 0, sizeof(settings));
	settings.n_plugins = 1;
	snprintf(settings.plugins[0], PORT_DEVICE_MAX, "%s", path);
	error->text[0] = 0;
	return check_files(&settings, error);
}

static void refuses_a_plugin_that_is_missing(void **state)
{
	struct error error;

	assert_true(check_plugin("/no/such/plugin.so", &error) < 0);
	assert_non_null(strstr(error.text, "plugin /no/such/plugin.so: No such file"));
}

static void leaves_a_bare_name_to_the_systems_library_folders(void **state)
{
	struct error error;

	assert_int_equal(check_plugin("librte_of_the_system.so", &error), 0);
}

static void refuses_a_plugin_that_everybody_may_write(void **state)
{
	struct error error;

	chmod(plugin, 0666);
	assert_true(check_plugin(plugin, &error) < 0);
	assert_non_null(strstr(error.text, "is world-writable"));
}

// /tmp itself is such a directory.
static void refuses_a_plugin_in_a_folder_that_everybody_may_write(void **state)
{
	struct error error;

	chmod(plugin, 0644);
	assert_true(check_plugin(plugin, &error) < 0);
	assert_non_null(strstr(error.text, "/tmp is world-writable,"));
}

static void wants_a_library_or_a_folder_of_them(void **state)
{
	struct error error;

	assert_true(check_plugin("/etc/passwd", &error) < 0);
	assert_string_equal(error.text,
		"plugin /etc/passwd: not a shared library; expected one, or a folder of them");
	assert_int_equal(check_plugin("/bin/sh", &error), 0);
	assert_int_equal(check_plugin("/usr/lib", &error), 0);
}

static void refuses_arguments_of_eal_with_which_nothing_starts(void **state)
{
	static const struct {
		const char *arg;
		bool ends;
	} args[] = {
		{"-h", true},
		{"-vh", true},
		{"-hn4", true},
		{"--help", true},
		{"--he", true},
		{"--proc-type=secondary", true},
		{"--pr", true},
		{"--huge-unlink", false},
		{"--h", false},
		{"-n4", false},
		{"-vv", false},
	};
	struct error error;

	memset(&settings, 0, sizeof(settings));
	settings.n_eal_args = 1;
	for (unsigned i = 0; i < ARRAY_LEN(args); i++) {
		snprintf(settings.eal_args[0], PORT_DEVICE_MAX, "%s", args[i].arg);
		assert_int_equal(check_eal_args(&settings, &error), args[i].ends ? -EINVAL : 0);
		if (args[i].ends)
			assert_non_null(strstr(error.text, args[i].arg));
	}
}

static int make_plugin(void **state)
{
	assert_non_null(mkdtemp(folder));
	snprintf(plugin, sizeof(plugin), "%s/p.so", folder);
	close(open(plugin, O_CREAT | O_WRONLY, 0644));
	return 0;
}

static int remove_plugin(void **state)
{
	unlink(plugin);
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_what_a_device_needs_or_says_what_is_missing),
		cmocka_unit_test(wants_slots_that_hold_a_frame_of_the_mtu),
		cmocka_unit_test(refuses_a_plugin_that_is_missing),
		cmocka_unit_test(leaves_a_bare_name_to_the_systems_library_folders),
		cmocka_unit_test(refuses_a_plugin_that_everybody_may_write),
		cmocka_unit_test(refuses_a_plugin_in_a_folder_that_everybody_may_write),
		cmocka_unit_test(wants_a_library_or_a_folder_of_them),
		cmocka_unit_test(refuses_arguments_of_eal_with_which_nothing_starts),
		cmocka_unit_test(wants_a_path_that_fits_an_address),
		cmocka_unit_test(leaves_the_socket_of_another_program_alone),
	};

	return cmocka_run_group_tests(tests, make_plugin, remove_plugin);
}
