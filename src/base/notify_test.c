#include "base/notify.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { WATCHDOG_NS = 4000000 };

// The socket of a service manager, in the abstract namespace.
static int manager(void)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	const int n = snprintf(at.sun_path, sizeof(at.sun_path), "@dl3-notify-test-%d", getpid());

	setenv("NOTIFY_SOCKET", at.sun_path, 1);
	at.sun_path[0] = 0;
	assert_int_equal(bind(fd, (struct sockaddr *)&at,
				 offsetof(struct sockaddr_un, sun_path) + n),
		0);
	return fd;
}

// The next message; "": there is none.
static const char *message(int fd)
{
	static char text[128];
	const ssize_t n = recv(fd, text, sizeof(text) - 1, 0);

	text[n < 0 ? 0 : n] = 0;
	return text;
}

static void each_state_is_a_message(void **state)
{
	const int fd = manager();

	notify_open();
	notify_ready();
	assert_string_equal(message(fd), "READY=1");
	notify_reloading();
	assert_int_equal(strncmp(message(fd), "RELOADING=1\nMONOTONIC_USEC=", 27), 0);
	notify_stopping();
	assert_string_equal(message(fd), "STOPPING=1");
	assert_string_equal(message(fd), "");
	close(fd);
}

static void a_quarter_of_the_time_passes_between_signs_of_life(void **state)
{
	const int fd = manager();

	setenv("WATCHDOG_USEC", "4000", 1);
	notify_open();
	notify_alive(WATCHDOG_NS);
	assert_string_equal(message(fd), "WATCHDOG=1");
	notify_alive(WATCHDOG_NS + WATCHDOG_NS / 4 - 1);
	assert_string_equal(message(fd), "");
	notify_alive(WATCHDOG_NS + WATCHDOG_NS / 4);
	assert_string_equal(message(fd), "WATCHDOG=1");
	close(fd);
}

static void another_process_may_be_the_one_that_is_watched(void **state)
{
	const int fd = manager();

	setenv("WATCHDOG_USEC", "4000", 1);
	setenv("WATCHDOG_PID", "1", 1);
	notify_open();
	notify_alive(WATCHDOG_NS);
	assert_string_equal(message(fd), "");
	close(fd);
}

static void programs_that_it_starts_do_not_speak_for_it(void **state)
{
	const int fd = manager();

	setenv("WATCHDOG_USEC", "4000", 1);
	notify_open();
	assert_null(getenv("NOTIFY_SOCKET"));
	assert_null(getenv("WATCHDOG_USEC"));
	close(fd);
}

static void without_a_socket_or_with_a_wrong_one_nothing_is_told(void **state)
{
	char longer[200] = "/";
	static const char *const wrong[] = {"", "/", "relative", NULL};
	const int fd = manager();

	memset(longer + 1, 'x', sizeof(longer) - 2);
	for (unsigned i = 0; i < 4; i++) {
		setenv("NOTIFY_SOCKET", wrong[i] ? wrong[i] : longer, 1);
		notify_open();
		notify_ready();
	}
	notify_open();
	notify_ready();
	assert_string_equal(message(fd), "");
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_state_is_a_message),
		cmocka_unit_test(a_quarter_of_the_time_passes_between_signs_of_life),
		cmocka_unit_test(another_process_may_be_the_one_that_is_watched),
		cmocka_unit_test(programs_that_it_starts_do_not_speak_for_it),
		cmocka_unit_test(without_a_socket_or_with_a_wrong_one_nothing_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
