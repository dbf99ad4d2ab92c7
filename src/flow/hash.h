// The hash of a key: four AES rounds for each 16 bytes, with random round keys. All variants yield
// the same hashes. Any thread.
#pragma once

#include "flow/flow_fast.h"

// One AES round as AESENC does it (FIPS 197, 5.1): ShiftRows, SubBytes, MixColumns, AddRoundKey.
void hash_round(uint8_t block[16], const uint8_t key[16]);

// In C, for any CPU.
flow_hash4_fn hash4_plain;
flow_hash6_fn hash6_plain;
// Need AES.
flow_hash4_fn hash4_aes;
flow_hash6_fn hash6_aes;
// Need AVX-512 F, BW, DQ, VL and VAES.
flow_hash4_fn hash4_vaes;
flow_hash6_fn hash6_vaes;

struct hashes {
	flow_hash4_fn *four;
	flow_hash6_fn *six;
	const char *name;
};

// The variants that CPU, build and EAL allow, from the simplest to the best. Control thread.
unsigned hash_variants(struct hashes variants[3]);

// Draws new round keys; 0, or -errno. Control thread.
int hash_draw_secret(struct flow_secret *secret);
