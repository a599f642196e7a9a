/* SPDX-License-Identifier: BSD-2-Clause */
/* Labels: what users call runs of programs, so that their samples can be told from others. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "track.h"

static bool is_label_char(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c && strchr("._+-:@=/%,", c));
}

int label_check(const char *text, size_t len, struct base_err *err)
{
	int r = len && len <= LABEL_MAX ? 0 : -EINVAL;

	for (size_t i = 0; r == 0 && i < len; i++)
		if (!is_label_char(text[i]))
			r = -EINVAL;
	if (r == 0)
		return 0;
	base_fail(err, r, "'%.*s' is no label", (int)(len < 80 ? len : 80), text);
	base_hint(err, "a label has 1 to %d letters, digits, and characters of ._+-:@=/%%,",
		  LABEL_MAX);
	return r;
}

static struct label *find(const struct labels *t, const char *text)
{
	for (size_t i = 0; i < t->nr; i++)
		if (strcmp(t->items[i].text, text) == 0)
			return &t->items[i];
	return NULL;
}

static struct label *get(struct labels *t, const char *text)
{
	struct label *l = find(t, text);

	if (l)
		return l;
	if (base_grow(&t->items, &t->cap, t->nr + 1, sizeof(*t->items)) < 0)
		return NULL;
	l = &t->items[t->nr];
	*l = (struct label){ .text = strdup(text) };
	if (!l->text)
		return NULL;
	t->nr++;
	return l;
}

const char *labels_get(struct labels *t, const char *text)
{
	const struct label *l = get(t, text);

	return l ? l->text : NULL;
}

static bool is_given(const struct labels *t, const struct label *l)
{
	return l->given && l->epoch == t->epoch;
}

int labels_give(struct labels *t, const char *text, uint32_t uid, struct base_err *err)
{
	size_t nr = 0, own = 0;
	struct label *l = find(t, text);

	if (l && is_given(t, l))
		return 0;
	for (size_t i = 0; i < t->nr; i++) {
		nr += is_given(t, &t->items[i]);
		own += is_given(t, &t->items[i]) && t->items[i].uid == uid;
	}
	if (nr >= LABELS_MAX || (uid != 0 && own >= LABELS_OF_USER)) {
		base_fail(err, -DCPI_ELIMIT,
			  "too many labels in this epoch: %d of a user, %d of all", LABELS_OF_USER,
			  LABELS_MAX);
		base_hint(err, "use one of them again, or begin an epoch with 'dcpictl epoch'");
		return -DCPI_ELIMIT;
	}
	l = get(t, text);
	if (!l)
		return base_fail_errno(err, -ENOMEM, "cannot keep a label");
	l->given = true;
	l->uid = uid;
	l->epoch = t->epoch;
	return 0;
}

void labels_release(struct labels *t)
{
	free(t->kept);
	base_buf_release(&t->written);
	for (size_t i = 0; i < t->nr; i++)
		free(t->items[i].text);
	free(t->items);
	*t = (struct labels){ 0 };
}
