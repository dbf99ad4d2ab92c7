// A dump, section by section. One that does not come whole is asked for again; when that does not
// help either, the others go on, nothing of its kind is swept, and all is dumped once more later.
// Control thread.
#include "netlink/listen_inside.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

// A fragile section is repeated so often; what any pass told is known then.
enum { FRAGILE_PASSES = 3, MOST_PASSES = 8 };
enum { SECOND_NS = 1000000000, LONGEST_RETRY_S = 64 };

bool dump_is_due(const struct listen *listen)
{
	uint64_t since_ns = clock_now_ns() - listen->dump_end_ns;

	// Dumps get at most half of the time: a wish that each one brings anew must not take all.
	if (since_ns < listen->info.last_dump_ns)
		return false;
	return listen->wants_dump || (listen->retry_ns && since_ns >= listen->retry_ns);
}

void dump_begin(struct listen *listen)
{
	listen->wants_dump = false;
	listen->stage = STAGE_ASK;
	listen->section = listen->pass = 0;
	listen->partial = 0;
	listen->dump_since_ns = clock_now_ns();
	listen->ops.dump_begins(listen->ops.arg);
}

// A socket on which a dump goes on takes no other request: a new one takes its place.
void dump_stop(struct listen *listen)
{
	unsigned protocol;
	int fd;

	if (listen->stage != STAGE_ANSWER)
		return; // there may be no section
	protocol = sections[listen->section].protocol;
	fd = socket_open(listen_protocols[protocol].protocol, listen->namespace);
	if (fd < 0) {
		log_error("cannot open a netlink socket: %s", strerror(-fd));
		return;
	}
	close(listen->dump[protocol]);
	listen->dump[protocol] = fd;
}

// Twice as long each time, so that what never succeeds costs next to nothing.
static uint64_t next_retry_ns(const struct listen *listen)
{
	uint64_t longer = listen->retry_ns ? listen->retry_ns * 2 : SECOND_NS;
	uint64_t longest = LONGEST_RETRY_S * (uint64_t)SECOND_NS;

	return longer < longest ? longer : longest;
}

static void end_dump(struct listen *listen)
{
	listen->stage = STAGE_FOLLOWING;
	listen->dump_end_ns = clock_now_ns();
	listen->info.last_dump_ns = listen->dump_end_ns - listen->dump_since_ns;
	if (listen->partial)
		listen->info.dumps_partial++;
	else
		listen->info.dumps++;
	listen->retry_ns = listen->partial ? next_retry_ns(listen) : 0;
	listen->ops.dump_ends(listen->ops.arg, listen->partial);
}

static void next_section(struct listen *listen)
{
	listen->pass = 0;
	listen->stage = STAGE_ASK;
	if (++listen->section == n_sections)
		end_dump(listen);
}

// The rest goes on with what there is, so that workers get their routes. Said once, until the
// section comes whole again.
static void give_up_section(struct listen *listen, const char *reason)
{
	const struct section *section = &sections[listen->section];

	if (!(listen->failing & 1u << listen->section))
		log_warn("Linux's %s could not be read (%s): what is known of them stays, and "
			 "they are asked for again until they are told whole",
			section->name, reason);
	listen->failing |= 1u << listen->section;
	listen->partial |= 1u << section->kind;
	listen->ops.dump_lacks(listen->ops.arg, section->kind);
	next_section(listen);
}

static void repeat_section(struct listen *listen, const char *reason)
{
	listen->stage = STAGE_ASK;
	listen->info.dumps_restarted++;
	if (++listen->pass == MOST_PASSES)
		give_up_section(listen, reason);
}

void dump_ask(struct listen *listen)
{
	const struct section *section = &sections[listen->section];
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
	uint8_t request[SECTION_REQUEST_BYTES];
	size_t n = section_request(section, ++listen->sequence, request);
	int fd = listen->dump[section->protocol];

	listen->is_disturbed = listen->is_interrupted = listen->is_unsound = false;
	listen->stage = STAGE_ANSWER;
	if (fd < 0)
		next_section(listen);
	else if (sendto(fd, request, n, 0, (struct sockaddr *)&kernel, sizeof(kernel)) !=
		 (ssize_t)n)
		give_up_section(listen, strerror(errno));
}

// What kernels say of a section that they do not have: then there is nothing of its kind.
static bool is_lack(const struct section *section, int error)
{
	return section->flags & SECTION_MAY_LACK &&
	       (error == -EOPNOTSUPP || error == -EAFNOSUPPORT || error == -EPROTONOSUPPORT ||
		       error == -EINVAL || error == -ENOENT);
}

// The kernel has told all of a section, or why it does not.
static void end_section(struct listen *listen, int error)
{
	const struct section *section = &sections[listen->section];

	if (listen->is_interrupted || error == -EINTR || error == -EAGAIN) {
		repeat_section(listen, "they change while they are told");
		return;
	}
	if (error && !is_lack(section, error)) {
		give_up_section(listen, strerror(-error));
		return;
	}
	if (listen->is_unsound) {
		give_up_section(listen, "a message is malformed");
		return;
	}
	listen->failing &= ~(1u << listen->section);
	listen->stage = STAGE_ASK;
	listen->pass++;
	if (!(section->flags & SECTION_FRAGILE) || !listen->is_disturbed ||
		listen->pass >= FRAGILE_PASSES)
		next_section(listen);
}

static void take_answer(struct listen *listen, const struct nlmsghdr *message)
{
	unsigned protocol = sections[listen->section].protocol;
	struct event event;
	enum decode_result result =
		listen_protocols[protocol].decode(message, message->nlmsg_len, &event);

	listen->info.messages++;
	if (message->nlmsg_seq != listen->sequence) {
		listen->info.ignored++;
		return;
	}
	// Linux says so in one message alone, which may be one of no concern.
	if (message->nlmsg_flags & NLM_F_DUMP_INTR)
		listen->is_interrupted = true;
	if (result == DECODE_IGNORED) {
		listen->info.ignored++;
		return;
	}
	if (result == DECODE_MALFORMED) {
		listen->info.malformed++;
		listen->is_unsound = true; // whatever of its kind it was, it was not told
		return;
	}
	if (event.kind == EVENT_DONE || event.kind == EVENT_ERROR) {
		end_section(listen, event.error);
		return;
	}
	event.is_dump = true;
	listen->ops.event(listen->ops.arg, &event);
}

// The end of the dump may have been in what is not there: nobody waits for it.
static void take_torn_piece(struct listen *listen)
{
	listen->info.malformed++;
	dump_stop(listen);
	repeat_section(listen, "a message is cut");
}

void dump_take_piece(struct listen *listen)
{
	int fd = listen->dump[sections[listen->section].protocol];
	int n = socket_read(fd, listen->piece, LISTEN_PIECE_BYTES);
	struct socket_rest rest = {listen->piece, n > 0 ? n : 0};
	const struct nlmsghdr *message;

	// What a dump loses it does not say again; after an error it may say nothing more at all.
	if (n == -EBADMSG) {
		listen->is_interrupted = true;
		listen->info.malformed++;
		return;
	}
	if (n < 0) {
		dump_stop(listen);
		repeat_section(listen, strerror(-n));
		return;
	}
	while (listen->stage == STAGE_ANSWER && (message = socket_next(&rest)))
		take_answer(listen, message);
	if (listen->stage == STAGE_ANSWER && rest.n)
		take_torn_piece(listen);
}
