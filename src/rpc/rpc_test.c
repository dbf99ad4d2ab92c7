// The server over a real socket in a temporary directory. One thread plays both sides: while a
// client waits, the server runs.
#include "rpc/rpc.h"

#include "base/bits.h"
#include "base/clock.h"
#include "rpc/client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#define REQUEST(method) "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" method "\"}\n"

enum { BIG_BYTES = 100000, TURNS = 2000, MAX_CLIENTS = 32 };

static char folder[64], path[100];
static struct rpc *window;
static struct error error;
static unsigned n_runs;
static char *line; // of the last read_line
static size_t line_room;

static unsigned later_s;         // offset to the real clock, which the server reads
static struct timespec standing; // where the clock stands still; 0: it runs

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	int err = __real_clock_gettime(clock, now);

	if (standing.tv_sec)
		*now = standing;
	now->tv_sec += later_s;
	return err;
}

static json_t *count(void *ctx, const json_t *params, struct error *error)
{
	return json_integer(++n_runs);
}

static json_t *tell_much(void *ctx, const json_t *params, struct error *error)
{
	static char text[BIG_BYTES];

	n_runs++;
	memset(text, 'x', sizeof(text));
	return json_stringn(text, sizeof(text));
}

static bool wants_connection;
static int taken; // its descriptor; -2: none

static json_t *take(void *ctx, const json_t *params, struct error *error)
{
	wants_connection = true;
	return json_string("yours");
}

static bool takes_over(void *ctx)
{
	return wants_connection;
}

static void take_over(void *ctx, int fd)
{
	wants_connection = false;
	taken = fd;
}

static const struct rpc_method table[] = {{"count", count}, {"much", tell_much}, {"take", take}};
static const struct rpc_methods methods = {.table = table,
	.n = ARRAY_LEN(table),
	.takes_over = takes_over,
	.take_over = take_over};

// Only let_pass() makes time pass for the server, but in tests that let_run() the clock.
static int open_window(void **state)
{
	strcpy(folder, "/tmp/ctl_test.XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/sock", folder);
	n_runs = 0;
	__real_clock_gettime(CLOCK_MONOTONIC, &standing);
	taken = -2;
	return rpc_open(&window, path, NULL, &methods, &error);
}

static void let_run(void)
{
	standing.tv_sec = 0;
}

static int close_window(void **state)
{
	rpc_close(window);
	window = NULL;
	unlink(path);
	free(line);
	line = NULL;
	line_room = 0;
	return rmdir(folder);
}

static int connect_client(void)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	strcpy(addr.sun_path, path);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

static void serve(int turns)
{
	while (turns--)
		rpc_serve(window, -1, 0);
}

// Sends as much as the server accepts within a few iterations; returns the number of bytes sent.
static size_t send_bytes(int fd, const char *bytes, size_t n)
{
	size_t sent = 0;

	for (int i = 0; i < TURNS && sent < n; i++) {
		ssize_t now = send(fd, bytes + sent, n - sent, MSG_NOSIGNAL);

		if (now > 0)
			sent += now;
		rpc_serve(window, -1, 0);
	}
	return sent;
}

static void send_text(int fd, const char *text)
{
	assert_int_equal(send_bytes(fd, text, strlen(text)), strlen(text));
}

// The next line that the client receives, without its newline; "" if the server has closed the
// connection, NULL if nothing arrives.
static const char *read_line(int fd)
{
	size_t used = 0;

	for (int i = 0; i < TURNS; i++) {
		char *newline;
		ssize_t n;

		if (line_room < used + 2)
			line = realloc(line, line_room = used + 65536);
		n = recv(fd, line + used, line_room - used - 1, MSG_PEEK);
		if (n == 0)
			return "";
		if (n < 0) {
			rpc_serve(window, -1, 0);
			continue;
		}
		newline = memchr(line + used, '\n', n);
		if (newline)
			n = newline + 1 - (line + used);
		assert_int_equal(recv(fd, line + used, n, 0), n);
		used += n;
		if (newline) {
			*newline = 0;
			return line;
		}
	}
	return NULL;
}

static int code_in(const char *text)
{
	json_t *message = text ? json_loads(text, 0, NULL) : NULL;
	int code = json_integer_value(json_object_get(json_object_get(message, "error"), "code"));

	assert_non_null(message);
	json_decref(message);
	return code;
}

static void a_method_takes_its_connection_over(void **state)
{
	int fd = connect_client(), other = connect_client();

	send_text(fd, REQUEST("take"));
	assert_string_equal(read_line(fd), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"yours\"}");
	assert_true(taken >= 0);
	assert_int_equal(send(taken, "mine\n", 5, 0), 5);
	assert_string_equal(read_line(fd), "mine");
	send_text(fd, REQUEST("count")); // not for the server any more
	send_text(other, REQUEST("count"));
	assert_string_equal(read_line(other), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1}");
	close(taken);
	close(fd);
	close(other);
}

static void no_connection_with_further_requests_is_taken_over(void **state)
{
	int fd = connect_client();

	send_text(fd, REQUEST("take") REQUEST("count"));
	assert_string_equal(read_line(fd), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"yours\"}");
	assert_int_equal(taken, -1);
	serve(2);
	assert_string_equal(read_line(fd), "");
	assert_int_equal(n_runs, 0);
	close(fd);
}

static void answers_two_clients_each_its_own(void **state)
{
	int a = connect_client(), b = connect_client();

	send_text(a, REQUEST("count"));
	send_text(b, REQUEST("nope"));
	assert_string_equal(read_line(a), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1}");
	assert_int_equal(code_in(read_line(b)), -32601);
	send_text(b, REQUEST("count"));
	assert_string_equal(read_line(b), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":2}");
	close(a);
	close(b);
}

static void puts_half_lines_together_and_takes_lines_apart(void **state)
{
	int fd = connect_client();
	const char *request = REQUEST("count");

	for (const char *c = request; *c; c++)
		assert_int_equal(send_bytes(fd, c, 1), 1);
	assert_non_null(strstr(read_line(fd), "\"result\":1}"));
	send_text(fd, REQUEST("count") REQUEST("count") "{\"jsonrpc\":\"2.0\",");
	assert_non_null(strstr(read_line(fd), "\"result\":2}"));
	assert_non_null(strstr(read_line(fd), "\"result\":3}"));
	assert_null(read_line(fd));
	send_text(fd, "\"id\":9,\"method\":\"count\"}\n");
	assert_string_equal(read_line(fd), "{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":4}");
	close(fd);
}

static void answers_more_lines_than_a_turn_runs_without_a_new_event(void **state)
{
	enum { N = 500 };
	static char text[N * sizeof(REQUEST("count"))];
	int fd = connect_client();

	text[0] = 0;
	for (int i = 0; i < N; i++)
		strcat(text, REQUEST("count"));
	send_text(fd, text);
	for (int i = 1; i <= N; i++) {
		char wanted[64];

		snprintf(wanted, sizeof(wanted), "\"result\":%d}", i);
		assert_non_null(strstr(read_line(fd), wanted));
	}
	close(fd);
}

static void answers_garbage_with_an_error_and_goes_on(void **state)
{
	char garbage[256 + 1];
	int fd = connect_client();

	for (int i = 0; i < 256; i++)
		garbage[i] = i == '\n' ? 'x' : 255 - i;
	garbage[255 - '\n'] = 'x';
	garbage[256] = '\n';
	assert_int_equal(send_bytes(fd, garbage, sizeof(garbage)), sizeof(garbage));
	assert_int_equal(code_in(read_line(fd)), -32700);
	send_text(fd, REQUEST("count"));
	assert_non_null(strstr(read_line(fd), "\"result\":1}"));
	close(fd);
}

static void takes_a_line_of_the_limit_and_skips_a_longer_one(void **state)
{
	static char text[RPC_LINE_BYTES * 3];
	int fd = connect_client();

	memset(text, ' ', sizeof(text));
	memcpy(text, REQUEST("count"), sizeof(REQUEST("count")) - 2);
	text[RPC_LINE_BYTES] = '\n';
	assert_int_equal(send_bytes(fd, text, RPC_LINE_BYTES + 1), RPC_LINE_BYTES + 1);
	assert_non_null(strstr(read_line(fd), "\"result\":1}"));
	text[RPC_LINE_BYTES] = ' ';
	for (size_t bytes = RPC_LINE_BYTES + 1; bytes < sizeof(text); bytes += 700001) {
		text[bytes] = '\n';
		assert_int_equal(send_bytes(fd, text, bytes + 1), bytes + 1);
		assert_int_equal(code_in(read_line(fd)), -32600);
		text[bytes] = ' ';
	}
	assert_int_equal(n_runs, 1);
	send_text(fd, REQUEST("count"));
	assert_non_null(strstr(read_line(fd), "\"result\":2}"));
	close(fd);
}

static void runs_what_a_client_sent_before_it_vanished(void **state)
{
	int fd = connect_client(), other = connect_client();

	static const char sent[] = REQUEST("count") REQUEST("much") "{\"half";

	send(fd, sent, strlen(sent), 0);
	close(fd);
	serve(20);
	send_text(other, REQUEST("count"));
	assert_non_null(strstr(read_line(other), "\"result\":3}"));
	close(other);
}

static void answers_a_client_that_sends_no_more(void **state)
{
	int fd = connect_client();

	send(fd, REQUEST("count"), sizeof(REQUEST("count")) - 1, 0);
	shutdown(fd, SHUT_WR);
	assert_non_null(strstr(read_line(fd), "\"result\":1}"));
	assert_string_equal(read_line(fd), "");
	close(fd);
}

// SIGPIPE is not ignored here: writing to `fd` after the peer has hung up must not terminate the
// program.
static void survives_a_client_that_vanishes_with_answers_waiting(void **state)
{
	int fd = connect_client(), other;

	for (int i = 0; i < 60; i++)
		send(fd, REQUEST("much"), sizeof(REQUEST("much")) - 1, MSG_NOSIGNAL);
	serve(20);
	close(fd);
	serve(20);
	other = connect_client();
	send_text(other, REQUEST("count"));
	assert_non_null(strstr(read_line(other), "\"result\":61}"));
	close(other);
}

static void lets_the_requests_of_a_client_that_never_reads_wait(void **state)
{
	enum { N = 200 };
	int fd = connect_client(), other = connect_client();
	unsigned n_before;

	for (int i = 0; i < N; i++)
		send_text(fd, REQUEST("much"));
	serve(TURNS);
	assert_in_range(n_runs, 5, 20);
	n_before = n_runs;
	send_text(other, REQUEST("count"));
	assert_non_null(strstr(read_line(other), "\"id\":1,\"result\""));
	assert_int_equal(n_runs, n_before + 1);
	for (int i = 0; i < N; i++)
		assert_true(strlen(read_line(fd)) > BIG_BYTES);
	assert_int_equal(n_runs, N + 1);
	close(fd);
	close(other);
}

static void cuts_off_a_client_that_takes_nothing_for_too_long(void **state)
{
	const uint64_t patience_ns = RPC_PATIENCE_SECONDS * 1000000000ull;
	static char answer[1 << 20];
	struct rpc_client client;
	int pair[2];

	memset(answer, 'x', sizeof(answer) - 1);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	rpc_client_start(&client, pair[0], 0);
	assert_false(rpc_client_is_done(&client, 100 * patience_ns));
	rpc_client_add(&client, answer, patience_ns);
	rpc_client_write(&client, patience_ns);
	assert_false(rpc_client_is_done(&client, 2 * patience_ns));
	assert_true(rpc_client_is_done(&client, 2 * patience_ns + 1));
	assert_int_equal(recv(pair[1], answer, 100000, 0), 100000);
	rpc_client_write(&client, 2 * patience_ns);
	assert_false(rpc_client_is_done(&client, 3 * patience_ns));
	rpc_client_close(&client);
	close(pair[1]);
}

static void turns_the_33rd_client_away_with_a_sentence(void **state)
{
	int fds[MAX_CLIENTS], late;

	for (int i = 0; i < MAX_CLIENTS; i++) {
		fds[i] = connect_client();
		serve(1);
	}
	late = connect_client();
	assert_int_equal(code_in(read_line(late)), -32001);
	assert_string_equal(read_line(late), "");
	close(late);
	for (int i = 0; i < MAX_CLIENTS; i++) {
		send_text(fds[i], REQUEST("count"));
		assert_non_null(strstr(read_line(fds[i]), "\"result\""));
	}
	close(fds[5]);
	serve(3);
	late = connect_client();
	send_text(late, REQUEST("count"));
	assert_non_null(strstr(read_line(late), "\"result\":33}"));
	close(late);
	for (int i = 0; i < MAX_CLIENTS; i++)
		if (i != 5)
			close(fds[i]);
}

// Advances the server's clock by some seconds.
static void let_pass(unsigned seconds)
{
	later_s += seconds;
}

static void ask(int fd)
{
	send_text(fd, REQUEST("count"));
	assert_non_null(strstr(read_line(fd), "\"result\""));
}

static void fill(int fds[])
{
	for (int i = 0; i < MAX_CLIENTS; i++) {
		fds[i] = connect_client();
		serve(1);
	}
}

static void close_all(int fds[])
{
	for (int i = 0; i < MAX_CLIENTS; i++)
		close(fds[i]);
}

// One client more than the limit is refused with an error message.
static void expect_turned_away(void)
{
	int late = connect_client();

	assert_int_equal(code_in(read_line(late)), -32001);
	close(late);
}

static void lets_a_client_in_by_closing_the_one_that_was_idle_for_longest(void **state)
{
	int fds[MAX_CLIENTS], late;

	fill(fds);
	let_pass(RPC_IDLE_SECONDS + 1);
	for (int i = 0; i < MAX_CLIENTS; i++)
		if (i != 7 && i != 9)
			ask(fds[i]);
	send_text(fds[7], "{\"half");
	late = connect_client();
	ask(late);
	assert_int_equal(code_in(read_line(fds[7])), -32001);
	assert_string_equal(read_line(fds[7]), "");
	ask(fds[9]);
	close(fds[7]);
	fds[7] = late;
	expect_turned_away();
	for (int i = 0; i < MAX_CLIENTS; i++)
		ask(fds[i]);
	close_all(fds);
}

static void closes_nobody_who_asks_now_and_then(void **state)
{
	int fds[MAX_CLIENTS];

	fill(fds);
	for (int round = 0; round < 3; round++) {
		let_pass(RPC_IDLE_SECONDS - 2);
		for (int i = 0; i < MAX_CLIENTS; i++)
			ask(fds[i]);
		expect_turned_away();
	}
	close_all(fds);
}

static void closes_nobody_whose_answer_is_on_its_way(void **state)
{
	enum { STEP_SECONDS = 6 }; // below RPC_PATIENCE_SECONDS
	int fds[MAX_CLIENTS];

	fill(fds);
	for (int i = 0; i < 12; i++)
		send(fds[3], REQUEST("much"), sizeof(REQUEST("much")) - 1, MSG_NOSIGNAL);
	serve(20);
	for (unsigned i = 0; i <= RPC_IDLE_SECONDS; i += STEP_SECONDS) {
		let_pass(STEP_SECONDS);
		assert_true(strlen(read_line(fds[3])) > BIG_BYTES);
	}
	assert_int_equal(n_runs, 12);
	for (int i = 0; i < MAX_CLIENTS; i++)
		if (i != 3)
			ask(fds[i]);
	expect_turned_away();
	close_all(fds);
}

static void wakes_for_the_callers_descriptor(void **state)
{
	int ends[2];

	let_run();
	uint64_t before_ns = clock_now_ns();
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], "x", 1), 1);
	rpc_serve(window, ends[0], 120000);
	assert_true(clock_now_ns() - before_ns < 60000000000ull);
	close(ends[0]);
	close(ends[1]);
}

static void sleeps_while_nothing_happens(void **state)
{
	int fd = connect_client();
	uint64_t before_ns;

	send_text(fd, REQUEST("count") "half");
	serve(5);
	let_run();
	before_ns = clock_now_ns();
	const uint64_t woke_ns = rpc_serve(window, -1, 50);
	assert_true(woke_ns - before_ns >= 49000000);
	assert_true(woke_ns <= clock_now_ns());
	close(fd);
}

static void writes_the_last_answers_when_it_closes(void **state)
{
	int fd = connect_client();
	char text[256] = "";

	serve(1);
	send(fd, REQUEST("count"), sizeof(REQUEST("count")) - 1, 0);
	serve(1);
	rpc_close(window);
	window = NULL;
	assert_true(recv(fd, text, sizeof(text) - 1, 0) > 0);
	assert_non_null(strstr(text, "\"result\":1}\n"));
	assert_int_equal(recv(fd, text, sizeof(text), 0), 0);
	assert_int_equal(access(path, F_OK), -1);
	close(fd);
}

int main(void)
{
#define WITH_WINDOW(test) cmocka_unit_test_setup_teardown(test, open_window, close_window)
	const struct CMUnitTest tests[] = {
		WITH_WINDOW(answers_two_clients_each_its_own),
		WITH_WINDOW(a_method_takes_its_connection_over),
		WITH_WINDOW(no_connection_with_further_requests_is_taken_over),
		WITH_WINDOW(puts_half_lines_together_and_takes_lines_apart),
		WITH_WINDOW(answers_more_lines_than_a_turn_runs_without_a_new_event),
		WITH_WINDOW(answers_garbage_with_an_error_and_goes_on),
		WITH_WINDOW(takes_a_line_of_the_limit_and_skips_a_longer_one),
		WITH_WINDOW(runs_what_a_client_sent_before_it_vanished),
		WITH_WINDOW(answers_a_client_that_sends_no_more),
		WITH_WINDOW(survives_a_client_that_vanishes_with_answers_waiting),
		WITH_WINDOW(lets_the_requests_of_a_client_that_never_reads_wait),
		WITH_WINDOW(cuts_off_a_client_that_takes_nothing_for_too_long),
		WITH_WINDOW(turns_the_33rd_client_away_with_a_sentence),
		WITH_WINDOW(lets_a_client_in_by_closing_the_one_that_was_idle_for_longest),
		WITH_WINDOW(closes_nobody_who_asks_now_and_then),
		WITH_WINDOW(closes_nobody_whose_answer_is_on_its_way),
		WITH_WINDOW(wakes_for_the_callers_descriptor),
		WITH_WINDOW(sleeps_while_nothing_happens),
		WITH_WINDOW(writes_the_last_answers_when_it_closes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
