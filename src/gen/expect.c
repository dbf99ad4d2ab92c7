// Which port and DSCP each flow is expected to have. Worker, control thread.
#include "gen/expect.h"

#include "gen/mix.h"

struct expect_action expect_action(const struct gen_expect *expect, uint64_t secret, uint32_t flow)
{
	uint64_t h = mix(mix(secret) + flow * MIX_STEP);

	return (struct expect_action){
		.port = expect->port[(h >> 32) * expect->n_ports >> 32],
		.dscp = expect->dscp[(h & 0xffffffff) * expect->n_dscps >> 32],
	};
}

bool expect_has_other(const struct gen_expect *expect, uint32_t flow)
{
	return expect->every && flow % expect->every == 0;
}

enum expect_verdict expect_judge(const struct gen_expect *expect, uint32_t flow,
	struct expect_action found)
{
	struct expect_action first = expect_action(expect, expect->secret, flow), other = first;

	if (found.port == first.port && found.dscp == first.dscp)
		return EXPECT_RIGHT;
	if (expect_has_other(expect, flow))
		other = expect_action(expect, expect->other_secret, flow);
	if (found.port == other.port && found.dscp == other.dscp)
		return EXPECT_OTHER;
	return found.port == first.port || found.port == other.port ? EXPECT_WRONG_DSCP
	                                                            : EXPECT_WRONG_PORT;
}

bool expect_ends_on(const struct gen_stream *stream, uint8_t port)
{
	for (unsigned i = 0; i < stream->expect.n_ports; i++)
		if (stream->expect.port[i] == port)
			return true;
	return stream->to == port;
}
