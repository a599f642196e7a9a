/* SPDX-License-Identifier: BSD-2-Clause */
/* Each control command is carried out and answered. */
#include <errno.h>
#include <json.h>
#include <string.h>
#include <unistd.h>

#include "core.h"
#include "watch.h"
#include "budget.h"
#include "registry.h"

/* ---- watch ----------------------------------------------------------------------------------- */

/*
 * A new viewer is shown no sample of the time before it. New viewers share one pause, as they may
 * be turned away. Users have no more of the loop's time than in a turn. A failure of the driver
 * ends the daemon in its next turn.
 */
static void drain_for_new(struct daemon *d)
{
	uint64_t now = base_now_ns();

	if (now - d->watched_anew_ns < WATCH_PAUSE_NS || now - d->watched_ns < WATCH_PAUSE_ALL_NS)
		return;
	d->watched_ns = d->watched_anew_ns = now;
	dyn_set_hasty(d->dyn, true);
	daemon_drain_counts(d, &d->source_error);
	dyn_set_hasty(d->dyn, false);
}

static int take(struct daemon *d, const struct watch_peer *peer, uint64_t now, struct base_buf *out,
		struct base_err *err)
{
	struct driver_event events[DRIVER_NR_EVENTS];

	for (size_t i = 0; i < d->store.nr_events; i++)
		events[i] = *driver_event_get(d->driver, i);
	return watch_take(d->store.watch, peer, events, d->store.nr_events, now, out, err);
}

int daemon_watch(struct daemon *d, const struct control_peer *peer, struct base_buf *reply)
{
	const struct watch_peer who = {
		.pid = peer->pid, .uid = peer->uid, .sock = peer->sock, .all = peer->privileged
	};
	uint64_t asked_ns = watch_asked(d->store.watch, &who), now;
	struct base_err err = { 0 };
	struct base_buf file = { 0 };
	int r;

	/* For others the turn did. */
	if (!asked_ns)
		drain_for_new(d);
	now = base_now_ns();
	r = take(d, &who, now, &file, &err);
	if (r >= 0)
		r = base_buf_printf(reply, "{\"ok\":true,\"ns\":%llu,\"all\":%s,\"bytes\":%zu}\n",
				    asked_ns ? (unsigned long long)(now - asked_ns) : 0,
				    peer->privileged ? "true" : "false", file.len);
	else
		r = control_reply_error(reply, &err);
	if (r >= 0 && file.len)
		r = base_buf_append(reply, file.data, file.len);
	base_buf_release(&file);
	return r;
}

/* Names of epochs are digits: nothing in the answer needs quoting. */
static int reply_done(const struct daemon *d, uint64_t stored, uint64_t nr_left,
		      struct base_buf *reply)
{
	int r = base_buf_printf(reply, "{\"ok\":true,\"epoch\":\"%s\",\"stored\":%llu", d->epoch,
				(unsigned long long)stored);

	if (r >= 0 && nr_left)
		r = base_buf_printf(reply, ",\"left\":%llu", (unsigned long long)nr_left);
	return r < 0 ? r : base_buf_printf(reply, "}\n");
}

/*
 * One turn of a flush, whoever asked for it: other clients, load events and the users' own turns
 * are served between two. -EINPROGRESS: it is not done.
 */
static int in_turns(struct daemon *d, int (*fn)(struct daemon *, struct base_err *),
		    struct base_err *err)
{
	int r;

	if (d->stepped)
		return -EINPROGRESS;
	d->stepped = true;
	daemon_keep_status(d, true);
	budget_turn(d->budgets);
	dyn_set_hasty(d->dyn, true);
	d->in_turns = true;
	r = fn(d, err);
	d->in_turns = false;
	dyn_set_hasty(d->dyn, false);
	return r;
}

/* The flush that quit begins with worked, its last one did not, and that came without sampling. */
static int proceed(struct daemon *d, int r, struct base_err *err)
{
	base_hint(err, "the daemon goes on; remove the cause and try again");
	/* Where it cannot, that ends it. */
	if (driver_start(d->driver, &d->source_error) >= 0 && !d->opt.no_scan) {
		follow_scan_all(&d->follow);
		counts_scanned(&d->counts);
	}
	return r;
}

static int quit(struct daemon *d, struct base_err *err)
{
	struct base_err own = { 0 };
	/* While sampling goes on, a full disk can be made room on and nothing is lost. */
	int r = in_turns(d, daemon_flush, &own);

	/* Waiting for somebody to make its folder is not what was asked for. */
	if (r == -ENOENT && d->gone_ns) {
		r = daemon_finish(d, err);
		if (r < 0)
			base_log(BASE_LOG_ERROR, "%s", err->text);
		return r;
	}
	*err = own;
	if (r == -EINPROGRESS)
		return r;
	if (r < 0) {
		base_hint(err, "the daemon goes on; remove the cause and try again");
		return r;
	}
	r = daemon_finish(d, err);
	return r < 0 && !d->finished ? proceed(d, r, err) : r;
}

/* ---- what clients tell of their processes ---------------------------------------------------- */

/* A process of the client's own; a member of the daemon's group has no rights over others' here. */
static int check_process(const struct control_peer *peer, int32_t pid, struct base_err *err)
{
	int r = pid > 0 ? registry_process_check(pid, peer->uid) : -ESRCH;

	if (r == 0 || (r == -EPERM && peer->uid == 0))
		return 0;
	if (r == -EPERM) {
		base_fail(err, r, "permission denied: process %d is not yours", pid);
		return r;
	}
	return base_fail(err, r, "no process %d can be seen from here", pid);
}

static int tell(struct daemon *d, struct driver_load *l, struct base_err *err)
{
	int r;

	l->time_ns = base_now_ns();
	r = follow_queue_add(&d->follow.queue, l);
	/* So many are told faster than anything happens otherwise. */
	if (r == -DCPI_ELIMIT) {
		r = daemon_drain(d, true, err);
		l->time_ns = base_now_ns();
		r = r < 0 ? r : follow_queue_add(&d->follow.queue, l);
	}
	return r < 0 ? base_fail_errno(err, r, "cannot tell of process %d", l->pid) : 0;
}

static int label(struct daemon *d, const struct control_request *q, const struct control_peer *peer,
		 struct base_err *err)
{
	struct driver_load l = { .kind = DRIVER_LOAD_LABEL,
				 .pid = q->pid ? q->pid : peer->pid,
				 .path = q->label };
	int r = check_process(peer, l.pid, err);

	l.tid = l.pid;
	if (r >= 0)
		r = labels_give(&d->follow.labels, q->label, peer->uid, err);
	return r < 0 ? r : tell(d, &l, err);
}

/* As many mappings as the kernel lets a process have. */
enum { MAPS_MAX = 65530 };

static int check_range(const struct daemon *d, const struct control_request *q,
		       const struct control_peer *peer, struct base_err *err)
{
	const struct process *p = processes_find(d->processes, q->pid);
	uint64_t since_ns = base_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	int r = proc_check_code(d->reader, q->pid, q->start, q->start + q->len);

	/* Its program chose how many mappings there are. */
	budget_waited(d->budgets, peer->uid, base_clock_ns(CLOCK_THREAD_CPUTIME_ID) - since_ns, 0,
		      0);
	if (p && p->nr_maps >= MAPS_MAX)
		return base_fail(err, -DCPI_ELIMIT, "process %d has too many mappings", q->pid);
	if (r >= 0)
		return 0;
	base_fail(err, r, "process %d has no executable memory at 0x%llx, of %llu bytes", q->pid,
		  (unsigned long long)q->start, (unsigned long long)q->len);
	base_hint(err, "say where the image's code begins in the process, and how long it is");
	return r;
}

/*
 * Each makes the reader work, and what it found is remembered until the next flush. The first half
 * is for whoever comes first (budget.h).
 */
enum { REGISTRATIONS_MAX = 8192 };

static int count_registration(struct daemon *d, const struct control_peer *peer,
			      struct base_err *err)
{
	if (!budget_wait_ms(d->budgets, peer->uid))
		return base_fail(err, -EDQUOT, "too much was asked for user %u: try again later",
				 peer->uid);
	if (peer->uid == 0 ||
	    budget_take(d->budgets, peer->uid, BUDGET_REGISTRATIONS, 1, REGISTRATIONS_MAX))
		return 0;
	base_fail(err, -DCPI_ELIMIT, "too many registrations since the last flush");
	base_hint(err, "try again in a few minutes, or after 'dcpictl flush'");
	return -DCPI_ELIMIT;
}

/* One answer for all that is no image which the client may read: others tell nothing. */
static int identify(struct daemon *d, const struct control_request *q,
		    const struct control_peer *peer, struct driver_load *l, struct base_err *err)
{
	if (identity_of_sent(d->identity, peer->uid, peer->sock, l) < 0) {
		base_fail(err, -DCPI_ENOIMAGE, "no image came with '%s'", q->path);
		base_hint(err, "send a descriptor of the file, opened to read, with the request");
		return -DCPI_ENOIMAGE;
	}
	if (q->id.len && !base_id_equal(&q->id, &l->id))
		return base_fail(err, -ESTALE, "image '%s' has another identity", q->path);
	return 0;
}

/* So that names that anybody may give do not take the room of paths. */
enum { NAMES_MAX = 4 };

/* Before its samples come, so that it has this name as well. */
static int name_image(struct daemon *d, const struct control_request *q,
		      const struct driver_load *l)
{
	const char *name = q->name[0] ? q->name : q->path;
	struct image *img =
		images_get_file(d->images, &l->id, &l->text, q->path, base_path_name(name));

	if (!img)
		return -ENOMEM;
	return profdb_profile_path(img->counts, NAMES_MAX - 1)
		       ? 0
		       : profdb_profile_add_path(img->counts, name);
}

static int register_image(struct daemon *d, const struct control_request *q,
			  const struct control_peer *peer, struct base_err *err)
{
	struct driver_load l = { .kind = DRIVER_LOAD_MMAP,
				 .pid = q->pid,
				 .tid = q->pid,
				 .addr = q->start,
				 .len = q->len,
				 .file_off = q->file_off,
				 .prot = 5, /* read, execute */
				 .path = q->path };
	int r = check_process(peer, q->pid, err);

	if (r >= 0)
		r = count_registration(d, peer, err);
	if (r >= 0)
		r = check_range(d, q, peer, err);
	if (r >= 0)
		r = identify(d, q, peer, &l, err);
	if (r >= 0 && (r = name_image(d, q, &l)) < 0)
		base_fail_errno(err, r, "cannot register '%s'", q->path);
	return r < 0 ? r : tell(d, &l, err);
}

/* ---- the log --------------------------------------------------------------------------------- */

static int reply_log(uint64_t max, struct base_buf *reply)
{
	struct json_object *root = json_object_new_object(), *lines = json_object_new_array();
	const char *text;
	size_t nr = 0;
	int r = -ENOMEM;

	while (base_log_kept(nr))
		nr++;
	json_object_object_add(root, "ok", json_object_new_boolean(1));
	for (size_t i = nr > max ? nr - max : 0; i < nr; i++)
		json_object_array_add(lines, json_object_new_string(base_log_kept(i)));
	json_object_object_add(root, "lines", lines);
	text = json_object_to_json_string_ext(root, JSON_C_TO_STRING_PLAIN |
							    JSON_C_TO_STRING_NOSLASHESCAPE);
	if (text)
		r = base_buf_printf(reply, "%s\n", text);
	json_object_put(root);
	return r;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* The kept status is not true any more. */
static void forget_status(struct daemon *d)
{
	if (d->control)
		control_keep(d->control, NULL);
	d->status_ns = 0;
}

/* This answer is kept from now on: an older one is not to come behind it. */
static int reply_status(struct daemon *d, struct base_buf *reply)
{
	int r = daemon_status(d, reply);

	if (r >= 0 && d->control)
		control_keep(d->control, reply);
	d->status_ns = r >= 0 ? base_now_ns() : d->status_ns;
	d->asked_ns = base_now_ns();
	return r;
}

int daemon_command(void *ctx, const struct control_request *q, const struct control_peer *peer,
		   struct base_buf *reply)
{
	struct daemon *d = ctx;
	struct base_err err = { 0 };
	int r = 0;

	switch (q->command) {
	case CONTROL_STATUS:
		return reply_status(d, reply);
	case CONTROL_LOG:
		return reply_log(q->lines, reply);
	case CONTROL_FLUSH:
		r = in_turns(d, daemon_flush, &err);
		break;
	case CONTROL_EPOCH:
		r = in_turns(d, daemon_new_epoch, &err);
		break;
	case CONTROL_QUIT:
		r = quit(d, &err);
		break;
	case CONTROL_LABEL:
		r = label(d, q, peer, &err);
		break;
	case CONTROL_REGISTER:
		r = register_image(d, q, peer, &err);
		break;
	case CONTROL_WATCH:
		return daemon_watch(d, peer, reply);
	}
	if (r == -EINPROGRESS)
		return CONTROL_LATER;
	/* A status that is asked for behind this answer shows what was done. */
	forget_status(d);
	if (r < 0)
		return control_reply_error(reply, &err);
	if (q->command == CONTROL_LABEL || q->command == CONTROL_REGISTER)
		return reply_done(d, d->store.account.stored, 0, reply);
	/* Samples of code whose process came during the flush are in memory. */
	return reply_done(d, d->store.account.stored - daemon_unwritten(d, false),
			  q->command == CONTROL_FLUSH ? d->nr_left : 0, reply);
}
