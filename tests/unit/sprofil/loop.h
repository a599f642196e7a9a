/* SPDX-License-Identifier: BSD-2-Clause */
/* Code at known addresses: a loop of instructions of known length, wherever a test wants it. */
#ifndef LOOP_H
#define LOOP_H

#include <stddef.h>
#include <stdint.h>

/* How many bytes it takes: two instructions of 4 bytes (they are what is sampled) and a return. */
enum { LOOP_LEN = 12, LOOP_INSTRUCTIONS = 2 };

/* Room for code; NULL if there is none. */
unsigned char *loop_room(size_t len);
void loop_room_free(unsigned char *space, size_t len);
/* Write a loop at @at, which is a multiple of 4. */
void loop_write(unsigned char *at);
/* Run it for about 100 us. */
void loop_run(const unsigned char *at);

#endif
