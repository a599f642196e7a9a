/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The JVM's agent (libdcpi-jvmti.so): what the JVM tells through JVMTI of its compiled methods and
 * stubs goes to libdbgdyn. agent.c is loaded and called by the JVM, method.c makes a routine of a
 * compiled method, stub.c of any other code; known.c keeps what the JVM said of a method, with
 * names as a person can read them; options.c and frames.c know no JVM.
 *
 * Source: the JVM Tool Interface's specification, jvmti.h and jvmticmlr.h of OpenJDK 17.
 */
#ifndef DCPI_JVMTI_INTERNAL_H
#define DCPI_JVMTI_INTERNAL_H

#include "dbgdyn.h"

#include <jvmti.h>
#include <jvmticmlr.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- options (options.c) --------------------------------------------------------------------- */

#define JVMTI_FACILITY_MAX 104 /* as dbgdyn_begin takes it */

struct jvmti_options {
	char facility[JVMTI_FACILITY_MAX + 1];
	bool signatures;
};

/*
 * "NAME=VALUE,…" as it stands behind the library's path; NULL or empty: the defaults. 0, or -EINVAL
 * with a message without newline in @err.
 */
int jvmti_options_parse(const char *text, struct jvmti_options *out, char *err, size_t err_len);

/* ---- names (known.c) ------------------------------------------------------------------------- */

#define JVMTI_NAME_MAX 4095 /* bytes; the rest is cut, as libdbgdyn does */

struct jvmti_name {
	size_t len;
	char text[JVMTI_NAME_MAX + 1];
};

/*
 * "java.util.HashMap.getNode" from "Ljava/util/HashMap;" and "getNode", with @signature (not NULL)
 * "java.util.HashMap.getNode(java.lang.Object)". Hidden classes lose their address, which differs
 * from run to run. Whatever the JVM passes is survived.
 */
void jvmti_name_method(struct jvmti_name *out, const char *class_descriptor, const char *method,
		       const char *signature);
/* "java/util/HashMap.java": where a source tree has it. */
void jvmti_name_file(struct jvmti_name *out, const char *class_descriptor, const char *source);
/* The VM's own name of a stub, without the address that some end with. */
void jvmti_name_stub(struct jvmti_name *out, const char *name);

/* ---- what is known of a method (known.c) ----------------------------------------------------- */

struct jvmti_known {
	struct jvmti_known *next; /* next one with the same hash */
	jmethodID id;
	struct dbgdyn_string name;   /* never empty */
	struct dbgdyn_string file;   /* empty: the class file does not say */
	jvmtiLineNumberEntry *lines; /* ascending by start_location; NULL: none */
	size_t nr_lines;
	uint64_t event;	  /* the last one that met it (struct jvmti_frames), */
	uint32_t file_at; /* and where its file stands among that one's */
};

/* The line of a place in the byte code (below 0: the method's entry); 0: unknown. */
uint32_t jvmti_known_line(const struct jvmti_known *k, int64_t bci);
/* Make @lines, as the JVM gave them, fit for that. */
void jvmti_known_sort(jvmtiLineNumberEntry *lines, size_t nr);

struct jvmti_methods {
	JavaVM *vm;
	jvmtiEnv *env;
	bool signatures;
	struct jvmti_known **chains; /* NULL: nothing is known yet */
	size_t nr;
};

/*
 * @m was zeroed, but for vm, env and signatures. What find returned holds until the next trim.
 * NULL: no memory, or the JVM knows no such method.
 */
struct jvmti_known *jvmti_methods_find(struct jvmti_methods *m, jmethodID id);
/* The same, with its lines asked anew: a class may have been redefined. */
struct jvmti_known *jvmti_methods_renew(struct jvmti_methods *m, jmethodID id);
/* Forget all where that is much. */
void jvmti_methods_trim(struct jvmti_methods *m);

/* ---- from places in code to lines and inlined parts (frames.c) ------------------------------- */

/* From start on (up to the next one's) the code is of these frames, the innermost first. */
struct jvmti_place {
	uint32_t start;
	uint32_t nr_frames;
	const jmethodID *methods;
	const jint *bcis;
};

typedef struct jvmti_known *jvmti_find_fn(void *arg, jmethodID id);

#define JVMTI_DEPTH_MAX 64 /* parts inlined in one another, as libdbgdyn takes them */

/* Zeroed, then filled by jvmti_frames_convert as often as one likes. */
struct jvmti_frames {
	struct dbgdyn_line *lines;
	struct dbgdyn_inline *inlines;
	struct dbgdyn_string *files;
	size_t nr_lines, nr_inlines, nr_files;
	size_t grow_lines, grow_inlines, grow_files;
	uint64_t event;
	uint32_t nr_open; /* parts that the place before lies in: the routine's own and those
			     inlined */
	struct {
		const struct jvmti_known *known;
		uint32_t call_line, at; /* its index among the inlines */
	} open[JVMTI_DEPTH_MAX + 1];
};

/*
 * @places ascend; behind @end, if that is below @code_len, nothing is known of the code. @find says
 * what is known of a method; of one of which it knows nothing, the caller is taken for its code.
 * 0 or -ENOMEM.
 */
int jvmti_frames_convert(struct jvmti_frames *f, const struct jvmti_place *places, size_t nr,
			 uint32_t end, uint32_t code_len, jvmti_find_fn *find, void *arg);
void jvmti_frames_release(struct jvmti_frames *f);

/*
 * Places of the records that HotSpot passes with a compiled method: each is of the instructions
 * behind the one before it up to and with the one at its address. *@end is behind the last. @out
 * has room for all of them; how many there are.
 */
size_t jvmti_places_of_records(struct jvmti_place *out, const PCStackInfo *records, size_t nr,
			       const void *code, uint32_t code_len, uint32_t *end);
/* Places of the map that JVMTI itself defines: each holds up to the next. It outlives them. */
size_t jvmti_places_of_map(struct jvmti_place *out, const jvmtiAddrLocationMap *map, jint *bcis,
			   size_t nr, const jmethodID *method, const void *code, uint32_t code_len);

/* ---- a compiled method (method.c) and other code (stub.c) ------------------------------------ */

/* The only contexts and tables that there are, as the JVM loads one agent once. */
struct jvmti_agent {
	dbgdyn_context context;
	struct jvmti_methods methods; /* under method.c's lock */
};
extern struct jvmti_agent jvmti_agent;

/* The callbacks of JVMTI's events, from any thread. */
void JNICALL jvmti_method_loaded(jvmtiEnv *env, jmethodID id, jint code_len, const void *code,
				 jint map_len, const jvmtiAddrLocationMap *map, const void *info);
void JNICALL jvmti_method_unloaded(jvmtiEnv *env, jmethodID id, const void *code);
void JNICALL jvmti_stub_made(jvmtiEnv *env, const char *name, const void *code, jint code_len);
/* Have the JVM list all stubs; those that it told of already are not registered again. */
void jvmti_stubs_list(jvmtiEnv *env);

#endif
