// Random numbers and tables for tests.
#pragma once

#include "mac/inside.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static uint64_t testing_state = 88172645463325252ull;

static inline uint64_t testing_random(void)
{
	testing_state ^= testing_state << 13; // xorshift64*
	testing_state ^= testing_state >> 7;
	testing_state ^= testing_state << 17;
	return testing_state * 2685821657736338717ull >> 11;
}

// Address number `number`, different from all others.
static inline uint64_t testing_key(uint16_t domain, uint32_t number)
{
	const uint8_t mac[8] = {2, 0, number >> 24, number >> 16, number >> 8, number};

	return mac_key(domain, mac);
}
