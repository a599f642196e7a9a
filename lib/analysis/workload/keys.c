/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Workloads as text: their keys, by which they are chosen and put into groups; what a cgroup's
 * path names.
 */
#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <string.h>

#include "workload.h"

/* ---- paths of cgroups ------------------------------------------------------------------------ */

enum {
	ID_LEN = 64,	/* digits of a container's id */
	ID_SHORT = 12,	/* digits at least, behind the name of an engine */
	POD_SHORT = 32, /* digits of a pod's uid, without or with '-' between */
	POD_LONG = 36,
};

/* A part of a path: no copy. */
struct part {
	const char *s;
	size_t len;
};

static bool ends_with(struct part p, const char *end)
{
	size_t len = strlen(end);

	return p.len > len && memcmp(p.s + p.len - len, end, len) == 0;
}

static bool begins_with(struct part p, const char *begin)
{
	size_t len = strlen(begin);

	return p.len > len && memcmp(p.s, begin, len) == 0;
}

static bool equals(struct part p, const char *text)
{
	return p.len == strlen(text) && memcmp(p.s, text, p.len) == 0;
}

static struct part behind(struct part p, size_t len)
{
	return (struct part){ p.s + len, p.len - len };
}

static struct part before(struct part p, const char *end)
{
	return (struct part){ p.s, ends_with(p, end) ? p.len - strlen(end) : p.len };
}

/* The component of the path that ends at @end, without slashes. False: there is none. */
static bool last_of(const char *path, size_t *end, struct part *out)
{
	size_t to = *end, from;

	while (to && path[to - 1] == '/')
		to--;
	for (from = to; from && path[from - 1] != '/';)
		from--;
	*end = from;
	*out = (struct part){ path + from, to - from };
	return to > from;
}

/* ---- units ----------------------------------------------------------------------------------- */

static bool is_unit(struct part p)
{
	return ends_with(p, ".service") || ends_with(p, ".scope") || ends_with(p, ".mount") ||
	       ends_with(p, ".socket") || ends_with(p, ".swap");
}

int workload_unit(const char *cgroup, struct base_buf *out)
{
	struct part p, slice = { NULL, 0 };

	for (size_t end = strlen(cgroup); last_of(cgroup, &end, &p);) {
		/* A name that the kernel could take for a file of its own begins with '_'. */
		if (p.s[0] == '_')
			p = behind(p, 1);
		if (is_unit(p))
			return base_buf_printf(out, "%.*s", (int)p.len, p.s);
		if (!slice.s && ends_with(p, ".slice") && !memchr(p.s, ':', p.len))
			slice = p;
	}
	return slice.s ? base_buf_printf(out, "%.*s", (int)slice.len, slice.s) : 0;
}

/* ---- containers ------------------------------------------------------------------------------ */

static size_t hex_digits(struct part p)
{
	size_t nr = 0;

	while (nr < p.len && base_digit(p.s[nr]) >= 0)
		nr++;
	return nr;
}

static bool is_id(struct part p, size_t least)
{
	return p.len >= least && p.len <= ID_LEN && hex_digits(p) == p.len;
}

/* The name of a unit has '-' and others as \x and two digits. */
static int put_unescaped(struct part p, struct base_buf *out)
{
	int r = 0;

	for (size_t i = 0; i < p.len && r >= 0; i++) {
		bool coded = p.len - i >= 4 && p.s[i] == '\\' && p.s[i + 1] == 'x' &&
			     base_digit(p.s[i + 2]) >= 0 && base_digit(p.s[i + 3]) >= 0;
		char c = p.s[i];

		if (coded) {
			c = (char)(base_digit(p.s[i + 2]) << 4 | base_digit(p.s[i + 3]));
			i += 3;
		}
		r = c ? base_buf_append(out, &c, 1) : 0;
	}
	return r;
}

/* The name of a container's engine stands before the id. */
static bool engine(struct part p, struct part *id)
{
	static const char *const names[] = {
		"docker-", "libpod-payload-", "libpod-",  "cri-containerd-",
		"crio-",   "containerd-",     "nerdctl-",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!begins_with(p, names[i]))
			continue;
		*id = behind(p, strlen(names[i]));
		if (is_id(*id, ID_SHORT))
			return true;
	}
	return false;
}

/* An id alone, or behind what an engine not named above puts there; conmon only watches it. */
static bool full_id(struct part p, struct part *id)
{
	if (p.len < ID_LEN || begins_with(p, "crio-conmon-") || begins_with(p, "libpod-conmon-"))
		return false;
	*id = behind(p, p.len - ID_LEN);
	return is_id(*id, ID_LEN) && (id->s == p.s || id->s[-1] == '-' || id->s[-1] == ':');
}

/* Containers that have a name: the part of @p that is it. */
static bool named(struct part p, struct part parent, struct part *name)
{
	*name = p;
	if (begins_with(p, "lxc.payload."))
		*name = behind(p, strlen("lxc.payload."));
	else if (begins_with(p, "machine-") && ends_with(p, ".scope"))
		*name = behind(before(p, ".scope"), strlen("machine-"));
	else if (begins_with(p, "systemd-nspawn@") && ends_with(p, ".service"))
		*name = behind(before(p, ".service"), strlen("systemd-nspawn@"));
	else if (!equals(parent, "lxc") && !equals(parent, "lxc.payload"))
		return false;
	return name->len > 0;
}

int workload_container(const char *cgroup, struct base_buf *out)
{
	struct part p, parent, found;

	for (size_t end = strlen(cgroup), up; last_of(cgroup, &end, &p);) {
		struct part bare = before(before(p, ".scope"), ".service");

		if (engine(bare, &found) || full_id(bare, &found))
			return base_buf_printf(out, "%.*s", (int)found.len, found.s);
		up = end;
		if (!last_of(cgroup, &up, &parent))
			parent = (struct part){ "", 0 };
		if (named(p, parent, &found))
			return put_unescaped(found, out);
	}
	return 0;
}

/* ---- pods ------------------------------------------------------------------------------------ */

/* In the names of slices '-' means a level, so uids have '_' there. */
static bool pod_uid(struct part p, struct part *uid)
{
	size_t len = 0;

	while (len < p.len && (base_digit(p.s[len]) >= 0 || p.s[len] == '_' || p.s[len] == '-'))
		len++;
	*uid = (struct part){ p.s, len };
	return (len == POD_SHORT || len == POD_LONG) &&
	       (len == p.len || p.s[len] == '.' || p.s[len] == ':');
}

static bool find_pod(struct part p, struct part *uid)
{
	if (begins_with(p, "pod"))
		return pod_uid(behind(p, strlen("pod")), uid);
	for (size_t i = 0; begins_with(p, "kubepods") && i + strlen("-pod") < p.len; i++)
		if (memcmp(p.s + i, "-pod", strlen("-pod")) == 0 &&
		    pod_uid(behind(p, i + strlen("-pod")), uid))
			return true;
	return false;
}

int workload_pod(const char *cgroup, struct base_buf *out)
{
	struct part p, uid;
	int r = 0;

	if (!strstr(cgroup, "kubepods"))
		return 0;
	for (size_t end = strlen(cgroup); last_of(cgroup, &end, &p);) {
		if (!find_pod(p, &uid))
			continue;
		for (size_t i = 0; i < uid.len && r >= 0; i++)
			r = base_buf_append(out, uid.s[i] == '_' ? "-" : uid.s + i, 1);
		return r;
	}
	return 0;
}

/* ---- keys ------------------------------------------------------------------------------------ */

static const char *const names[WORKLOAD_NR_KEYS] = {
	[WORKLOAD_COMM] = "comm",
	[WORKLOAD_EXE] = "exe",
	[WORKLOAD_PID] = "pid",
	[WORKLOAD_UID] = "uid",
	[WORKLOAD_CGROUP] = "cgroup",
	[WORKLOAD_UNIT] = "unit",
	[WORKLOAD_CONTAINER] = "container",
	[WORKLOAD_THREAD] = "thread",
	[WORKLOAD_LABEL] = "label",
};

const char *workload_key_name(enum workload_key key)
{
	return names[key];
}

int workload_key_find(const char *name, enum workload_key *out)
{
	for (size_t i = 0; i < WORKLOAD_NR_KEYS; i++) {
		if (strcmp(names[i], name) == 0) {
			*out = (enum workload_key)i;
			return 0;
		}
	}
	return -ENOENT;
}

/* A process that calls itself so has a program. */
bool workload_is_idle(const struct profdb_workload *k)
{
	return !k->pid && !*k->exe && strcmp(k->comm, "(idle)") == 0;
}

int workload_group_key(const struct profdb_workload *k, enum workload_key key, struct base_buf *out)
{
	char class = workload_is_idle(k)	    ? WORKLOAD_IDLE
		     : workload_key_dropped(k, key) ? WORKLOAD_DROPPED
						    : WORKLOAD_KEPT;
	int r = base_buf_append(out, &class, 1);

	if (r >= 0 && class == WORKLOAD_KEPT)
		r = workload_key_of(k, key, out);
	return r < 0 ? r : base_buf_printf(out, "%s", "");
}

const char *workload_key_missing(enum workload_key key, enum workload_class class)
{
	if (class != WORKLOAD_KEPT)
		return class == WORKLOAD_IDLE ? "(idle)" : "(not kept)";
	return key == WORKLOAD_UNIT || key == WORKLOAD_CONTAINER || key == WORKLOAD_LABEL
		       ? "(none)"
		       : "(not known)";
}

int workload_key_of(const struct profdb_workload *k, enum workload_key key, struct base_buf *out)
{
	switch (key) {
	case WORKLOAD_COMM:
		return base_buf_printf(out, "%s", k->comm);
	case WORKLOAD_EXE:
		return base_buf_printf(out, "%s", k->exe);
	case WORKLOAD_PID:
		return workload_key_dropped(k, key) ? 0 : base_buf_printf(out, "%" PRId32, k->pid);
	case WORKLOAD_UID:
		return k->uid == UINT32_MAX ? 0 : base_buf_printf(out, "%" PRIu32, k->uid);
	case WORKLOAD_CGROUP:
		return base_buf_printf(out, "%s", k->cgroup);
	case WORKLOAD_UNIT:
		return workload_unit(k->cgroup, out);
	case WORKLOAD_CONTAINER:
		return workload_container(k->cgroup, out);
	case WORKLOAD_THREAD:
		return base_buf_printf(out, "%s", k->thread);
	default:
		return base_buf_printf(out, "%s", k->label);
	}
}

/* ---- choosing -------------------------------------------------------------------------------- */

enum { MINUTE = 60 };

/* Seconds of minutes up to here, and their differences, are numbers too. */
#define LAST_MINUTE (INT64_MAX / 4 / MINUTE)

void workload_filter_init(struct workload_filter *f)
{
	*f = (struct workload_filter){ .since = INT64_MIN, .until = INT64_MAX };
}

bool workload_filter_has_time(const struct workload_filter *f)
{
	return f->since != INT64_MIN || f->until != INT64_MAX;
}

bool workload_filter_minute(const struct workload_filter *f, int64_t minute)
{
	return minute >= -LAST_MINUTE && minute <= LAST_MINUTE && minute * MINUTE >= f->since &&
	       minute * MINUTE < f->until;
}

/* A name with brackets in it is found by itself too. */
static bool matches(const char *glob, const char *text)
{
	return strcmp(glob, text) == 0 || fnmatch(glob, text, FNM_NOESCAPE) == 0;
}

static bool matches_one(const struct workload_filter *f, enum workload_key key, const char *text)
{
	for (size_t i = 0; i < f->nr[key]; i++)
		if (matches(f->globs[key][i], text))
			return true;
	return false;
}

/* 1, 0 or -ENOMEM. */
static int pod_matches(const struct workload_filter *f, const struct profdb_workload *k,
		       struct base_buf *text)
{
	int r;

	base_buf_clear(text);
	r = workload_pod(k->cgroup, text);
	if (r < 0 || !text->len)
		return r;
	r = base_buf_printf(text, "%s", "");
	return r < 0 ? r : matches_one(f, WORKLOAD_CONTAINER, (const char *)text->data);
}

/* The same. */
static int key_matches(const struct workload_filter *f, const struct profdb_workload *k,
		       enum workload_key key, struct base_buf *text)
{
	int r;

	if (workload_key_dropped(k, key))
		return 0;
	base_buf_clear(text);
	r = workload_key_of(k, key, text);
	if (r >= 0)
		r = base_buf_printf(text, "%s", "");
	if (r < 0)
		return r;
	if (matches_one(f, key, (const char *)text->data))
		return 1;
	if (key == WORKLOAD_EXE)
		return matches_one(f, key, base_path_name(k->exe));
	return key == WORKLOAD_CONTAINER ? pod_matches(f, k, text) : 0;
}

static bool is_labelled(const struct analysis *a, const struct profdb_workload *k)
{
	for (size_t i = 0; i < a->labels.nr; i++)
		if (strcmp(a->labels.v[i], k->label) == 0)
			return true;
	return !a->labels.nr;
}

static int choose(const struct analysis *a, const struct workload_filter *f, enum workload_key but,
		  const struct profdb_workload *k, struct base_buf *text)
{
	int r = is_labelled(a, k);

	for (size_t i = 0; i < WORKLOAD_NR_KEYS && r > 0; i++)
		if (f->nr[i] && i != but)
			r = key_matches(f, k, (enum workload_key)i, text);
	return r;
}

int workload_mark(const struct analysis *a, const struct profdb_workloads *w,
		  const struct workload_filter *f, enum workload_key but, bool *chosen)
{
	struct base_buf text = { 0 };
	int r = 0;

	for (size_t i = 0; i < profdb_workloads_nr(w) && r >= 0; i++) {
		r = choose(a, f, but, profdb_workloads_workload(w, i), &text);
		chosen[i] = r > 0;
	}
	base_buf_release(&text);
	return r < 0 ? r : 0;
}
