/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of threads out of the table that programs write, and its banks. No kernel is needed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpf_internal.h"

/* Two exchanges behind one that was not waited for, nothing of that time is in a table. */
enum { WHOLE_ENOUGH = 2 };

int bpf_threads_init(struct bpf_threads *t, struct thread_name *names)
{
	*t = (struct bpf_threads){ .names = names, .whole = WHOLE_ENOUGH };
	t->texts = calloc(THREAD_NR_NAMES, sizeof(*t->texts));
	return t->texts ? 0 : -ENOMEM;
}

void bpf_threads_release(struct bpf_threads *t)
{
	free(t->texts);
	*t = (struct bpf_threads){ 0 };
}

const char *bpf_threads_name(const struct bpf_threads *t, uint32_t number)
{
	char *text;

	if (!number || number >= THREAD_NR_NAMES)
		return "";
	text = t->texts[number];
	if (!text[0] && t->names[number].word[1]) {
		memcpy(text, &t->names[number], THREAD_NAME_LEN);
		text[THREAD_NAME_LEN - 1] = '\0';
	}
	return text;
}

uint32_t bpf_threads_bank(struct bpf_threads *t, bool held)
{
	size_t from;

	if (!t->forget || held || t->whole < WHOLE_ENOUGH)
		return t->bank;
	t->forget = false;
	t->bank ^= 1;
	from = (size_t)t->bank * THREAD_BANK;
	memset(&t->names[from], 0, THREAD_BANK * sizeof(*t->names));
	for (size_t i = from; i < from + THREAD_BANK; i++) {
		if (t->texts[i][0])
			t->texts[i][0] = '\0';
	}
	return t->bank;
}

void bpf_threads_exchanged(struct bpf_threads *t, bool waited)
{
	t->whole = !waited ? 0 : t->whole < WHOLE_ENOUGH ? t->whole + 1 : t->whole;
}
