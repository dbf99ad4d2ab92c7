// The socket file: who may connect, when it is replaced, and the error message for each mistake.
#include "rpc/socket.h"

#include "rpc/rpc.h"

#include "base/bits.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64], path[100], deep[110];
static struct error error;
static mode_t old_umask;

static int make_folder(void **state)
{
	strcpy(folder, "/tmp/ctl_socket_test.XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/sock", folder);
	snprintf(deep, sizeof(deep), "%s/new/sock", folder);
	error.text[0] = 0;
	old_umask = umask(022);
	return 0;
}

static int remove_folder(void **state)
{
	umask(old_umask);
	unlink(path);
	unlink(deep);
	*strrchr(deep, '/') = 0;
	rmdir(deep);
	return rmdir(folder); // fails if it is not empty
}

static mode_t mode_of(const char *file)
{
	struct stat s;

	assert_int_equal(lstat(file, &s), 0);
	return s.st_mode & 07777;
}

static int connects(void)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), result;

	strcpy(addr.sun_path, path);
	result = connect(fd, (struct sockaddr *)&addr, sizeof(addr));
	close(fd);
	return result == 0;
}

// A socket file as left by a killed program.
static void leave_dead_socket(void)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	strcpy(addr.sun_path, path);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	close(fd);
}

static void opens_to_owner_and_group_whatever_the_umask(void **state)
{
	static const mode_t umasks[] = {0, 022, 077, 0777};

	for (size_t i = 0; i < ARRAY_LEN(umasks); i++) {
		struct rpc_socket s;

		umask(umasks[i]);
		assert_int_equal(rpc_socket_open(&s, path, NULL, &error), 0);
		assert_int_equal(mode_of(path), 0660);
		assert_true(connects());
		rpc_socket_close(&s);
		assert_int_equal(access(path, F_OK), -1);
	}
}

static void belongs_to_the_group_that_was_named(void **state)
{
	const struct group *group = getgrgid(getgid());
	struct rpc_socket s;
	struct stat file;

	if (geteuid() == 0 && getgrnam("daemon"))
		group = getgrnam("daemon");
	if (!group)
		skip();
	assert_int_equal(rpc_socket_open(&s, path, group->gr_name, &error), 0);
	assert_int_equal(stat(path, &file), 0);
	assert_int_equal(file.st_gid, getgrnam(group->gr_name)->gr_gid);
	assert_int_equal(mode_of(path), 0660);
	rpc_socket_close(&s);
}

static void takes_the_place_of_a_dead_socket(void **state)
{
	struct rpc_socket s;

	leave_dead_socket();
	assert_int_equal(rpc_socket_open(&s, path, NULL, &error), 0);
	assert_true(connects());
	rpc_socket_close(&s);
}

static void leaves_a_living_socket_alone(void **state)
{
	struct rpc_socket first, second;

	assert_int_equal(rpc_socket_open(&first, path, NULL, &error), 0);
	assert_int_equal(rpc_socket_open(&second, path, NULL, &error), -EADDRINUSE);
	assert_non_null(strstr(error.text, path));
	assert_non_null(strstr(error.text, "in use"));
	assert_true(connects());
	rpc_socket_close(&first);
}

// Ends only by a signal; the kernel takes a while to free its memory.
static void listen_and_hold(int ready, size_t bytes)
{
	struct rpc_socket s;
	char *held = malloc(bytes);

	if (!held || rpc_socket_open(&s, path, NULL, NULL) < 0)
		_exit(1);
	memset(held, 1, bytes);
	if (write(ready, "", 1) == 1)
		for (;;)
			pause();
	_exit(1);
}

static void takes_the_place_of_a_program_that_is_being_killed(void **state)
{
	int ready[2];
	char byte;
	struct rpc_socket s;

	assert_int_equal(pipe(ready), 0);
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0)
		listen_and_hold(ready[1], 1u << 30);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	kill(child, SIGKILL);
	assert_int_equal(rpc_socket_open(&s, path, NULL, &error), 0);
	assert_true(connects());
	rpc_socket_close(&s);
	assert_int_equal(waitpid(child, NULL, 0), child);
	close(ready[0]);
	close(ready[1]);
}

static void leaves_a_file_that_is_no_socket_alone(void **state)
{
	struct rpc_socket s;

	close(open(path, O_CREAT | O_WRONLY, 0600));
	assert_int_equal(rpc_socket_open(&s, path, NULL, &error), -EEXIST);
	assert_non_null(strstr(error.text, "not a socket"));
	assert_int_equal(access(path, F_OK), 0);
}

static void does_not_remove_the_file_of_its_successor(void **state)
{
	struct rpc_socket s;

	assert_int_equal(rpc_socket_open(&s, path, NULL, &error), 0);
	unlink(path);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	rpc_socket_close(&s);
	assert_int_equal(access(path, F_OK), 0);
}

static void makes_one_missing_folder_but_not_two(void **state)
{
	struct rpc_socket s;
	char deeper[130];

	umask(077);
	assert_int_equal(rpc_socket_open(&s, deep, NULL, &error), 0);
	*strrchr(deep, '/') = 0;
	assert_int_equal(mode_of(deep), 0755);
	strcat(deep, "/sock");
	rpc_socket_close(&s);
	snprintf(deeper, sizeof(deeper), "%s/a/b/sock", folder);
	assert_int_equal(rpc_socket_open(&s, deeper, NULL, &error), -ENOENT);
	assert_non_null(strstr(error.text, "create it first"));
}

static bool is_folder_there(void)
{
	char made[sizeof(deep)];

	strcpy(made, deep);
	*strrchr(made, '/') = 0;
	return access(made, F_OK) == 0;
}

static void takes_a_folder_that_it_made_along(void **state)
{
	struct rpc_socket s, second;

	assert_int_equal(rpc_socket_open(&s, deep, NULL, &error), 0);
	assert_int_equal(rpc_socket_open(&second, deep, NULL, &error), -EADDRINUSE);
	assert_true(is_folder_there());
	rpc_socket_close(&s);
	assert_false(is_folder_there());
	assert_int_equal(rpc_socket_open(&s, deep, "no-such-group", &error), -ENOENT);
	assert_false(is_folder_there());
}

static void leaves_a_folder_that_was_there_or_is_used(void **state)
{
	struct rpc_socket s;
	char other[120];

	assert_int_equal(rpc_socket_open(&s, deep, NULL, &error), 0);
	snprintf(other, sizeof(other), "%s.other", deep);
	close(open(other, O_CREAT | O_WRONLY, 0600));
	rpc_socket_close(&s);
	assert_true(is_folder_there());
	unlink(other);
	assert_int_equal(rpc_socket_open(&s, deep, NULL, &error), 0);
	rpc_socket_close(&s);
	assert_true(is_folder_there());
}

static void says_what_is_wrong_with_the_path_or_group(void **state)
{
	struct rpc_socket s;
	char long_path[200];

	memset(long_path, 'x', sizeof(long_path));
	long_path[0] = '/';
	long_path[108] = 0;
	assert_int_equal(rpc_socket_open(&s, long_path, NULL, &error), -ENAMETOOLONG);
	assert_non_null(strstr(error.text, "the path has 108 bytes, at most 107 are allowed"));
	assert_int_equal(rpc_socket_open(&s, "", NULL, &error), -EINVAL);
	assert_int_equal(rpc_socket_open(&s, path, "no-such-group", &error), -ENOENT);
	assert_non_null(strstr(error.text, "no-such-group"));
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(rpc_socket_open(&s, "/dev/null/sock", NULL, &error), -ENOTDIR);
}

static void checks_what_opening_would_find_and_touches_nothing(void **state)
{
	struct rpc_socket s;
	char deeper[130];

	assert_int_equal(rpc_check(path, NULL, &error), 0);
	assert_int_equal(rpc_check(deep, NULL, &error), 0);
	assert_false(is_folder_there());
	assert_int_equal(rpc_check(path, "no-such-group", &error), -ENOENT);
	snprintf(deeper, sizeof(deeper), "%s/a/b/sock", folder);
	assert_int_equal(rpc_check(deeper, NULL, &error), -ENOTDIR);
	assert_int_equal(rpc_check("/dev/null/sock", NULL, &error), -ENOTDIR);
	assert_non_null(strstr(error.text, "create it first"));
	assert_int_equal(rpc_check(folder, NULL, &error), -EEXIST);
	assert_int_equal(rpc_socket_open(&s, path, NULL, &error), 0);
	assert_int_equal(rpc_check(path, NULL, &error), 0); // it may be our own
	rpc_socket_close(&s);
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)
	const struct CMUnitTest tests[] = {
		IN_FOLDER(opens_to_owner_and_group_whatever_the_umask),
		IN_FOLDER(belongs_to_the_group_that_was_named),
		IN_FOLDER(takes_the_place_of_a_dead_socket),
		IN_FOLDER(leaves_a_living_socket_alone),
		IN_FOLDER(takes_the_place_of_a_program_that_is_being_killed),
		IN_FOLDER(leaves_a_file_that_is_no_socket_alone),
		IN_FOLDER(does_not_remove_the_file_of_its_successor),
		IN_FOLDER(makes_one_missing_folder_but_not_two),
		IN_FOLDER(takes_a_folder_that_it_made_along),
		IN_FOLDER(leaves_a_folder_that_was_there_or_is_used),
		IN_FOLDER(checks_what_opening_would_find_and_touches_nothing),
		IN_FOLDER(says_what_is_wrong_with_the_path_or_group),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
