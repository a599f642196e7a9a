/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A JVM that answers what the agent asks: method N is "mN" of pkg.Fake (Fake.java), takes an int,
 * and has lines 10 N + 1 to 10 N + 3, from bytes 0, 5 and 9 of its code on.
 */
#ifndef FAKE_JVM_H
#define FAKE_JVM_H

#include "jvmti_internal.h"

enum fake_call {
	FAKE_NONE,
	FAKE_METHOD_NAME,
	FAKE_CLASS,
	FAKE_SIGNATURE,
	FAKE_SOURCE,
	FAKE_LINES,
};

struct fake_jvm {
	enum fake_call refused;
	jint line_shift;
	void (*list)(jvmtiEnv *env); /* GenerateEvents */
	size_t nr_asked;
	long nr_blocks, nr_references; /* given out and not given back */
};

extern struct fake_jvm fake_jvm;
extern jvmtiEnv fake_env;
extern JavaVM fake_vm;

void fake_jvm_reset(void);
jmethodID fake_id(uintptr_t n);

#endif
