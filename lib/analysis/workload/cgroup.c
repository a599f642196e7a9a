/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the systemd unit, the container and the pod that the path of a cgroup names. */
#include <errno.h>
#include <string.h>

#include "workload.h"

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
